// sameness.h -- which outputs of the convolutions are the same in one picture.
//
// Takes the bytes of a picture and the geometry of all layers; gives, for every layer, the output
// pixels that must be computed and, for every pixel, the one that stands for it. Knows no weights.
//
// Most of an Atari picture is empty. An output whose inputs are those of the output beside or above
// it has its value too; where that holds for all inputs of an output of the next layer, it is the
// same as well. On Pong a sixth of the first layer's outputs are left, and half of the second's.
// Equal means equal byte for byte, so nothing is lost; pictures of floats are taken as they come.
#pragma once

#include <cstddef>
#include <vector>

#include "conv_shape.h"
#include "frames.h"

namespace scanline {

// Output pixels of one layer, numbered row by row.
struct SamePixels {
  std::vector<i32> firsts;    // those that stand for themselves, in order
  std::vector<i32> first_of;  // of every pixel: the one that stands for it
};

class Sameness {
 public:
  // Looks at one picture; what is given refers to it until the next look.
  void look(const std::vector<ConvShape>& shapes, const Frames& frames, i32 picture);

  const SamePixels& layer(size_t number) const { return layers_[number]; }

 private:
  // Marks the input pixels, border included, that differ from those one stride to the left and
  // above.
  template <class T>
  void compare(const ConvShape& conv, const T* const* planes, i32 num_planes);
  void join(const ConvShape& conv, SamePixels& pixels);

  std::vector<SamePixels> layers_;
  std::vector<u8> left_, up_;  // marks, a few bytes longer than a row
  std::vector<u8> left_row_, up_row_;
};

}  // namespace scanline
