// draw.cpp -- see draw.h.
#include "draw.h"

#include <algorithm>
#include <cmath>

namespace scanline {

void draw_categorical(i32 num, i32 num_actions, const float* logits, const float* uniforms,
                      i64 uniform_stride, i64* actions) {
  for (i32 i = 0; i < num; ++i, logits += num_actions, uniforms += uniform_stride) {
    const float highest = *std::max_element(logits, logits + num_actions);
    double total = 0;
    for (i32 a = 0; a < num_actions; ++a)
      total += std::exp(static_cast<double>(logits[a] - highest));
    const double wanted = total * static_cast<double>(*uniforms);
    double cumulated = 0;
    i32 action = 0;
    for (; action < num_actions - 1; ++action) {
      cumulated += std::exp(static_cast<double>(logits[action] - highest));
      if (!(wanted >= cumulated)) break;
    }
    actions[i] = action;
  }
}

}  // namespace scanline
