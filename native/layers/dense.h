// dense.h -- one dense layer, with a ReLU or without, forward and backward.
//
// Takes rows [num, inputs] and weights [units, inputs], all contiguous; gives rows [num, units] and
// gradients in the layout of what they belong to. Knows no loss, no optimiser and no Python.
//
// Every sum is made by one job in a fixed order: results do not depend on the number of threads.
#pragma once

#include "../core/types.h"

namespace scanline {

struct DenseShape {
  i32 num, inputs, units;
  bool relu;
};

// Why such a layer cannot run here, or nullptr.
const char* dense_refusal(i32 inputs);

void dense_forward(const DenseShape& shape, const float* rows, const float* weights,
                   const float* biases, float* out);

// Where the gradients of the rows are written: not at all if null; added if `accumulate`.
struct RowGradients {
  float* rows;
  bool accumulate;
};

// `out` is what forward gave.
void dense_backward(const DenseShape& shape, const float* rows, const float* weights,
                    const float* out, const float* out_gradients, RowGradients row_gradients,
                    float* weight_gradients, float* bias_gradients);

}  // namespace scanline
