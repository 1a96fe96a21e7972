// draw.h -- actions drawn from the outputs of a policy.
//
// Takes logits [num, num_actions] and one number in [0, 1) per row; gives the action whose share of
// the cumulated softmax holds that number. Knows no stream of random numbers and no environment.
#pragma once

#include "../core/types.h"

namespace scanline {

// Uniforms lie `uniform_stride` floats apart.
void draw_categorical(i32 num, i32 num_actions, const float* logits, const float* uniforms,
                      i64 uniform_stride, i64* actions);

}  // namespace scanline
