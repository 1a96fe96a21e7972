// rmsprop.cpp -- see rmsprop.h. Plain loops: the compiler makes them as wide as the build allows.
#include "rmsprop.h"

#include <algorithm>
#include <cmath>

#include "workers.h"

namespace scanline {

namespace {

constexpr i64 kFloatsPerJob = 65536;

template <bool kCentred, bool kInside>
void part(const RmspropStep& step, i64 num, const float* __restrict gradient,
          float* __restrict parameter, float* __restrict square, float* __restrict mean) {
  const float decay = step.decay, rest = static_cast<float>(1.0 - static_cast<double>(step.decay));
  const float inside = kInside ? step.epsilon : 0.0F, outside = kInside ? 0.0F : step.epsilon;
  for (i64 i = 0; i < num; ++i) {
    const float g = gradient[i];
    float spread = square[i] = square[i] * decay + rest * g * g;
    if (kCentred) {
      mean[i] = mean[i] * decay + rest * g;
      spread = std::max(spread - mean[i] * mean[i], 0.0F);  // rounding may leave it below zero
    }
    parameter[i] -= step.learning_rate * (g / (std::sqrt(spread + inside) + outside));
  }
}

using Part = void (*)(const RmspropStep&, i64, const float*, float*, float*, float*);

Part part_for(bool centred, bool inside) {
  if (centred) return inside ? part<true, true> : part<true, false>;
  return inside ? part<false, true> : part<false, false>;
}

}  // namespace

void rmsprop(const RmspropStep& step, i64 num, const float* gradient, float* parameter,
             float* square, float* mean) {
  const Part run = part_for(mean != nullptr, step.epsilon_inside_root);
  run_jobs(static_cast<i32>((num + kFloatsPerJob - 1) / kFloatsPerJob), [&](i32 job) {
    const i64 first = job * kFloatsPerJob, count = std::min(kFloatsPerJob, num - first);
    run(step, count, gradient + first, parameter + first, square + first,
        mean ? mean + first : nullptr);
  });
}

}  // namespace scanline
