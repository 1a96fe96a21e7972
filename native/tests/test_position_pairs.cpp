// test_position_pairs.cpp -- ids of (position, output) pairs against a map.
#include <map>
#include <utility>

#include "../layers/position_pairs.h"
#include "check.h"

using namespace scanline;

namespace {

constexpr i32 kPositions = 5;

using Expected = std::map<std::pair<i32, i32>, i32>;  // of position and output id

std::vector<i32> drawn(i32 num, i32 max_output_id, check::Random& random) {
  std::vector<i32> images(static_cast<size_t>(num * kPositions));
  for (i32& output_id : images) output_id = 1 + random.below(max_output_id);
  return images;
}

void check_images(const PositionPairs& pairs, const std::vector<i32>& images, i32 first,
                  Expected& expected) {
  for (size_t i = 0; i < images.size(); ++i) {
    const i32 position = static_cast<i32>(i) % kPositions;
    const i32 next = static_cast<i32>(expected.size());
    const i32 id = expected.emplace(std::make_pair(position, images[i]), next).first->second;
    CHECK(pairs.of_image(first)[i] == id);
    CHECK(pairs.output_ids()[id] == images[i]);
    CHECK(pairs.at(position)[static_cast<size_t>(pairs.index(id))] == id);
  }
}

// Output ids grow from call to call; the last images of a call are replaced by the next one's.
void test_ids_count_different_pairs(PositionPairs& pairs, check::Random& random) {
  Expected expected;
  i32 first = 0;
  for (const i32 max_output_id : {1, 3, 3, 40, 41, 200}) {
    const i32 num = 1 + random.below(6);
    const std::vector<i32> images = drawn(num, max_output_id, random);
    pairs.add(images.data(), first, num, max_output_id);
    check_images(pairs, images, first, expected);
    first += num - random.below(num);
  }
  CHECK(pairs.size() == static_cast<i32>(expected.size()));
  i32 num_listed = 0;
  for (i32 position = 0; position < kPositions; ++position)
    num_listed += static_cast<i32>(pairs.at(position).size());
  CHECK(num_listed == pairs.size());
}

}  // namespace

int main() {
  check::Random random(7);
  PositionPairs pairs(kPositions);
  for (int i = 0; i < 20; ++i) {
    test_ids_count_different_pairs(pairs, random);
    pairs.clear();
  }
  return check::result("position pairs");
}
