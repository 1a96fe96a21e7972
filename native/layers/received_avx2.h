// received_avx2.h -- gradients that a layer's inputs receive, gathered before they are multiplied.
//
// Takes a bordered gradient that is zero but for the outputs that stand for others, and which
// inputs are the same; gives rows to be multiplied by a phase's panel. Knows no weights.
//
// Inputs that are the same receive one sum, so their patches of the gradient are added up first:
// an addition takes the place of as many products as there are channels. Patches of zeros are left
// out.
// Included by files that are compiled for AVX2 and FMA only.
#pragma once

#include <algorithm>
#include <vector>

#include "rows_avx2.h"
#include "sameness.h"

namespace scanline {

// The inputs of a layer: which are the same, and where gradient and activation of each lie.
struct InputsOfLayer {
  const SamePixels& same;
  const std::vector<i32>& places;       // in the bordered gradient below, in pixels
  const std::vector<i32>& activations;  // in floats
};

class Received {
 public:
  Rows single;  // read from the gradient itself
  Rows summed;  // read from `patches`, `depth` floats each
  std::vector<float> patches;

  // `filled` marks the pixels of the gradient that may be other than zero.
  void gather(const ConvShape& conv, const Phase& phase, const std::vector<u8>& filled,
              const float* gradient, const InputsOfLayer& inputs) {
    single.clear();
    summed.clear();
    find_filled(GradientShape(conv).width, phase, filled, inputs.same);
    patch_of_.assign(inputs.same.first_of.size(), -1);
    for (const size_t i : filled_) {
      const size_t first = first_of(phase, i, inputs.same);
      const i32 from = phase.places[i] * conv.filters;
      const i32 to = inputs.places[first] * conv.channels, mask = inputs.activations[first];
      if (num_patches_[first] == 1) {
        single.add(from, to, mask);
        continue;
      }
      if (patch_of_[first] < 0) {
        patch_of_[first] = new_patch(static_cast<size_t>(phase.depth()));
        summed.add(patch_of_[first], to, mask);
      }
      add_patch(phase.sum, gradient + from, patches.data() + patch_of_[first]);
    }
  }

 private:
  static size_t first_of(const Phase& phase, size_t i, const SamePixels& same) {
    return static_cast<size_t>(same.first_of[static_cast<size_t>(phase.pixels[i])]);
  }

  void find_filled(i32 width, const Phase& phase, const std::vector<u8>& filled,
                   const SamePixels& same) {
    filled_.clear();
    num_patches_.assign(same.first_of.size(), 0);
    for (size_t i = 0; i < phase.pixels.size(); ++i) {
      const u8* const marks = filled.data() + phase.places[i];
      u8 any = 0;
      for (i32 y = 0; y < phase.rows; ++y)
        for (i32 x = 0; x < phase.columns; ++x) any |= marks[y * width + x];
      if (!any) continue;
      filled_.push_back(i);
      ++num_patches_[first_of(phase, i, same)];
    }
  }

  i32 new_patch(size_t depth) {
    const size_t at = summed.from.size() * depth;
    if (patches.size() < at + depth) patches.resize(2 * (at + depth));
    std::fill_n(patches.data() + at, depth, 0.0F);
    return static_cast<i32>(at);
  }

  static void add_patch(const Stretches& sum, const float* from, float* to) {
    for (i32 run = 0; run < sum.num_runs; ++run, from += sum.stride)
      for (i32 k = 0; k < sum.run; k += 8, to += 8) add_to(to, _mm256_loadu_ps(from + k));
  }

  std::vector<size_t> filled_;               // pixels of the phase
  std::vector<i32> num_patches_, patch_of_;  // of every input that stands for others
};

}  // namespace scanline
