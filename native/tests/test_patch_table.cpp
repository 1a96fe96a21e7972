// test_patch_table.cpp -- ids of outputs against a plain search among all of them.
#include <map>

#include "../layers/parallel_for.h"
#include "../layers/patch_table.h"
#include "check.h"

using namespace scanline;

namespace {

using Shapes = std::vector<ConvShape>;
using Content = std::vector<i64>;

constexpr i64 kBorder = -1;

// Images as games draw them: an empty ground, some boxes, now and then the same image again.
std::vector<u8> drawn(const ConvShape& conv, i32 num, check::Random& random) {
  const i32 plane = conv.height * conv.width, size = plane * conv.channels;
  std::vector<u8> bytes(static_cast<size_t>(num * size));
  for (i32 p = 1; p < num; ++p) {
    u8* const image = bytes.data() + p * size;
    std::copy_n(image - size, size, image);
    for (i32 box = random.below(4); box > 0; --box) {
      const i32 y = random.below(conv.height), x = random.below(conv.width);
      u8* const at = image + random.below(conv.channels) * plane + y * conv.width + x;
      *at = static_cast<u8>(random.below(3));
    }
  }
  return bytes;
}

// The ids of all outputs of one layer after the other, found by a search among all.
class Search {
 public:
  explicit Search(const Shapes& shapes) : shapes_(shapes), known_(shapes.size()) {}

  std::vector<i64> ids_of(const u8* image) {
    const ConvShape& first = shapes_[0];
    std::vector<i64> below(image, image + first.height * first.width * first.channels);
    i32 planes = first.channels;
    for (size_t l = 0; l < shapes_.size(); ++l) {
      below = layer(l, below, planes);
      planes = 1;
    }
    return below;
  }

  i32 num(size_t layer) const { return static_cast<i32>(known_[layer].size()); }

 private:
  std::vector<i64> layer(size_t l, const std::vector<i64>& below, i32 planes) {
    const ConvShape& conv = shapes_[l];
    std::vector<i64> ids;
    for (i32 y = 0; y < conv.out_height(); ++y)
      for (i32 x = 0; x < conv.out_width(); ++x) {
        Content content;
        for (i32 i = 0; i < planes * conv.kernel * conv.kernel; ++i) {
          const i32 row = y * conv.stride - conv.top + i / conv.kernel % conv.kernel;
          const i32 column = x * conv.stride - conv.left + i % conv.kernel;
          const bool inside = row >= 0 && row < conv.height && column >= 0 && column < conv.width;
          const i32 plane = i / (conv.kernel * conv.kernel);
          const i32 at = (plane * conv.height + row) * conv.width + column;
          content.push_back(inside ? below[static_cast<size_t>(at)] : kBorder);
        }
        const i64 next = static_cast<i64>(known_[l].size()) + 1;
        ids.push_back(known_[l].emplace(content, next).first->second);
      }
    return ids;
  }

  const Shapes& shapes_;
  std::vector<std::map<Content, i64>> known_;
};

Frames frames_of(const ConvShape& conv, const void* data, bool bytes) {
  const i64 plane = conv.height * conv.width;
  return {data, bytes, plane * conv.channels, plane, 0.5F, -1.0F};
}

void compare(const Shapes& shapes, PatchTable& table, const std::vector<u8>& bytes, i32 num) {
  Search search(shapes);
  const size_t size = bytes.size() / static_cast<size_t>(num);
  CHECK(table.num_images() == num);
  for (i32 p = 0; p < num; ++p) {
    const std::vector<i64> expected = search.ids_of(bytes.data() + static_cast<size_t>(p) * size);
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK(table.output_ids(p)[i] == static_cast<i32>(expected[i]));
  }
  for (size_t l = 0; l < shapes.size(); ++l) CHECK(table.num_outputs(l) == search.num(l));
}

void test_shapes(const Shapes& shapes, const std::vector<i32>& calls, u64 seed) {
  check::Random random(seed);
  i32 num = 0;
  for (const i32 call : calls) num += call;
  const std::vector<u8> bytes = drawn(shapes[0], num, random);
  const std::vector<float> floats(bytes.begin(), bytes.end());
  PatchTable table(shapes);
  for (const bool as_bytes :
       {true, false, true}) {  // after `clear` nothing of the images before is left
    table.clear();
    i32 first = 0;
    for (const i32 call : calls) {
      const void* const data = as_bytes ? static_cast<const void*>(bytes.data()) : floats.data();
      table.add(frames_of(shapes[0], data, as_bytes), first, call);
      first += call;
    }
    compare(shapes, table, bytes, num);
  }
}

void test_strips_are_scaled_and_their_border_is_zero() {
  const Shapes shapes = {{8, 8, 4, 16, 8, 4, 0, 0, 4, 0}};
  const std::vector<u8> bytes(8 * 8 * 4, 6);
  PatchTable table(shapes);
  table.add(frames_of(shapes[0], bytes.data(), true), 0, 1);
  CHECK(table.num_outputs(0) == 2);
  CHECK(table.num_strips() == 2);
  const SparseRow outside = table.strips().row(1);  // strip 1 begins in the border
  for (i32 k = 0; k < 32; ++k) CHECK(outside.values[k] == (k < 16 ? 0.0F : 2.0F));
  CHECK(outside.nonzero[0] == 0xFFFF0000U);
  CHECK(table.strips().row(0).nonzero[0] == 0);
}

}  // namespace

int main() {
  const Shapes nature = {{36, 44, 4, 32, 8, 4, 0, 0, 0, 0},
                         {8, 10, 32, 64, 4, 2, 0, 0, 0, 0},
                         {3, 4, 64, 64, 3, 1, 0, 0, 0, 0}};
  const Shapes bordered = {{36, 44, 4, 16, 8, 4, 2, 2, 2, 2}, {9, 11, 16, 32, 4, 2, 1, 2, 1, 2}};
  const Shapes fine = {{20, 68, 4, 16, 8, 1, 3, 4, 3, 4}, {20, 68, 16, 32, 4, 2, 1, 1, 1, 1}};
  const Shapes odd = {{23, 31, 4, 16, 8, 3, 2, 3, 3, 2}};
  for (const i32 num_threads : {1, 2, 3}) {
    set_layer_threads(num_threads);
    u64 seed = 1;
    for (const Shapes& shapes : {nature, bordered, fine, odd}) {
      test_shapes(shapes, {1}, seed++);
      test_shapes(shapes, {4, 4, 4}, seed++);
      test_shapes(shapes, {3, 5, 1, 5}, seed++);
    }
    test_shapes(nature, {40, 2, 70}, seed);  // rounds of lanes
  }
  test_strips_are_scaled_and_their_border_is_zero();
  return check::result("patch table");
}
