// test_filter_tiles.cpp -- tiles of filters against a check of every filter and output.
#include <set>

#include "../layers/filter_tiles.h"
#include "check.h"

using namespace scanline;

namespace {

// Masks of outputs 0 .. num; filter f is set in one of f % 5 + 1 outputs, in none if f % 5 is 4.
struct Masks {
  Masks(i32 num, i32 filters, check::Random& random)
      : filters(filters), words(num_mask_words(filters)) {
    bits.resize(static_cast<size_t>((num + 1) * words));
    for (i32 output = 1; output <= num; ++output)
      for (i32 f = 0; f < filters; ++f)
        if (f % 5 != 4 && random.below(f % 5 + 1) == 0)
          bits[static_cast<size_t>(output * words + f / 64)] |= u64{1} << f % 64;
  }

  SparseRows rows() const { return {nullptr, bits.data(), filters, words}; }
  bool has(i32 output, i32 f) const {
    return (bits[static_cast<size_t>(output * words + f / 64)] >> f % 64 & 1) != 0;
  }

  i32 filters, words;
  std::vector<u64> bits;
};

void check_filters(const FilterTileLists& tiles, const Masks& masks, i32 num) {
  std::set<i32> listed;
  i32 before = num;
  for (i32 tile = 0; tile < tiles.num_tiles(); ++tile)
    for (i32 i = 0; i < tiles.num_filters_of(tile); ++i) {
      const i32 f = tiles.filters(tile)[i];
      CHECK(listed.insert(f).second);
      i32 count = 0;
      for (i32 output = 1; output <= num; ++output) count += masks.has(output, f);
      CHECK(count > 0 && count <= before);
      before = count;
    }
  for (i32 f = 0; f < masks.filters; ++f)
    for (i32 output = 1; output <= num; ++output) CHECK(!masks.has(output, f) || listed.count(f));
}

void check_outputs(const FilterTileLists& tiles, const Masks& masks, i32 num) {
  for (i32 tile = 0; tile < tiles.num_tiles(); ++tile)
    for (i32 output = 1; output <= num; ++output) {
      const i32 block = (output - 1) / FilterTiles::kBlockOutputs;
      const u8 index = static_cast<u8>((output - 1) % FilterTiles::kBlockOutputs);
      const u8 *const begin = tiles.begin(block, tile), *const end = tiles.end(block, tile);
      CHECK(std::is_sorted(begin, end));
      bool some = false;
      for (i32 i = 0; i < tiles.num_filters_of(tile); ++i)
        some = some || masks.has(output, tiles.filters(tile)[i]);
      CHECK(std::count(begin, end, index) == (some ? 1 : 0));
    }
}

}  // namespace

int main() {
  check::Random random(3);
  FilterTiles tiles;  // `build` replaces the lists
  for (const i32 filters : {16, 64, 80})
    for (const i32 num : {0, 1, 95, 96, 97, 300}) {
      const Masks masks(num, filters, random);
      tiles.build(masks.rows(), num);
      check_filters(tiles.lists(), masks, num);
      check_outputs(tiles.lists(), masks, num);
    }
  return check::result("filter tiles");
}
