// actor_critic.h -- the loss of advantage actor-critic and its gradient, in one pass over a batch.
//
// Takes logits [num, num_actions], values, the actions that were taken and their returns; gives
// gradients of logits and values, and sums of the loss's three terms. Knows no network.
//
// Per row: -log p(action) * advantage - entropy_coef * entropy + value_coef * error^2, where error
// is return - value, and the advantage is the error without gradient.
#pragma once

#include "../core/types.h"

namespace scanline {

struct ActorCriticBatch {
  i32 num, num_actions;
  const float *logits, *values, *returns;
  const i64* actions;
};

struct ActorCriticSums {
  double policy, entropy, value;
};

// Gradients are those of `scale` times the sum over all rows.
ActorCriticSums actor_critic(const ActorCriticBatch& batch, double entropy_coef, double value_coef,
                             double scale, float* logit_gradients, float* value_gradients);

}  // namespace scanline
