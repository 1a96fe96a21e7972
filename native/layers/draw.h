// draw.h -- actions sampled from the softmax of a policy's logits.
//
// Takes logits [num, num_actions] and one uniform number in [0, 1) per row; gives actions by the
// inverse of the cumulative distribution. Knows no random stream and no environment.
#pragma once

#include "../core/types.h"

namespace scanline {

// Uniforms are `uniform_stride` floats apart.
void draw_categorical(i32 num, i32 num_actions, const float* logits, const float* uniforms,
                      i64 uniform_stride, i64* actions);

}  // namespace scanline
