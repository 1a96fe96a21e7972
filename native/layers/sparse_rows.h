// sparse_rows.h -- rows of floats with a bit mask of the values that are not zero.
//
// Takes arrays of values and masks; gives rows by id. A mask has one bit per value, in words of 64.
// Knows no layer.
//
// A ReLU sets about half of its outputs to zero, and for similar inputs the same half. A sum over
// several rows skips every value that is zero in all of them. A skipped product would have added
// zero, so a finite sum has the same bits with and without skipping. If a weight or an activation
// is not finite (zero times infinity is NaN), all mask bits are set, those of row 0 too, and
// nothing is skipped.
// All functions are inlined always, since AVX2 kernels include this file (kernels.h).
#pragma once

#include "../core/types.h"

namespace scanline {

constexpr i32 kMaskBits = 64;

SCANLINE_INLINE constexpr i32 num_mask_words(i32 num_values) {
  return (num_values + kMaskBits - 1) / kMaskBits;
}

// Sets the first `num_values` bits of a mask.
SCANLINE_INLINE void set_all_bits(i32 num_values, u64* mask) {
  for (; num_values >= kMaskBits; num_values -= kMaskBits) *mask++ = ~u64{0};
  if (num_values > 0) *mask = (u64{1} << num_values) - 1;
}

struct SparseRow {
  const float* values;
  const u64* nonzero;  // bit k % 64 of word k / 64 is set if value k may differ from zero
};

// Rows [num][num_values] and masks [num][mask_words], both contiguous.
struct SparseRows {
  const float* values;
  const u64* nonzero;
  i32 num_values, mask_words;

  SCANLINE_INLINE SparseRow row(i32 id) const {
    return {values + static_cast<i64>(id) * num_values,
            nonzero + static_cast<i64>(id) * mask_words};
  }
};

// Calls visit(k) for every set bit k, in rising order.
template <class Visit>
SCANLINE_INLINE void for_each_set_bit(u64 bits, const Visit& visit) {
  for (; bits != 0; bits &= bits - 1) visit(static_cast<i64>(__builtin_ctzll(bits)));
}

}  // namespace scanline
