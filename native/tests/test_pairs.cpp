// test_pairs.cpp -- ids of places and outputs against a map.
#include <map>
#include <utility>

#include "../layers/pairs.h"
#include "check.h"

using namespace scanline;

namespace {

constexpr i32 kPlaces = 5;

using Expected = std::map<std::pair<i32, i32>, i32>;  // of place and number

std::vector<i32> drawn(i32 num, i32 most_number, check::Random& random) {
  std::vector<i32> pictures(static_cast<size_t>(num * kPlaces));
  for (i32& number : pictures) number = 1 + random.below(most_number);
  return pictures;
}

void check_pictures(const Pairs& pairs, const std::vector<i32>& pictures, i32 first,
                    Expected& expected) {
  for (size_t i = 0; i < pictures.size(); ++i) {
    const i32 place = static_cast<i32>(i) % kPlaces;
    const i32 next = static_cast<i32>(expected.size());
    const i32 id = expected.emplace(std::make_pair(place, pictures[i]), next).first->second;
    CHECK(pairs.of_picture(first)[i] == id);
    CHECK(pairs.numbers()[id] == pictures[i]);
    CHECK(pairs.at(place)[static_cast<size_t>(pairs.slot(id))] == id);
  }
}

// Numbers grow from call to call; the last pictures of a call are replaced by the next one's.
void test_ids_count_different_pairs(Pairs& pairs, check::Random& random) {
  Expected expected;
  i32 first = 0;
  for (const i32 most_number : {1, 3, 3, 40, 41, 200}) {
    const i32 num = 1 + random.below(6);
    const std::vector<i32> pictures = drawn(num, most_number, random);
    pairs.add(pictures.data(), first, num, most_number);
    check_pictures(pairs, pictures, first, expected);
    first += num - random.below(num);
  }
  CHECK(pairs.num() == static_cast<i32>(expected.size()));
  i32 num_listed = 0;
  for (i32 place = 0; place < kPlaces; ++place)
    num_listed += static_cast<i32>(pairs.at(place).size());
  CHECK(num_listed == pairs.num());
}

}  // namespace

int main() {
  check::Random random(7);
  Pairs pairs(kPlaces);
  for (int i = 0; i < 20; ++i) {
    test_ids_count_different_pairs(pairs, random);
    pairs.clear();
  }
  return check::result("pairs");
}
