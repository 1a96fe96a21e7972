// conv_stack.h -- the convolutions of a network, forwards and backwards, one picture at a time.
//
// Takes frames as the store keeps them (bytes or floats, any stride between pictures and between
// the planes of a stack) and weights [filters, kernel, kernel, channels]; gives features
// [num, height, width, filters] and gradients in the layout of the weights. A rectifier follows
// every convolution. Knows no loss, no optimiser and no Python.
//
// A picture goes through all layers while it is in the second-level cache. Outputs that are the
// same (sameness.h) are computed once and copied; on the way back their gradients are summed first
// and go on from the one that stands for them all. Gradients of weights are summed in a fixed
// number of parts, so that results do not depend on the number of threads.
#pragma once

#include <vector>

#include "conv_shape.h"
#include "frames.h"
#include "sameness.h"

namespace scanline {

class ConvStack {
 public:
  explicit ConvStack(std::vector<ConvShape> shapes);

  // Why these convolutions cannot run here, or nullptr.
  static const char* refusal(const std::vector<ConvShape>& shapes);

  const std::vector<ConvShape>& shapes() const { return shapes_; }
  i32 feature_floats() const { return shapes_.back().out_pixels() * shapes_.back().filters; }
  // Floats per picture that the way back needs again: the inputs of all layers but the first.
  i32 kept_floats() const { return kept_floats_; }

  struct Weights {
    std::vector<const float*> filters, biases;
  };
  struct Gradients {
    std::vector<float*> filters, biases;
  };

  // `kept` may be null when nobody will go back.
  void forward(const Frames& frames, i32 num, const Weights& weights, float* kept,
               float* features) const;
  void backward(const Frames& frames, i32 num, const Weights& weights, const float* kept,
                const float* features, const float* feature_gradients,
                const Gradients& gradients) const;

 private:
  struct Panels;
  void forward_picture(const Frames& frames, i32 i, const Panels& panels, const Weights& weights,
                       float* kept, float* features) const;
  void backward_picture(const Frames& frames, i32 i, const Panels& panels, const float* kept,
                        const float* features, const float* feature_gradients,
                        const Gradients& sums) const;
  float* gradient_memory(size_t layer) const;
  void take_feature_gradients(const SamePixels& same, const float* features,
                              const float* feature_gradients, float* gradient) const;
  void backward_inputs(size_t layer, const Sameness& same, const Panels& panels,
                       const float* gradient, const float* input, float* below) const;
  Panels forward_panels(const Weights& weights) const;
  Panels backward_panels(const Weights& weights) const;

  std::vector<ConvShape> shapes_;
  std::vector<Walk> forward_;                 // one per layer
  std::vector<std::vector<Phase>> backward_;  // per layer its phases; none for the first layer
  std::vector<size_t> panel_first_;           // per layer its first phase among all phases
  std::vector<std::vector<i32>> places_;      // per layer its pixels in the bordered gradient
  std::vector<i32> kept_first_;               // where a layer's input lies in a picture's block
  i32 kept_floats_ = 0;
  bool bordered_ = false;  // some kept input has a border of zeros
};

}  // namespace scanline
