// optimise.cpp -- see optimise.h. Plain loops, which the compiler vectorises.
#include "optimise.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "parallel_for.h"

namespace scanline {

namespace {

constexpr i64 kFloatsPerChunk = 65536;

// A range of one of the arrays.
struct Chunk {
  size_t array;
  i64 first, num;
};

template <class Array>
std::vector<Chunk> chunks_of(const std::vector<Array>& arrays) {
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < arrays.size(); ++i)
    for (i64 first = 0; first < arrays[i].num; first += kFloatsPerChunk)
      chunks.push_back({i, first, std::min(kFloatsPerChunk, arrays[i].num - first)});
  return chunks;
}

template <bool kCentred, bool kInside>
void step_chunk(const RmspropStep& step, i64 num, const float* __restrict gradient,
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

using StepChunk = void (*)(const RmspropStep&, i64, const float*, float*, float*, float*);

StepChunk step_for(bool centred, bool inside) {
  if (centred) return inside ? step_chunk<true, true> : step_chunk<true, false>;
  return inside ? step_chunk<false, true> : step_chunk<false, false>;
}

// Sixteen independent sums, so that additions overlap.
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
  const std::vector<Chunk> chunks = chunks_of(arrays);
  parallel_for(
      static_cast<i32>(chunks.size()),
      [&](i32 job) {
        const Chunk& chunk = chunks[static_cast<size_t>(job)];
        const RmspropArrays& all = arrays[chunk.array];
        step_for(all.mean != nullptr, step.epsilon_inside_root)(
            step, chunk.num, all.gradient + chunk.first, all.parameter + chunk.first,
            all.square + chunk.first, all.mean ? all.mean + chunk.first : nullptr);
      },
      CallSize::kLarge);
}

double squared_norm(const std::vector<FloatArray>& arrays) {
  const std::vector<Chunk> chunks = chunks_of(arrays);
  std::vector<double> sums(chunks.size());
  parallel_for(
      static_cast<i32>(chunks.size()),
      [&](i32 job) {
        const size_t i = static_cast<size_t>(job);
        sums[i] = sum_of_squares(arrays[chunks[i].array].data + chunks[i].first, chunks[i].num);
      },
      CallSize::kLarge);
  double sum = 0;
  for (double each : sums) sum += each;
  return sum;
}

bool are_finite(const FloatArray& array) {
  constexpr u32 kExponent = 0x7F800000;  // all bits set: infinite or NaN
  u32 found = 0;
  for (i64 i = 0; i < array.num; ++i) {
    u32 bits;
    std::memcpy(&bits, array.data + i, sizeof bits);
    found |= static_cast<u32>((bits & kExponent) == kExponent);
  }
  return found == 0;
}

bool are_finite(const std::vector<FloatArray>& arrays) {
  const std::vector<Chunk> chunks = chunks_of(arrays);
  std::atomic<bool> all{true};
  parallel_for(
      static_cast<i32>(chunks.size()),
      [&](i32 job) {
        const Chunk& chunk = chunks[static_cast<size_t>(job)];
        if (!are_finite({chunk.num, arrays[chunk.array].data + chunk.first})) all = false;
      },
      CallSize::kLarge);
  return all;
}

}  // namespace scanline
