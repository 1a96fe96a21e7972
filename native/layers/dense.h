// dense.h -- one dense layer, with a rectifier or without, forwards and backwards.
//
// Takes rows [num, inputs] and weights [units, inputs], all contiguous; gives rows [num, units] and
// gradients in the layout of what they belong to. Knows no loss, no optimiser and no Python.
//
// Every number is summed by one thread in one order: results do not depend on their number.
#pragma once

#include "../core/types.h"

namespace scanline {

struct DenseShape {
  i32 num, inputs, units;
  bool rectified;
};

// Why such a layer cannot run here, or nullptr.
const char* dense_refusal(i32 inputs);

void dense_forward(const DenseShape& shape, const float* rows, const float* weights,
                   const float* biases, float* out);

// Where the gradients of rows go: nowhere where it is null, or on top of what is there.
struct RowGradients {
  float* rows;
  bool adds;
};

// `out` is what forward gave.
void dense_backward(const DenseShape& shape, const float* rows, const float* weights,
                    const float* out, const float* out_gradients, RowGradients row_gradients,
                    float* weight_gradients, float* bias_gradients);

}  // namespace scanline
