// input_gradients.h -- gradients of a convolution's inputs, gathered from its outputs.
//
// Takes the inverse tap table of a layer and the gradients of its outputs; gives the gradients of
// its inputs, behind the ReLU of the layer below. Knows no image and no thread.
#pragma once

#include <algorithm>
#include <vector>

#include "inverse_taps.h"
#include "kernels.h"

namespace scanline {

struct InputGradientArgs {
  SparseRows output_gradients;
  i32 channels;            // of an input
  const float* panels;     // weights, per tap and sixteen channels: [filters][16]
  const float* inputs;     // outputs of the ReLU below, [num_inputs + 1][channels]
  float* input_gradients;  // written, same layout as `inputs`
};

// For one tap: the inputs that some output reads with it, and per input the sum of the gradients
// of these outputs. A scratch buffer of one thread.
struct TapGradients {
  std::vector<i32> inputs;
  std::vector<SparseRow> rows;  // a row of an output, or of `sums` if several outputs read an input
  std::vector<float> sums;
  std::vector<u64> masks;  // of `sums`

  // Inputs first .. end - 1.
  void gather(const InverseTaps& taps, i32 tap, i32 first, i32 end, const SparseRows& gradients) {
    inputs.clear();
    rows.clear();
    const size_t num = static_cast<size_t>(end - first);
    sums.resize(num * static_cast<size_t>(gradients.num_values));
    masks.resize(num * static_cast<size_t>(gradients.mask_words));
    for (i32 input = first; input < end; ++input) {
      const i32 *const output = taps.begin(input, tap), *const last = taps.end(input, tap);
      if (output == last) continue;
      inputs.push_back(input);
      rows.push_back(last - output == 1 ? gradients.row(*output)
                                        : sum(output, last, input - first, gradients));
    }
  }

 private:
  SparseRow sum(const i32* output, const i32* last, i32 index, const SparseRows& gradients) {
    float* const to = sums.data() + static_cast<i64>(index) * gradients.num_values;
    u64* const nonzero = masks.data() + static_cast<i64>(index) * gradients.mask_words;
    SparseRow total = gradients.row(*output);
    std::copy_n(total.nonzero, gradients.mask_words, nonzero);
    while (++output != last) {
      const SparseRow next = gradients.row(*output);
      sum_rows(total.values, next.values, gradients.num_values, to);
      for (i32 w = 0; w < gradients.mask_words; ++w) nonzero[w] |= next.nonzero[w];
      total.values = to;
    }
    return {to, nonzero};
  }
};

// Gradients of inputs first .. end - 1.
inline void input_gradients(const InverseTaps& taps, i32 first, i32 end,
                            const InputGradientArgs& args) {
  static thread_local TapGradients scratch;
  const i64 begin = static_cast<i64>(first) * args.channels;
  const i32 num = end - first, filters = args.output_gradients.num_values;
  std::fill_n(args.input_gradients + begin, static_cast<i64>(num) * args.channels, 0.0F);
  const float* panels = args.panels;
  for (i32 tap = 0; tap < taps.num_taps(); ++tap, panels += args.channels * filters) {
    scratch.gather(taps, tap, first, end, args.output_gradients);
    add_input_gradients(scratch.inputs.data(), scratch.rows.data(),
                        static_cast<i64>(scratch.rows.size()), filters, args.channels, panels,
                        args.input_gradients);
  }
  relu_backward_rows(num, args.channels, args.inputs + begin, args.input_gradients + begin);
}

}  // namespace scanline
