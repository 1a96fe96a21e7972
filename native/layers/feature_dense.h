// feature_dense.h -- the dense layer behind the convolutions, with a ReLU, on deduplicated
// features.
//
// Takes images as output ids of the last convolution, the outputs themselves and weights
// [positions * filters, units]; gives rows [num, units], and in the backward pass gradients of the
// weights and of the outputs at every position. Knows no convolution, no loss and no Python.
//
// The product of a position's weights with an output depends on the pair (position, output). It is
// computed once for all images that have this pair; a row is the sum over its positions. In the
// backward pass the gradients of all rows with the same pair are summed first. Every sum is made by
// one job in a fixed order, and a row depends on its own image alone.
#pragma once

#include <vector>

#include "../core/types.h"
#include "position_pairs.h"
#include "sparse_rows.h"

namespace scanline {

// Weights [positions * filters, units]: those of a position are contiguous.
struct DenseWeights {
  const float *weights, *biases;
  i32 units;
};

struct DenseGradients {
  float *weights, *biases;
};

struct PositionBatch;  // scratch of one position's backward pass

class FeatureDense {
 public:
  FeatureDense(i32 num_positions, i32 filters)
      : pairs_(num_positions),
        filters_(filters),
        num_multiplied_(static_cast<size_t>(num_positions)) {}

  // Removes images and products, and keeps the memory.
  void clear();

  // Rows of images first .. first + num - 1, with the same weights as earlier ones. `output_ids`
  // are theirs, in 1 .. max_output_id; `outputs` has rows of `filters` values by output id.
  void forward(const i32* output_ids, i32 first, i32 num, i32 max_output_id,
               const SparseRows& outputs, const DenseWeights& dense, float* rows);
  // Keeps all pairs so far for the backward pass.
  void keep() { num_kept_ = pairs_.size(); }

  struct BackwardArgs {
    i32 num_images;
    SparseRows outputs;
    DenseWeights dense;
    bool full_masks;  // do not skip zero gradients
    bool accumulate;  // add to `gradients` instead of overwriting them
    DenseGradients gradients;
  };
  // Gradients of weights, biases and pairs from those of the rows; `rows` is what forward gave.
  void backward(const BackwardArgs& args, const float* rows, const float* row_gradients);
  // After `backward`: row i of `pair_gradients` (of `filters` floats) belongs to output
  // output_ids()[i], for i < num_kept_pairs().
  i32 num_kept_pairs() const { return num_kept_; }
  const i32* output_ids() const { return pairs_.output_ids(); }
  const float* pair_gradients() const { return pair_gradients_.data(); }

 private:
  using Floats = std::vector<float>;

  SparseRow output_of(i32 pair, const SparseRows& outputs) const {
    return outputs.row(pairs_.output_ids()[pair]);
  }
  // The index of a position's first weight.
  i64 weights_at(i32 position, i32 units) const {
    return static_cast<i64>(position) * filters_ * units;
  }
  void list_new_outputs(const SparseRows& outputs, i32 position,
                        std::vector<SparseRow>& rows) const;
  void multiply(const SparseRows& outputs, const DenseWeights& dense, i32 position, i32 next);
  void relu_backward(const BackwardArgs& args, const float* rows, const float* gradients);
  void backward_position(const BackwardArgs& args, i32 position);
  void sum_gradients(const BackwardArgs& args, i32 position,
                     std::vector<SparseRow>& gradients) const;
  void weight_gradients(const BackwardArgs& args, i32 position, const PositionBatch& batch) const;
  void clear_unused_rows(const std::vector<i32>& inputs, i32 units, float* gradients) const;
  void pair_gradients(const BackwardArgs& args, i32 position, const PositionBatch& batch) const;

  PositionPairs pairs_;
  const i32 filters_;
  std::vector<i32> num_multiplied_;  // per position: pairs that have their products
  Floats products_;                  // per pair: its product with the weights, one float per unit
  i32 num_kept_ = 0;                 // pairs of images that are kept
  Floats relu_gradients_;            // per image: row gradients behind the ReLU
  std::vector<u64> relu_masks_;      // of these
  Floats pair_gradients_;
};

}  // namespace scanline
