// rmsprop.h -- one step of RMSProp over one array, in one pass.
//
// Takes a parameter, its gradient and its averages, all dense in the same order; changes parameter
// and averages in place. Knows no clipping and no schedule.
#pragma once

#include "../core/types.h"

namespace scanline {

struct RmspropStep {
  float decay;  // weight of the past in the averages
  float epsilon;
  bool epsilon_inside_root;  // sqrt(square + epsilon), else sqrt(square) + epsilon
  float learning_rate;
};

// `mean` is null unless the average is centred.
void rmsprop(const RmspropStep& step, i64 num, const float* gradient, float* parameter,
             float* square, float* mean);

}  // namespace scanline
