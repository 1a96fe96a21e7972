// returns.h -- discounted sums of rewards along a rollout.
//
// Takes rewards, ends and values [num_steps, num_envs]; gives sums of the same shape. Knows no
// network and no algorithm.
#pragma once

#include "../core/types.h"

namespace scanline {

struct RolloutArrays {
  i32 num_steps, num_envs;
  const float* rewards;
  const u8 *terminal, *truncated;  // 0 or 1; terminal: no bootstrap
  const float* final_values;       // bootstrap values, read only where truncated
  const float* last_values;        // [num_envs], values after the last step
};

// Discounted rewards up to the episode's or the rollout's end, plus the bootstrap value there.
void n_step_returns(const RolloutArrays& rollout, float discount, float* returns);

}  // namespace scanline
