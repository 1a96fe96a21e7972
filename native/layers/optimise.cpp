// optimise.cpp -- see optimise.h. Plain loops: the compiler makes them as wide as the build allows.
#include "optimise.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "workers.h"

namespace scanline {

namespace {

constexpr i64 kFloatsPerPart = 65536;

// A stretch of one of the arrays.
struct Part {
  size_t array;
  i64 first, num;
};

template <class Array>
std::vector<Part> parts_of(const std::vector<Array>& arrays) {
  std::vector<Part> parts;
  for (size_t i = 0; i < arrays.size(); ++i)
    for (i64 first = 0; first < arrays[i].num; first += kFloatsPerPart)
      parts.push_back({i, first, std::min(kFloatsPerPart, arrays[i].num - first)});
  return parts;
}

template <bool kCentred, bool kInside>
void step_part(const RmspropStep& step, i64 num, const float* __restrict gradient,
               float* __restrict parameter, float* __restrict square, float* __restrict mean) {
  const float decay = step.decay, rest = static_cast<float>(1.0 - static_cast<double>(step.decay));
  const float inside = kInside ? step.epsilon : 0.0F, outside = kInside ? 0.0F : step.epsilon;
  for (i64 i = 0; i < num; ++i) {
    const float g = gradient[i] * step.gradient_scale;
    float spread = square[i] = square[i] * decay + rest * g * g;
    if (kCentred) {
      mean[i] = mean[i] * decay + rest * g;
      spread = std::max(spread - mean[i] * mean[i], 0.0F);  // rounding may leave it below zero
    }
    parameter[i] -= step.learning_rate * (g / (std::sqrt(spread + inside) + outside));
  }
}

using StepPart = void (*)(const RmspropStep&, i64, const float*, float*, float*, float*);

StepPart step_for(bool centred, bool inside) {
  if (centred) return inside ? step_part<true, true> : step_part<true, false>;
  return inside ? step_part<false, true> : step_part<false, false>;
}

// Sixteen sums, so that the additions need not wait for each other.
double sum_of_squares(const float* values, i64 num) {
  constexpr i64 kSums = 16;
  double sums[kSums] = {};
  i64 i = 0;
  for (; i + kSums <= num; i += kSums)
    for (i64 s = 0; s < kSums; ++s) {
      const double value = static_cast<double>(values[i + s]);
      sums[s] += value * value;
    }
  for (; i < num; ++i) sums[0] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  double sum = 0;
  for (double each : sums) sum += each;
  return sum;
}

}  // namespace

void rmsprop(const RmspropStep& step, const std::vector<RmspropArrays>& arrays) {
  const std::vector<Part> parts = parts_of(arrays);
  run_jobs(
      static_cast<i32>(parts.size()),
      [&](i32 job) {
        const Part& part = parts[static_cast<size_t>(job)];
        const RmspropArrays& all = arrays[part.array];
        step_for(all.mean != nullptr, step.epsilon_inside_root)(
            step, part.num, all.gradient + part.first, all.parameter + part.first,
            all.square + part.first, all.mean ? all.mean + part.first : nullptr);
      },
      Size::kLarge);
}

double squared_norm(const std::vector<FloatArray>& arrays) {
  const std::vector<Part> parts = parts_of(arrays);
  std::vector<double> sums(parts.size());
  run_jobs(
      static_cast<i32>(parts.size()),
      [&](i32 job) {
        const size_t i = static_cast<size_t>(job);
        sums[i] = sum_of_squares(arrays[parts[i].array].data + parts[i].first, parts[i].num);
      },
      Size::kLarge);
  double sum = 0;
  for (double each : sums) sum += each;
  return sum;
}

bool are_finite(const FloatArray& array) {
  constexpr u32 kExponent = 0x7F800000;  // all of its bits: infinite, or no number
  u32 found = 0;
  for (i64 i = 0; i < array.num; ++i) {
    u32 bits;
    std::memcpy(&bits, array.data + i, sizeof bits);
    found |= static_cast<u32>((bits & kExponent) == kExponent);
  }
  return found == 0;
}

bool are_finite(const std::vector<FloatArray>& arrays) {
  const std::vector<Part> parts = parts_of(arrays);
  std::atomic<bool> all{true};
  run_jobs(
      static_cast<i32>(parts.size()),
      [&](i32 job) {
        const Part& part = parts[static_cast<size_t>(job)];
        if (!are_finite({part.num, arrays[part.array].data + part.first})) all = false;
      },
      Size::kLarge);
  return all;
}

}  // namespace scanline
