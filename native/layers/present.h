// present.h -- rows of floats by number, and which of their floats are not zero.
//
// Takes arrays; gives rows with their marks, a bit per float in words of 64. Knows no layer.
//
// A rectifier leaves about half of its outputs at zero, and in places that look alike it is the
// same half: a sum leaves out what is zero in all rows that it is made for at once. What is left
// out would have added zero, so that no bit of a finite sum depends on it. Where something is not
// finite (zero times infinity is no number) all floats are marked, those of the border too, and
// nothing is left out.
// Nothing here is a function of its own: kernels include it (kernels.h).
#pragma once

#include "../core/types.h"

namespace scanline {

constexpr i32 kMarksPerWord = 64;

SCANLINE_INLINE constexpr i32 words_for(i32 floats) {
  return (floats + kMarksPerWord - 1) / kMarksPerWord;
}

// Marks of `floats` floats, all of them.
SCANLINE_INLINE void mark_all(i32 floats, u64* marks) {
  for (; floats >= kMarksPerWord; floats -= kMarksPerWord) *marks++ = ~u64{0};
  if (floats > 0) *marks = (u64{1} << floats) - 1;
}

struct MarkedRow {
  const float* floats;
  const u64* present;  // bit k % 64 of word k / 64: float k may be other than zero
};

struct MarkedRows {
  const float* floats;
  const u64* present;
  i32 num_floats, words;

  SCANLINE_INLINE MarkedRow row(i32 number) const {
    return {floats + static_cast<i64>(number) * num_floats,
            present + static_cast<i64>(number) * words};
  }
};

// Calls visit(k) for every bit, from the lowest on.
template <class Visit>
SCANLINE_INLINE void for_each_bit(u64 bits, const Visit& visit) {
  for (; bits != 0; bits &= bits - 1) visit(static_cast<i64>(__builtin_ctzll(bits)));
}

}  // namespace scanline
