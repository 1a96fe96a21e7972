// actor_critic.cpp -- see actor_critic.h. Batches are small: doubles cost nothing here.
#include "actor_critic.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace scanline {

ActorCriticSums actor_critic(const ActorCriticBatch& batch, double entropy_coef, double value_coef,
                             double scale, float* logit_gradients, float* value_gradients) {
  const size_t num_actions = static_cast<size_t>(batch.num_actions);
  std::vector<double> logs(num_actions);
  ActorCriticSums sums{0, 0, 0};
  const float* logits = batch.logits;
  for (i32 i = 0; i < batch.num; ++i, logits += num_actions, logit_gradients += num_actions) {
    const double highest = static_cast<double>(*std::max_element(logits, logits + num_actions));
    double total = 0, entropy = 0;
    for (size_t a = 0; a < num_actions; ++a)
      total += std::exp(static_cast<double>(logits[a]) - highest);
    const double log_total = std::log(total);
    for (size_t a = 0; a < num_actions; ++a) {
      logs[a] = static_cast<double>(logits[a]) - highest - log_total;
      entropy -= std::exp(logs[a]) * logs[a];
    }
    const size_t taken = static_cast<size_t>(batch.actions[i]);
    const double error =
        static_cast<double>(batch.returns[i]) - static_cast<double>(batch.values[i]);
    for (size_t a = 0; a < num_actions; ++a) {
      const double probability = std::exp(logs[a]), was_taken = a == taken ? 1.0 : 0.0;
      const double policy = (probability - was_taken) * error;
      logit_gradients[a] =
          static_cast<float>(scale * (policy + entropy_coef * probability * (logs[a] + entropy)));
    }
    value_gradients[i] = static_cast<float>(-2.0 * scale * value_coef * error);
    sums.policy -= logs[taken] * error;
    sums.entropy += entropy;
    sums.value += error * error;
  }
  return sums;
}

}  // namespace scanline
