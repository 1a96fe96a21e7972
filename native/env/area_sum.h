// area_sum.h -- the arithmetic of an area resize: one horizontal and one vertical sum, and a byte.
//
// Order of the float32 operations is that of OpenCV's INTER_AREA (left to right, then top to
// bottom, round half to even), so nothing here may be fused or reordered: build with
// -ffp-contract=off, or what the device's compiler calls it. Host and device; the passes over whole
// pictures are in area_pass.h and in gpu/.
#pragma once

#include "../core/types.h"

namespace scanline {

constexpr i32 kScreenWidth = 160;
constexpr i32 kLinePadding = 32;    // kernels may load this far beyond a line
constexpr i32 kMaxAreaTaps = 15;    // vertical taps the pass can hold
constexpr i32 kMaxAreaWidth = 160;  // target width the pass can hold

// The two pictures; `values` maps a colour index to grey (or one channel), null if they hold
// values.
struct PicturePair {
  const u8* older;
  const u8* newer;
  const u8* values;  // [256]
};

// Plain views of two AreaAxis objects, so that this file needs no standard container.
struct AreaPlan {
  i32 target_height, target_width;
  i32 padded_width;  // a multiple of 8
  i32 taps_x, taps_y;
  const i32* first_x;     // [padded_width]
  const i32* first_y;     // [target_height]
  const float* weight_x;  // [taps_x][padded_width]
  const float* weight_y;  // [target_height][taps_y], the transpose of the axis
  i32 period_y;           // rows i and i - period_y have equal weights
  i32 ring_mask;          // a power of two above taps_y, minus 1: horizontal results kept
  const u8* shuffle_x;    // [padded_width / 8][16], byte shuffles of each group of 8 cells
  bool shuffles;          // every group's source bytes lie within 16
};

// One cell of a line's horizontal result; `values` are those of the line's pixels, by column.
template <class Values>
SCANLINE_HD inline float area_across(const Values& values, const AreaPlan& plan, i32 x) {
  float sum = 0.0f;
  for (i32 tap = 0; tap < plan.taps_x; ++tap) {
    sum += static_cast<float>(values[plan.first_x[x] + tap]) *
           plan.weight_x[tap * plan.padded_width + x];
  }
  return sum;
}

// One cell of a target row from the horizontal results of its taps' lines.
template <class Across>
SCANLINE_HD inline float area_down(const Across& across, const float* weights, i32 num_taps) {
  float sum = weights[0] * across(0);
  for (i32 tap = 1; tap < num_taps; ++tap) sum += weights[tap] * across(tap);
  return sum;
}

// Half to even by adding 1.5 * 2^23: exact for 0 <= value < 2^22.
SCANLINE_HD inline u8 rounded_half_to_even(float value) {
  const volatile float shifted = value + 12582912.0f;
  return static_cast<u8>(static_cast<i32>(shifted - 12582912.0f));
}

}  // namespace scanline
