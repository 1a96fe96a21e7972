// test_filter_tiles.cpp -- tiles of filters against a look at every filter and output.
#include <set>

#include "../layers/filter_tiles.h"
#include "check.h"

using namespace scanline;

namespace {

// Marks of outputs 0 .. num; filter f is marked in one of f % 5 + 1 outputs, in none if f % 5 is 4.
struct Marks {
  Marks(i32 num, i32 filters, check::Random& random) : filters(filters), words(words_for(filters)) {
    bits.resize(static_cast<size_t>((num + 1) * words));
    for (i32 output = 1; output <= num; ++output)
      for (i32 f = 0; f < filters; ++f)
        if (f % 5 != 4 && random.below(f % 5 + 1) == 0)
          bits[static_cast<size_t>(output * words + f / 64)] |= u64{1} << f % 64;
  }

  MarkedRows rows() const { return {nullptr, bits.data(), filters, words}; }
  bool has(i32 output, i32 f) const {
    return (bits[static_cast<size_t>(output * words + f / 64)] >> f % 64 & 1) != 0;
  }

  i32 filters, words;
  std::vector<u64> bits;
};

void check_filters(const FilterTileLists& tiles, const Marks& marks, i32 num) {
  std::set<i32> listed;
  i32 before = num;
  for (i32 tile = 0; tile < tiles.num_tiles(); ++tile)
    for (i32 i = 0; i < tiles.filters_of(tile); ++i) {
      const i32 f = tiles.filters(tile)[i];
      CHECK(listed.insert(f).second);
      i32 count = 0;
      for (i32 output = 1; output <= num; ++output) count += marks.has(output, f);
      CHECK(count > 0 && count <= before);
      before = count;
    }
  for (i32 f = 0; f < marks.filters; ++f)
    for (i32 output = 1; output <= num; ++output) CHECK(!marks.has(output, f) || listed.count(f));
}

void check_outputs(const FilterTileLists& tiles, const Marks& marks, i32 num) {
  for (i32 tile = 0; tile < tiles.num_tiles(); ++tile)
    for (i32 output = 1; output <= num; ++output) {
      const i32 stretch = (output - 1) / FilterTiles::kStretch;
      const u8 step = static_cast<u8>((output - 1) % FilterTiles::kStretch);
      const u8 *const begin = tiles.begin(stretch, tile), *const end = tiles.end(stretch, tile);
      CHECK(std::is_sorted(begin, end));
      bool some = false;
      for (i32 i = 0; i < tiles.filters_of(tile); ++i)
        some = some || marks.has(output, tiles.filters(tile)[i]);
      CHECK(std::count(begin, end, step) == (some ? 1 : 0));
    }
}

}  // namespace

int main() {
  check::Random random(3);
  FilterTiles tiles;  // what was listed before is forgotten
  for (const i32 filters : {16, 64, 80})
    for (const i32 num : {0, 1, 95, 96, 97, 300}) {
      const Marks marks(num, filters, random);
      tiles.list(marks.rows(), num);
      check_filters(tiles.lists(), marks, num);
      check_outputs(tiles.lists(), marks, num);
    }
  return check::result("filter tiles");
}
