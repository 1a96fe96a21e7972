// filter_tiles.h -- which filters of a layer have their weight gradients summed together, and over
// which outputs.
//
// Takes the masks of a layer's outputs; gives tiles of filters, and for each tile the outputs in
// which at least one of its filters is not zero. Knows no weights and no values.
//
// A filter that is zero in all outputs has no gradient. The other filters are sorted by how often
// they are not zero and cut into tiles, so that a tile of rare filters visits few outputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels.h"

namespace scanline {

class FilterTiles {
 public:
  static constexpr i32 kBlockOutputs = FilterTileLists::kBlockOutputs;
  static_assert(kBlockOutputs <= 256, "an output's index in its block is a byte");

  // Of outputs 1 .. num.
  void build(const SparseRows& outputs, i32 num) {
    sort_filters(outputs, num);
    ends_.clear();
    indices_.clear();
    const FilterTileLists tiles = lists();  // only its filters are used here
    for (i32 first = 1; first <= num; first += kBlockOutputs)
      for (i32 tile = 0; tile < tiles.num_tiles(); ++tile)
        append_list(outputs, first, std::min(kBlockOutputs, num + 1 - first), tiles.filters(tile),
                    tiles.num_filters_of(tile));
  }

  // A view for the kernels.
  FilterTileLists lists() const {
    return {filters_.data(), static_cast<i32>(filters_.size()), ends_.data(), indices_.data()};
  }

 private:
  // The filters that are not zero in some output, most frequent first.
  void sort_filters(const SparseRows& outputs, i32 num) {
    std::vector<i32> counts(static_cast<size_t>(outputs.num_values));
    for (i32 output = 1; output <= num; ++output)
      for (i32 w = 0; w < outputs.mask_words; ++w)
        for_each_set_bit(outputs.row(output).nonzero[w],
                         [&](i64 k) { ++counts[static_cast<size_t>(w * kMaskBits + k)]; });
    filters_.clear();
    for (i32 f = 0; f < outputs.num_values; ++f)
      if (counts[static_cast<size_t>(f)] > 0) filters_.push_back(f);
    const auto count = [&](i32 f) { return counts[static_cast<size_t>(f)]; };
    std::stable_sort(filters_.begin(), filters_.end(),
                     [&](i32 a, i32 b) { return count(a) > count(b); });
  }

  // The list of one block (outputs first .. first + num - 1) and one tile.
  void append_list(const SparseRows& outputs, i32 first, i32 num, const i32* filters,
                   i32 num_filters) {
    std::vector<u64> tile_mask(static_cast<size_t>(outputs.mask_words));
    for (i32 i = 0; i < num_filters; ++i)
      tile_mask[static_cast<size_t>(filters[i] / kMaskBits)] |= u64{1} << filters[i] % kMaskBits;
    const size_t begin = indices_.size();
    indices_.resize(begin + static_cast<size_t>(num));
    u8* to = indices_.data() + begin;
    for (i32 index = 0; index < num; ++index) {
      const u64* const nonzero = outputs.row(first + index).nonzero;
      u64 any = 0;
      for (size_t w = 0; w < tile_mask.size(); ++w) any |= nonzero[w] & tile_mask[w];
      *to = static_cast<u8>(index);
      to += any != 0;
    }
    indices_.resize(static_cast<size_t>(to - indices_.data()));
    ends_.push_back(static_cast<i32>(indices_.size()));
  }

  std::vector<i32> filters_;
  std::vector<i32> ends_;    // per block and tile, in `indices_`
  std::vector<u8> indices_;  // of outputs in their block
};

}  // namespace scanline
