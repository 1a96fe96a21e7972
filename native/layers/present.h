// present.h -- rows of floats by number, and which of their floats are not zero.
//
// Takes arrays; gives rows with their marks, a bit per float in words of 64. Knows no layer.
//
// A rectifier leaves about half of its outputs at zero, and in places that look alike it is the
// same half: a sum leaves out what is zero in all rows that it is made for at once. What is left
// out would have added zero, so that no bit of a finite sum depends on it.
#pragma once

#include "../core/types.h"

namespace scanline {

constexpr i32 kMarksPerWord = 64;

constexpr i32 words_for(i32 floats) { return (floats + kMarksPerWord - 1) / kMarksPerWord; }

struct MarkedRow {
  const float* floats;
  const u64* present;  // bit k % 64 of word k / 64: float k may be other than zero
};

struct MarkedRows {
  const float* floats;
  const u64* present;
  i32 num_floats, words;

  MarkedRow row(i32 number) const {
    return {floats + static_cast<i64>(number) * num_floats,
            present + static_cast<i64>(number) * words};
  }
};

// Calls visit(k) for every bit, from the lowest on.
template <class Visit>
inline void for_each_bit(u64 bits, const Visit& visit) {
  for (; bits != 0; bits &= bits - 1) visit(static_cast<i64>(__builtin_ctzll(bits)));
}

}  // namespace scanline
