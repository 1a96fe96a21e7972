// patches.h -- which outputs of the convolutions are the same, within a picture and among pictures.
//
// Takes the pictures of a pass, one after the other, and the geometry of all layers; gives every
// different output of every layer a number, and its taps as numbers of the layer below. Knows no
// weights.
//
// Most of an Atari picture is empty, and most of the rest stands still: outputs whose inputs are
// equal byte for byte are one output. A picture is compared with an earlier one, and only what
// differs is looked up: by its bytes in the first layer, by the numbers of its taps above. Two
// threads can share it: one finds strips, the other follows it with the outputs.
// Numbers count from 1 in the order of the pictures, so that they depend on nothing else; 0 is the
// border of zeros.
#pragma once

#include <cstddef>
#include <vector>

#include "conv_shape.h"
#include "frames.h"
#include "numbered.h"
#include "present.h"
#include "workers.h"

namespace scanline {

class Patches {
 public:
  explicit Patches(const std::vector<ConvShape>& shapes);

  // With `marks_all` every pixel is marked as present, zero or not (present.h).
  void clear(bool marks_all = false);
  // Whether pictures of this kind can join those that are here.
  bool takes(const Frames& frames) const;
  void look(const Frames& frames, i32 first, i32 num);
  // Takes back the last pictures, but not their numbers; some picture must be left.
  void forget_last(i32 num);

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
  MarkedRows strips() const {
    return {strip_floats_.data(), strip_present_.data(), first_.run(), words_for(first_.run())};
  }

 private:
  // A picture that was looked at: its pixels, and the numbers of its strips (grid 0) and of the
  // outputs of layer l (grid l + 1).
  struct Seen {
    std::vector<u8> pixels;
    std::vector<std::vector<i32>> numbers;
    std::vector<u8> changed;  // marks of the strips that differ from the picture before
  };

  // Places of a row that an output reads: from one of them on, as a mask of bytes.
  struct Window {
    i32 from;
    u64 mask;
  };
  using Windows = std::vector<Window>;
  static Windows windows_of(i32 num, i32 stride, i32 before, i32 size, i32 end);
  template <class Visit>
  static void for_each_marked(const u8* marks, const Windows& windows, const Visit& visit);

  // Pictures of one round, each in a lane of its own.
  struct Round {
    const Frames& frames;
    i32 first;
  };
  void look_at(const Round& round, i32 num, Size size);
  void make_lanes(i32 num);
  void find_strips(const Round& round, i32 lane);
  template <class T>
  void find_strips(const T* picture, i64 plane_stride, Seen& seen, bool all);
  void find_outputs(i32 lane);
  template <class T>
  bool mark_differences(const T* row, i64 plane_stride, T* seen, u8* marks) const;
  template <class T>
  i32 number_strip(const T* row, i64 plane_stride, i32 column);
  template <class T>
  void widen_strip(const T* strip, i32 from, i32 to);
  void find_layer(size_t layer, Seen& seen);
  i32 number_output(size_t layer, const std::vector<i32>& below, i32 y, i32 x);

  const ConvShape first_;
  std::vector<TapGrid> grids_;
  std::vector<Windows> windows_;  // of strips, then of the outputs of each layer
  Numbered strips_;
  std::vector<float> strip_floats_;  // rows 0 .. num_strips, channels last
  std::vector<u64> strip_present_;   // which of them are not zero
  std::vector<Numbered> keys_;       // per layer: the taps of its outputs
  Frames kind_{};
  bool marks_all_ = false;
  i32 num_pictures_ = 0;
  std::vector<i32> outputs_;
  // A picture is compared with the one at its place in the round before.
  std::vector<Seen> seen_;
  i32 num_lanes_ = 0;
  std::vector<std::vector<u8>> changed_;     // outputs per layer; a few bytes longer than its grid
  std::vector<u8> strip_marks_, row_marks_;  // of one row: pixels, and what outputs read
};

}  // namespace scanline
