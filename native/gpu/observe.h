// observe.h -- the kernel body that makes one row of one observation.
//
// Takes the pictures that a lane's step left, the weights of an area resize and the greys of a
// palette; gives one row of the observation, the same bits as the CPU's: the sums are those of
// env/area_sum.h. Rows do not depend on each other. Must not know steps or games.
#pragma once

#include "lane.h"

namespace scanline::gpu {

// Maximum of two pictures' greys along one line, by column.
struct PooledLine {
  const u8* older;
  const u8* newer;
  const u8* grey;
  SCANLINE_HD u8 operator[](i32 x) const {
    const u8 a = grey[older[x]], b = grey[newer[x]];
    return a < b ? b : a;
  }
};

// The horizontal results of one target cell's lines, by tap. A tap beyond the picture weighs 0.
struct CellAcross {
  const PooledLine& first;
  const AreaPlan& plan;
  i32 x;
  SCANLINE_HD float operator()(i32 tap) const {
    const i32 skipped = tap * kScreenWidth;
    const PooledLine line{first.older + skipped, first.newer + skipped, first.grey};
    return area_across(line, plan, x);
  }
};

// `firsts` are first_x, then first_y; `weights` are weight_x, then weight_y, as in AreaPlan.
SCANLINE_HD inline AreaPlan plan_of(const ResizeSizes& sizes, const i32* firsts,
                                    const float* weights) {
  AreaPlan plan{};
  plan.target_height = sizes.height;
  plan.target_width = sizes.width;
  plan.padded_width = sizes.padded_width;
  plan.taps_x = sizes.taps_x;
  plan.taps_y = sizes.taps_y;
  plan.first_x = firsts;
  plan.first_y = firsts + sizes.padded_width;
  plan.weight_x = weights;
  plan.weight_y = weights + sizes.taps_x * sizes.padded_width;
  return plan;
}

SCANLINE_HD inline void observe_row(const Lane& lane, const Game& game, const AreaPlan& plan,
                                    i32 row, u8* target) {
  const i32 line = game.resize.first_row + plan.first_y[row];
  const bool pools = game.rules.settings.pooling != Pooling::kNone;
  const u8* newer = lane.pictures + lane.sight.newer + line * kScreenWidth;
  const u8* older = pools ? lane.pictures + lane.sight.older + line * kScreenWidth : newer;
  const PooledLine pooled{older, newer, game.grey};
  for (i32 x = 0; x < plan.target_width; ++x) {
    const CellAcross across{pooled, plan, x};
    target[x] =
        rounded_half_to_even(area_down(across, plan.weight_y + row * plan.taps_y, plan.taps_y));
  }
}

}  // namespace scanline::gpu
