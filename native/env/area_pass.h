// area_pass.h -- the hot pass: two colour-index pictures to one small grey picture.
//
// Takes two pictures of equal size (rows of 160 bytes), the value of every colour index, and the
// two axes of an area resize; writes the target picture once, where the caller wants it. The order
// of operations is that of area_sum.h. Must not know environments, stacks or protocols.
//
// `Kernels` gives the row operations; area_portable.cpp and area_avx2.cpp instantiate it once each.
// Most lines of a 2600 picture repeat the line above, so the horizontal result of such a line is
// taken over; a target line whose source lines all equal those of an earlier one is copied.
#pragma once

#include <cstring>

#include "area_sum.h"

namespace scanline {

using AreaPass = void (*)(const PicturePair&, const AreaPlan&, u8* target, u8* pooled);

template <class Kernels>
class AreaPassOf {
 public:
  AreaPassOf(const PicturePair& pair, const AreaPlan& plan, u8* pooled)
      : pair_(pair), plan_(plan), kernels_(pair.values), pooled_(pooled) {}

  void run(u8* target) {
    for (i32 row = 0; row < plan_.target_height; ++row, target += plan_.target_width) {
      const float* lines[kMaxAreaTaps];
      gather(row, lines);
      const i32 period = plan_.period_y;
      if (row >= period && uniform_since(row - period)) {
        std::memcpy(target, target - period * plan_.target_width,
                    static_cast<unsigned long>(plan_.target_width));
      } else {
        kernels_.vertical(lines, plan_.weight_y + row * plan_.taps_y, plan_, target);
      }
    }
  }

 private:
  // Points `lines` at the horizontal results of the taps of a target row.
  void gather(i32 row, const float** lines) {
    const i32 first = plan_.first_y[row];
    for (i32 tap = 0; tap < plan_.taps_y; ++tap) {
      // Taps that weigh nothing may lie below the picture.
      if (plan_.weight_y[row * plan_.taps_y + tap] == 0.0f) {
        lines[tap] = lines[0];
        continue;
      }
      if (first + tap > line_) advance(first + tap);
      lines[tap] = slots_[slot_of_[(first + tap) & plan_.ring_mask]];
    }
  }

  // True if no new line has appeared since the first source line of target row `row`.
  bool uniform_since(i32 row) const { return last_change_ <= plan_.first_y[row]; }

  void advance(i32 line) {
    line_ = line;
    if (line == 0 || !repeats_line(line)) {
      slot_ = (slot_ + 1) & plan_.ring_mask;
      last_change_ = line;
      pool(line);
      kernels_.horizontal(pooled_line_, plan_, slots_[slot_]);
    }
    slot_of_[line & plan_.ring_mask] = slot_;
    if (pooled_ != nullptr) std::memcpy(pooled_ + line * kScreenWidth, pooled_line_, kScreenWidth);
  }

  bool repeats_line(i32 line) const {
    const i32 at = line * kScreenWidth;
    return kernels_.same(pair_.newer + at, pair_.newer + at - kScreenWidth) &&
           (pair_.older == pair_.newer ||
            kernels_.same(pair_.older + at, pair_.older + at - kScreenWidth));
  }

  void pool(i32 line) {
    const u8* older = pair_.older + line * kScreenWidth;
    const u8* newer = pair_.newer + line * kScreenWidth;
    if (older == newer || kernels_.same(older, newer)) {
      kernels_.translate(newer, pooled_line_);
    } else {
      alignas(32) u8 other[kScreenWidth];
      kernels_.translate(older, other);
      kernels_.translate(newer, pooled_line_);
      kernels_.keep_larger(other, pooled_line_);
    }
  }

  static constexpr i32 kRing = kMaxAreaTaps + 1;
  const PicturePair& pair_;
  const AreaPlan& plan_;
  const Kernels kernels_;
  u8* pooled_;
  i32 line_ = -1;        // the last source line whose horizontal result exists
  i32 slot_ = -1;        // where it lies
  i32 last_change_ = 0;  // the last line that differed from the one above it
  i32 slot_of_[kRing];   // of the recent lines, by the low bits of the line number
  alignas(32) float slots_[kRing][kMaxAreaWidth];
  alignas(32) u8 pooled_line_[kScreenWidth + kLinePadding] = {};
};

}  // namespace scanline
