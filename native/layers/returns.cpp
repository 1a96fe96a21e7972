// returns.cpp -- see returns.h.
#include "returns.h"

namespace scanline {

void n_step_returns(const RolloutPath& path, float discount, float* returns) {
  for (i32 t = path.num_steps - 1; t >= 0; --t) {
    const i32 begin = t * path.num_envs;
    const float* const following =
        t + 1 == path.num_steps ? path.last_values : returns + begin + path.num_envs;
    for (i32 env = 0; env < path.num_envs; ++env) {
      const i32 i = begin + env;
      const float future = path.terminal[i]    ? 0.0F
                           : path.truncated[i] ? path.final_values[i]
                                               : following[env];
      returns[i] = path.rewards[i] + discount * future;
    }
  }
}

}  // namespace scanline
