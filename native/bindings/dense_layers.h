// dense_layers.h -- dense layers that read the same rows, as arguments from Python.
//
// Takes arrays that alternate between weights and biases; checks every size before anything runs.
#pragma once

#include <vector>

#include "../layers/dense.h"
#include "spans.h"

namespace scanline {

class DenseLayers {
 public:
  DenseLayers(const Span& rows, const Spans& weights, const Spans& outs, bool relu)
      : rows_(rows), weights_(weights), outs_(outs) {
    check_pairs(weights);
    for (size_t l = 0; l < outs.size(); ++l)
      shapes_.push_back(shape_of(weights[2 * l], weights[2 * l + 1], outs[l], relu));
  }

  void forward() const {
    for (size_t l = 0; l < shapes_.size(); ++l)
      dense_forward(shapes_[l], floats(rows_), floats(weights_[2 * l]), floats(weights_[2 * l + 1]),
                    floats(outs_[l]));
  }

  // `gradients` alternate between weights and biases too.
  void check_gradients(const Spans& out_gradients, const Spans& gradients) const {
    check_pairs(gradients);
    if (out_gradients.size() != shapes_.size())
      throw_value_error("there must be gradients of every layer's outputs.");
    for (size_t l = 0; l < shapes_.size(); ++l) {
      check_size(out_gradients[l], shapes_[l].num, shapes_[l].units, "out_gradients");
      check_size(gradients[2 * l], shapes_[l].units, shapes_[l].inputs, "weight_gradients");
      check_size(gradients[2 * l + 1], shapes_[l].units, 1, "bias_gradients");
    }
  }

  // After `check_gradients`; `row_gradients`, or null, gets the sum over all layers.
  void backward(const Spans& out_gradients, float* row_gradients, const Spans& gradients) const {
    for (size_t l = 0; l < shapes_.size(); ++l)
      dense_backward(shapes_[l], floats(rows_), floats(weights_[2 * l]), floats(outs_[l]),
                     floats(out_gradients[l]), {row_gradients, /*accumulate=*/l > 0},
                     floats(gradients[2 * l]), floats(gradients[2 * l + 1]));
  }

 private:
  void check_pairs(const Spans& weights) const {
    if (outs_.empty() || weights.size() != 2 * outs_.size())
      throw_value_error("there must be weights and biases for every layer.");
  }

  DenseShape shape_of(const Span& weights, const Span& biases, const Span& out, bool relu) const {
    const size_t units = biases.second, inputs = units ? weights.second / units : 0;
    const size_t num = inputs ? rows_.second / inputs : 0;
    const DenseShape shape{static_cast<i32>(num), static_cast<i32>(inputs), static_cast<i32>(units),
                           relu};
    if (weights.second != units * inputs || rows_.second != num * inputs)
      throw_value_error("rows, weights and biases do not have the sizes of one layer.");
    if (const char* reason = dense_refusal(shape.inputs)) throw_value_error(reason);
    check_size(out, shape.num, shape.units, "out");
    return shape;
  }

  Span rows_;
  Spans weights_, outs_;
  std::vector<DenseShape> shapes_;
};

}  // namespace scanline
