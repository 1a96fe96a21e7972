// patch_table.h -- deduplicated patches: which outputs of the convolutions are equal.
//
// Takes the images of a pass and the geometry of all layers; gives every distinct output of every
// layer an id, and its taps as ids of the layer below. Knows no weights.
//
// Most of an Atari image is empty, and most of the rest does not move, so many outputs have equal
// inputs. In the first layer a key is the bytes of a strip; above, a key is the list of ids that an
// output reads. Only outputs whose inputs differ from those of an earlier image are looked up.
// Two threads share the work: one assigns ids to strips, the other follows it with the outputs.
// Ids count from 1 in the order of the images and depend on nothing else; id 0 is zero padding.
#pragma once

#include <cstddef>
#include <vector>

#include "conv_shape.h"
#include "frames.h"
#include "parallel_for.h"
#include "sparse_rows.h"
#include "unique_table.h"

namespace scanline {

class PatchTable {
 public:
  explicit PatchTable(const std::vector<ConvShape>& shapes);

  // Removes all images and ids. With `full_masks` all mask bits of later strips are set
  // (sparse_rows.h).
  void clear(bool full_masks = false);
  // Whether these images have the element type and scaling of those in the table.
  bool accepts(const Frames& frames) const;
  // Adds images first .. first + num - 1 of `frames`.
  void add(const Frames& frames, i32 first, i32 num);
  // Removes the last images but keeps their ids; at least one image must be left.
  void remove_last(i32 num);

  i32 num_images() const { return num_images_; }
  // Output ids of the last layer in one image, row by row.
  const i32* output_ids(i32 image) const {
    return output_ids_.data() + static_cast<i64>(image) * grids_.back().out_pixels();
  }

  const TapGrid& grid(size_t layer) const { return grids_[layer]; }
  // Distinct outputs of a layer have ids 1 .. num_outputs(layer). Row `id` of `taps` has the ids of
  // its taps; rows are `taps_stride` apart.
  i32 num_outputs(size_t layer) const { return outputs_[layer].size(); }
  const i32* taps(size_t layer) const {
    return reinterpret_cast<const i32*>(outputs_[layer].keys());
  }
  i32 taps_stride(size_t layer) const { return outputs_[layer].key_stride(); }
  // Distinct strips of the images as floats, channels last: the taps of the first layer.
  i32 num_strips() const { return strips_.size(); }
  SparseRows strips() const {
    return {strip_values_.data(), strip_masks_.data(), first_.strip_floats(),
            num_mask_words(first_.strip_floats())};
  }

 private:
  // The last image of a lane, which the next one is compared with.
  struct Lane {
    std::vector<u8> pixels;
    std::vector<std::vector<i32>> ids;  // of strips (grid 0) and of layer l's outputs (grid l + 1)
    std::vector<u8> changed_strips;     // bytes: 1 where a strip's id differs from the last image
  };

  // The cells of a row that an output reads: eight bytes from `from` on, and'ed with `mask`.
  struct Window {
    i32 from;
    u64 mask;
  };
  using Windows = std::vector<Window>;
  static Windows windows_of(i32 num, i32 stride, i32 padding, i32 size, i32 end);
  template <class Visit>
  static void for_each_changed(const u8* changed, const Windows& windows, const Visit& visit);

  // Images first .. of `frames` that are added together, one per lane.
  struct Round {
    const Frames& frames;
    i32 first;
  };
  void add_round(const Round& round, i32 num, CallSize size);
  void make_lanes(i32 num);
  void intern_strips(const Round& round, i32 lane);
  template <class T>
  void intern_strips(const T* image, i64 plane_stride, Lane& lane, bool is_first);
  template <class T>
  bool update_row(const T* row, i64 plane_stride, T* last, u8* changed) const;
  template <class T>
  i32 intern_strip(const T* row, i64 plane_stride, i32 column);
  template <class T>
  void append_strip(const T* strip, i32 from, i32 to);
  void intern_outputs(i32 lane);
  void intern_layer(size_t layer, Lane& lane);
  i32 intern_output(size_t layer, const std::vector<i32>& below, i32 y, i32 x);

  const ConvShape first_;
  std::vector<TapGrid> grids_;
  std::vector<Windows> windows_;  // of strips, then of the outputs of each layer
  UniqueTable strips_;
  std::vector<float> strip_values_;   // rows 0 .. num_strips
  std::vector<u64> strip_masks_;      // of these rows
  std::vector<UniqueTable> outputs_;  // per layer; keys are the taps of its outputs
  Frames format_{};                   // element type and scaling of the images
  bool full_masks_ = false;
  i32 num_images_ = 0;
  std::vector<i32> output_ids_;
  std::vector<Lane> lanes_;
  i32 num_used_lanes_ = 0;  // lanes that have a last image
  // Bytes that mark changes, a few bytes longer than what they mark.
  std::vector<std::vector<u8>> changed_outputs_;         // per layer
  std::vector<u8> changed_pixels_, changed_row_inputs_;  // of one row
};

}  // namespace scanline
