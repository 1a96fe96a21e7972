// position_pairs.h -- the distinct pairs of a position and the output found there.
//
// Takes images as output ids of the last convolution, one per position (pixel of its output);
// gives every distinct pair (position, output id) a pair id 0, 1, 2, ... in the order of arrival.
// Knows no weights and no values.
//
// A dense layer has own weights for every position, so its product with an output depends on both.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../core/types.h"

namespace scanline {

class PositionPairs {
 public:
  explicit PositionPairs(i32 num_positions)
      : num_positions_(num_positions), pairs_at_(static_cast<size_t>(num_positions)) {}

  void clear() {
    num_outputs_ = 0;
    output_ids_.clear();
    indices_.clear();
    for (std::vector<i32>& pairs : pairs_at_) pairs.clear();
  }

  // Sets images first .. first + num - 1, each a row of output ids in 1 .. max_output_id;
  // images from `first` on that were added before are replaced.
  void add(const i32* images, i32 first, i32 num, i32 max_output_id) {
    grow_pair_table(max_output_id);
    const i64 begin = static_cast<i64>(first) * num_positions_;
    of_images_.resize(static_cast<size_t>(begin + static_cast<i64>(num) * num_positions_));
    i32* to = of_images_.data() + begin;
    for (i32 i = 0; i < num; ++i)
      for (i32 position = 0; position < num_positions_; ++position)
        *to++ = pair_of(position, *images++);
  }

  i32 num_positions() const { return num_positions_; }
  i32 size() const { return static_cast<i32>(output_ids_.size()); }
  // Pair ids of one image, by position.
  const i32* of_image(i32 image) const {
    return of_images_.data() + static_cast<i64>(image) * num_positions_;
  }
  // The output id of every pair.
  const i32* output_ids() const { return output_ids_.data(); }
  // Pair ids of a position, in rising order, and the index of a pair in that list.
  const std::vector<i32>& at(i32 position) const {
    return pairs_at_[static_cast<size_t>(position)];
  }
  i32 index(i32 pair) const { return indices_[static_cast<size_t>(pair)]; }

 private:
  void grow_pair_table(i32 max_output_id) {
    const size_t positions = static_cast<size_t>(num_positions_);
    const size_t needed = (static_cast<size_t>(max_output_id) + 1) * positions;
    if (pair_table_.size() < needed) pair_table_.resize(needed + needed / 2);
    if (max_output_id < num_outputs_) return;
    std::fill(pair_table_.data() + static_cast<size_t>(num_outputs_) * positions,
              pair_table_.data() + needed, 0);
    num_outputs_ = max_output_id + 1;
  }

  i32 pair_of(i32 position, i32 output_id) {
    i32& entry = pair_table_[static_cast<size_t>(output_id) * static_cast<size_t>(num_positions_) +
                             static_cast<size_t>(position)];
    if (entry == 0) {
      std::vector<i32>& pairs = pairs_at_[static_cast<size_t>(position)];
      indices_.push_back(static_cast<i32>(pairs.size()));
      pairs.push_back(size());
      output_ids_.push_back(output_id);
      entry = size();
    }
    return entry - 1;
  }

  const i32 num_positions_;
  i32 num_outputs_ = 0;          // rows of `pair_table_` in use
  std::vector<i32> pair_table_;  // [output id][position]: pair id + 1, or 0
  std::vector<i32> output_ids_, indices_;
  std::vector<std::vector<i32>> pairs_at_;
  std::vector<i32> of_images_;
};

}  // namespace scanline
