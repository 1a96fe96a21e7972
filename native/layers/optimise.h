// optimise.h -- what happens to all parameters of a network at once: a norm, a step of RMSProp,
// whether they are finite.
//
// Takes arrays of floats, dense in the same order; changes parameters and averages in place. Arrays
// are cut into parts of one size, so that no sum depends on the number of threads.
// Knows no schedule, and not why a gradient is scaled.
#pragma once

#include <vector>

#include "../core/types.h"

namespace scanline {

struct RmspropStep {
  float decay;  // weight of the past in the averages
  float epsilon;
  bool epsilon_inside_root;  // sqrt(square + epsilon), else sqrt(square) + epsilon
  float learning_rate;
  float gradient_scale;  // gradients are read times this
};

// One parameter with what belongs to it; `mean` is null unless the average is centred.
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

// Whether no float is infinite or no number.
bool are_finite(const FloatArray& array);
bool are_finite(const std::vector<FloatArray>& arrays);

}  // namespace scanline
