// conv_stack.h -- the convolutions of a network, forwards and backwards.
//
// Takes frames as the store keeps them (bytes or floats, any stride between pictures and between
// the planes of a stack) and weights [filters, kernel, kernel, channels]; gives features
// [num, height, width, filters] and gradients in the layout of the weights. A rectifier follows
// every convolution. Knows no loss, no optimiser and no Python.
//
// Outputs that are the same, in one picture or in several, are computed once (patches.h): a layer
// is a list of different outputs, and its sums read the outputs of the layer below by their
// numbers. What is zero in all rows of a tile is left out where all numbers are finite (present.h):
// what is no number spreads as in any other way to compute the sums. On the way back the
// gradients of all that are the same are summed first and go on from the one that stands for them
// all. Every sum is made by one job in one order: results do not depend on the number of threads.
// An output depends on its own inputs alone: features have the same bits whatever else is in the
// pass.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "conv_shape.h"
#include "frames.h"
#include "place_dense.h"

namespace scanline {

inline i32 feature_floats(const std::vector<ConvShape>& shapes) {
  return shapes.back().out_pixels() * shapes.back().filters;
}

class ConvStack {
 public:
  explicit ConvStack(std::vector<ConvShape> shapes) : shapes_(std::move(shapes)) {}

  // Why these convolutions cannot run here, or nullptr.
  static const char* refusal(const std::vector<ConvShape>& shapes);

  const std::vector<ConvShape>& shapes() const { return shapes_; }

 private:
  std::vector<ConvShape> shapes_;
};

// What one set of weights computed from the pictures since the last `clear`.
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

  // Forgets pictures and weights, and keeps the memory.
  void clear();

  // Adds pictures; the weights are those of the earlier ones. Gives their features, or the rows of
  // a dense layer that reads them. After an exception the pass is as after `clear`.
  void forward(const Frames& frames, i32 num, const Weights& weights, const DenseWeights* dense,
               float* rows);
  // The same for pictures that nobody will go back from, helped by what is known of the others.
  void peek(const Frames& frames, i32 num, const Weights& weights, const DenseWeights* dense,
            float* rows);
  i32 num_pictures() const { return num_pictures_; }
  i32 num_dense() const { return num_dense_; }  // of them, those that went through a dense layer

  // Gradients of all pictures, in the order in which they came.
  void backward(const Weights& weights, const float* feature_gradients, const Gradients& gradients);

  // A dense layer on the way back: what it gave, and the gradients of that.
  struct DenseWay {
    DenseWeights weights;
    const float *rows, *row_gradients;
    DenseGradients gradients;
  };
  void backward(const Weights& weights, DenseWay way, const Gradients& gradients);

 private:
  class Segment;
  Segment& segment_for(const Frames& frames, bool is_finite);
  void add_pictures(const Frames& frames, i32 num, const Weights& weights,
                    const DenseWeights* dense, float* rows);
  void pack_weights(const Weights& weights);
  std::vector<std::vector<float>> begin_backward(const Weights& weights,
                                                 const Gradients& gradients) const;

  std::vector<ConvShape> shapes_;
  i32 num_pictures_ = 0, num_dense_ = 0;
  std::vector<std::unique_ptr<Segment>> segments_;
  size_t num_segments_ = 0;                 // that are in use
  std::vector<std::vector<float>> panels_;  // weights in the order in which the tiles read them
};

}  // namespace scanline
