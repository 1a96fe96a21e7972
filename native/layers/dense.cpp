// dense.cpp -- see dense.h.
#include "dense.h"

#include <algorithm>
#include <vector>

#include "kernels.h"
#include "parallel_for.h"

namespace scanline {

namespace {

constexpr i32 kUnitsPerJob = 12;
constexpr i32 kPanelsPerJob = 4;

using Floats = std::vector<float>;

// The gradient behind the ReLU, by rows and by tiles of units.
struct ReluGradient {
  Floats rows;   // [num, units]
  Floats tiles;  // [units / size][num][size]

  ReluGradient(const DenseShape& shape, const float* out, const float* gradients)
      : rows(static_cast<size_t>(shape.num) * static_cast<size_t>(shape.units)),
        tiles(rows.size()) {
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = shape.relu && out[i] <= 0.0F ? 0.0F : gradients[i];
    for (i32 u = 0, size = 0; u < shape.units; u += size) {
      size = tile_units(u, shape.units);
      for (i32 r = 0; r < shape.num; ++r)
        std::copy_n(rows.data() + static_cast<i64>(r) * shape.units + u, size,
                    tiles.data() + static_cast<i64>(u) * shape.num + r * size);
    }
  }
};

void bias_gradients_of(const DenseShape& shape, const ReluGradient& gradient, float* to) {
  std::fill_n(to, shape.units, 0.0F);
  for (i32 r = 0; r < shape.num; ++r)
    for (i32 u = 0; u < shape.units; ++u)
      to[u] += gradient.rows[static_cast<size_t>(r) * static_cast<size_t>(shape.units) +
                             static_cast<size_t>(u)];
}

}  // namespace

const char* dense_refusal(i32 inputs) {
  if (const char* reason = kernels_refusal()) return reason;
  if (inputs % kTileColumns != 0) return "inputs must be a multiple of 16";
  return nullptr;
}

void dense_forward(const DenseShape& shape, const float* rows, const float* weights,
                   const float* biases, float* out) {
  parallel_for(
      ceil_div(shape.units, kUnitsPerJob),
      [&](i32 job) {
        const i32 first = job * kUnitsPerJob, next = first + layer_threads() * kUnitsPerJob;
        const bool has_next = next + kUnitsPerJob <= shape.units;
        dense_units({shape.num, shape.inputs, shape.units, shape.relu, first,
                     std::min(kUnitsPerJob, shape.units - first),
                     has_next ? weights + static_cast<i64>(next) * shape.inputs : nullptr},
                    rows, weights, biases, out);
      },
      call_size(shape.num));
}

void dense_backward(const DenseShape& shape, const float* rows, const float* weights,
                    const float* out, const float* out_gradients, RowGradients row_gradients,
                    float* weight_gradients, float* bias_gradients) {
  const ReluGradient gradient(shape, out, out_gradients);
  bias_gradients_of(shape, gradient, bias_gradients);
  const i32 columns = kPanelsPerJob * kTileColumns;
  parallel_for(
      ceil_div(shape.inputs, columns),
      [&](i32 job) {
        static thread_local Floats panels;
        const i32 k = job * columns;
        const i32 num_panels = std::min(kPanelsPerJob, (shape.inputs - k) / kTileColumns);
        panels.resize(static_cast<size_t>(std::max(shape.num, shape.units) * columns));
        pack_columns(rows + k, shape.num, shape.inputs, num_panels, panels.data());
        weight_gradient_panels(shape.num, shape.units, shape.inputs, gradient.tiles.data(),
                               panels.data(), num_panels, weight_gradients + k);
        if (!row_gradients.rows) return;
        pack_columns(weights + k, shape.units, shape.inputs, num_panels, panels.data());
        row_gradient_panels(shape.num, shape.units, shape.inputs, gradient.rows.data(),
                            panels.data(), num_panels, row_gradients.accumulate,
                            row_gradients.rows + k);
      },
      call_size(shape.num));
}

}  // namespace scanline
