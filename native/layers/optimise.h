// optimise.h -- passes over all parameters of a network: squared norm, a step of RMSProp, a check
// for finite values.
//
// Takes arrays of floats without gaps, all of a parameter in the same memory order; changes
// parameters and running averages in place. Arrays are cut into chunks of a fixed size, so that no
// sum depends on the number of threads. Knows no schedule; clipping is a factor that the caller
// gives.
#pragma once

#include <vector>

#include "../core/types.h"

namespace scanline {

struct RmspropStep {
  float decay;  // of the running averages
  float epsilon;
  bool epsilon_inside_root;  // sqrt(square + epsilon), else sqrt(square) + epsilon
  float learning_rate;
  float gradient_scale;  // factor on every gradient
};

// One parameter, its gradient and its running averages of the squared gradient and of the gradient;
// `mean` is null unless RMSProp is centred.
struct RmspropArrays {
  i64 num;
  const float* gradient;
  float *parameter, *square, *mean;
};

void rmsprop(const RmspropStep& step, const std::vector<RmspropArrays>& arrays);

struct FloatArray {
  i64 num;
  const float* data;
};

// The sum of all squares.
double squared_norm(const std::vector<FloatArray>& arrays);

// Whether no float is infinite or NaN.
bool are_finite(const FloatArray& array);
bool are_finite(const std::vector<FloatArray>& arrays);

}  // namespace scanline
