// conv_stack.h -- the convolutions of a network, forward and backward.
//
// Takes frames in a store's memory (bytes or floats, any stride between images and between the
// planes of a stack) and weights [filters, kernel, kernel, channels]; gives features
// [num, height, width, filters] and gradients in the layout of the weights. A ReLU follows every
// convolution. Knows no loss, no optimiser and no Python.
//
// Outputs with equal inputs, in one image or in several, are computed once (patch_table.h). A
// layer is a table of distinct outputs, which gather their inputs from the layer below by id. Sums
// skip values that are zero in all rows of a tile (sparse_rows.h). The backward pass first sums
// the gradients of all occurrences of an output (scatter-add), then runs once per distinct output.
// Every sum is made by one job in a fixed order, so results do not depend on the number of threads.
// An output depends on its own inputs alone: features have the same bits whatever else is in the
// pass.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "conv_shape.h"
#include "feature_dense.h"
#include "frames.h"

namespace scanline {

inline i32 feature_floats(const std::vector<ConvShape>& shapes) {
  return shapes.back().out_pixels() * shapes.back().filters;
}

// Why these convolutions cannot run here, or nullptr.
const char* convolutions_refusal(const std::vector<ConvShape>& shapes);

// One pass with one set of weights: the activations of the images since the last `clear`, kept
// for the backward pass.
class ConvPass {
 public:
  struct Weights {
    std::vector<const float*> filters, biases;
    bool are_finite = true;  // those of a dense layer behind them too
  };
  struct Gradients {
    std::vector<float*> filters, biases;
  };

  explicit ConvPass(std::vector<ConvShape> shapes);
  ~ConvPass();

  // Removes images and weights, and keeps the memory.
  void clear();

  // Adds images, with the same weights as earlier ones. Writes their features, or the rows of a
  // dense layer that reads them. After an exception the pass is cleared.
  void forward(const Frames& frames, i32 num, const Weights& weights, const DenseWeights* dense,
               float* rows);
  // The same without a backward pass: the images are not kept, but outputs that earlier images
  // have are reused.
  void infer(const Frames& frames, i32 num, const Weights& weights, const DenseWeights* dense,
             float* rows);
  i32 num_images() const { return num_images_; }
  i32 num_dense_images() const { return num_dense_images_; }  // that went through a dense layer

  // Weight gradients, summed over all images, from feature gradients in the order of `forward`.
  void backward(const Weights& weights, const float* feature_gradients, const Gradients& gradients);

  // A dense layer in the backward pass: the rows that it gave, and their gradients.
  struct DenseBackward {
    DenseWeights weights;
    const float *rows, *row_gradients;
    DenseGradients gradients;
  };
  void backward(const Weights& weights, DenseBackward dense, const Gradients& gradients);

 private:
  class Segment;
  Segment& segment_for(const Frames& frames, bool is_finite);
  void add_images(const Frames& frames, i32 num, const Weights& weights, const DenseWeights* dense,
                  float* rows);
  void pack_weights(const Weights& weights);
  std::vector<std::vector<float>> begin_backward(const Weights& weights,
                                                 const Gradients& gradients) const;

  std::vector<ConvShape> shapes_;
  i32 num_images_ = 0, num_dense_images_ = 0;
  std::vector<std::unique_ptr<Segment>> segments_;
  size_t num_segments_ = 0;                 // in use
  std::vector<std::vector<float>> panels_;  // packed weights
};

}  // namespace scanline
