// returns.h -- discounted sums of rewards along a rollout.
//
// Takes rewards, ends and values [num_steps, num_envs]; gives sums of the same shape. Knows no
// network and no algorithm.
#pragma once

#include "../core/types.h"

namespace scanline {

struct RolloutPath {
  i32 num_steps, num_envs;
  const float* rewards;
  const u8 *terminal, *truncated;  // no future; a future that was not seen
  const float* final_values;       // read only where truncated
  const float* last_values;        // [num_envs], after the last step
};

// Rewards up to the next end or the rollout's end, and the value of what follows.
void n_step_returns(const RolloutPath& path, float discount, float* returns);

}  // namespace scanline
