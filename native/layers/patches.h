// patches.h -- which outputs of the convolutions are the same, within a picture and among pictures.
//
// Takes the pictures of a pass, one after the other, and the geometry of all layers; gives every
// different output of every layer a number, and its taps as numbers of the layer below. Knows no
// weights.
//
// Most of an Atari picture is empty, and most of the rest stands still: outputs whose inputs are
// equal byte for byte are one output. A picture is compared with the one before it, and only what
// differs is looked up: by its bytes in the first layer, by the numbers of its taps above.
// Numbers count from 1 in the order of the pictures, so that they depend on nothing else; 0 is the
// border of zeros.
#pragma once

#include <cstddef>
#include <vector>

#include "conv_shape.h"
#include "frames.h"
#include "numbered.h"

namespace scanline {

class Patches {
 public:
  explicit Patches(const std::vector<ConvShape>& shapes);

  void clear();
  // Whether pictures of this kind can join those that are here.
  bool takes(const Frames& frames) const;
  void look(const Frames& frames, i32 first, i32 num);

  i32 num_pictures() const { return num_pictures_; }
  // Numbers of the last layer's outputs in one picture, row by row.
  const i32* outputs_of(i32 picture) const {
    return outputs_.data() + static_cast<i64>(picture) * grids_.back().out_pixels();
  }

  const TapGrid& grid(size_t layer) const { return grids_[layer]; }
  // Different outputs of a layer: 1 .. num(layer), each with its taps, `taps_stride` apart.
  i32 num(size_t layer) const { return keys_[layer].num(); }
  const i32* taps(size_t layer) const { return reinterpret_cast<const i32*>(keys_[layer].keys()); }
  i32 taps_stride(size_t layer) const { return keys_[layer].row_words(); }
  // Strips of the pictures as floats, the taps of the first layer.
  i32 num_strips() const { return strips_.num(); }
  const float* strip_floats() const { return strip_floats_.data(); }

 private:
  template <class T>
  void look_at(const Frames& frames, i32 first, i32 num);
  template <class T>
  void find_strips(const T* picture, const T* before, i64 plane_stride, i64 before_stride);
  template <class T>
  i32 number_strip(const T* row, i64 plane_stride, i32 column);
  template <class T>
  void widen_strip(const T* strip);
  template <class T>
  void remember(const T* picture, i64 plane_stride);
  void find_outputs(size_t layer);
  i32 number_output(size_t layer, i32 y, i32 x);

  const ConvShape first_;
  std::vector<TapGrid> grids_;
  Numbered strips_;
  std::vector<float> strip_floats_;  // rows 0 .. num_strips, channels last
  std::vector<Numbered> keys_;       // per layer: the taps of its outputs
  Frames kind_{};
  i32 num_pictures_ = 0;
  std::vector<i32> outputs_;
  // Of the last picture that was looked at: grid 0 holds strips, grid l + 1 the outputs of layer l.
  std::vector<std::vector<i32>> now_;
  std::vector<std::vector<u8>> changed_;  // marks, a few bytes longer than the grid
  std::vector<u8> row_marks_;
  std::vector<u32> key_;
  std::vector<u8> last_picture_;
};

}  // namespace scanline
