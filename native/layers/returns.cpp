// returns.cpp -- see returns.h.
#include "returns.h"

namespace scanline {

void n_step_returns(const RolloutArrays& rollout, float discount, float* returns) {
  for (i32 t = rollout.num_steps - 1; t >= 0; --t) {
    const i32 begin = t * rollout.num_envs;
    const float* const following =
        t + 1 == rollout.num_steps ? rollout.last_values : returns + begin + rollout.num_envs;
    for (i32 env = 0; env < rollout.num_envs; ++env) {
      const i32 i = begin + env;
      const float future = rollout.terminal[i]    ? 0.0F
                           : rollout.truncated[i] ? rollout.final_values[i]
                                                  : following[env];
      returns[i] = rollout.rewards[i] + discount * future;
    }
  }
}

}  // namespace scanline
