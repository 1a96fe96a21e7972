// filter_tiles.h -- which filters of a layer have their gradients summed together, and over which
// outputs.
//
// Takes the marks of a layer's outputs; gives tiles of filters, and for each the outputs in which
// one of them is not zero. Knows no weights and no values.
//
// A filter that is zero in all outputs has no gradient. Of the others those that are about equally
// often zero share a tile: a tile of frequent ones takes nearly all outputs, one of rare ones few.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels.h"

namespace scanline {

class FilterTiles {
 public:
  // Outputs are read in stretches of so many: their taps and gradients stay in the nearest cache.
  static constexpr i32 kStretch = FilterTileLists::kStretch;
  static constexpr i32 kMostFilters = FilterTileLists::kMostFilters;
  static_assert(kStretch <= 256, "places in a stretch are bytes");

  // Outputs 1 .. num.
  void list(const MarkedRows& outputs, i32 num) {
    order_filters(outputs, num);
    ends_.clear();
    steps_.clear();
    const FilterTileLists tiles = lists();  // of which the order is known
    for (i32 first = 1; first <= num; first += kStretch)
      for (i32 tile = 0; tile < tiles.num_tiles(); ++tile)
        list(outputs, first, std::min(kStretch, num + 1 - first), tiles.filters(tile),
             tiles.filters_of(tile));
  }

  // As kernels read them.
  FilterTileLists lists() const {
    return {order_.data(), static_cast<i32>(order_.size()), ends_.data(), steps_.data()};
  }

 private:
  // The filters that are not always zero, those that are so least often first.
  void order_filters(const MarkedRows& outputs, i32 num) {
    std::vector<i32> counts(static_cast<size_t>(outputs.num_floats));
    for (i32 output = 1; output <= num; ++output)
      for (i32 w = 0; w < outputs.words; ++w)
        for_each_bit(outputs.row(output).present[w],
                     [&](i64 k) { ++counts[static_cast<size_t>(w * kMarksPerWord + k)]; });
    order_.clear();
    for (i32 f = 0; f < outputs.num_floats; ++f)
      if (counts[static_cast<size_t>(f)] > 0) order_.push_back(f);
    const auto count = [&](i32 f) { return counts[static_cast<size_t>(f)]; };
    std::stable_sort(order_.begin(), order_.end(),
                     [&](i32 a, i32 b) { return count(a) > count(b); });
  }

  void list(const MarkedRows& outputs, i32 first, i32 num, const i32* filters, i32 num_filters) {
    std::vector<u64> wanted(static_cast<size_t>(outputs.words));
    for (i32 i = 0; i < num_filters; ++i)
      wanted[static_cast<size_t>(filters[i] / kMarksPerWord)] |= u64{1}
                                                                 << filters[i] % kMarksPerWord;
    const size_t begin = steps_.size();
    steps_.resize(begin + static_cast<size_t>(num));
    u8* to = steps_.data() + begin;
    for (i32 step = 0; step < num; ++step) {
      const u64* const present = outputs.row(first + step).present;
      u64 some = 0;
      for (size_t w = 0; w < wanted.size(); ++w) some |= present[w] & wanted[w];
      *to = static_cast<u8>(step);
      to += some != 0;
    }
    steps_.resize(static_cast<size_t>(to - steps_.data()));
    ends_.push_back(static_cast<i32>(steps_.size()));
  }

  std::vector<i32> order_;
  std::vector<i32> ends_;  // per stretch and tile
  std::vector<u8> steps_;
};

}  // namespace scanline
