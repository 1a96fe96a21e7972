// test_numbered.cpp -- numbers of keys against a map.
#include <algorithm>
#include <map>

#include "../layers/numbered.h"
#include "check.h"

using namespace scanline;

namespace {

using Key = std::vector<u32>;

Key random_key(i32 num_words, check::Random& random) {
  Key key(static_cast<size_t>(num_words));
  for (u32& word : key) word = static_cast<u32>(random.below(4));
  return key;
}

i32 number_of(Numbered& numbered, const Key& key) {
  std::copy(key.begin(), key.end(), numbered.draft());
  return numbered.number_of_draft();
}

void test_equal_keys_have_equal_numbers(Numbered& numbered, i32 num_words) {
  check::Random random(static_cast<u64>(num_words));
  std::map<Key, i32> expected;
  for (int i = 0; i < 20000; ++i) {
    const Key key = random_key(num_words, random);
    const i32 next = static_cast<i32>(expected.size()) + 1;
    CHECK(number_of(numbered, key) == expected.emplace(key, next).first->second);
  }
  CHECK(numbered.num() == static_cast<i32>(expected.size()));
  for (const auto& [key, number] : expected)
    CHECK(std::equal(key.begin(), key.end(), numbered.keys() + number * numbered.row_words()));
}

void test_row_zero_is_zeros(const Numbered& numbered) {
  for (i32 w = 0; w < numbered.row_words(); ++w) CHECK(numbered.keys()[w] == 0);
}

}  // namespace

int main() {
  Numbered numbered(8);
  for (const i32 num_words : {8, 9, 1, 16, 33}) {
    numbered.take_words(num_words);
    test_equal_keys_have_equal_numbers(numbered, num_words);
    test_row_zero_is_zeros(numbered);
    numbered.clear();
    test_equal_keys_have_equal_numbers(numbered, num_words);  // from 1 again
  }
  return check::result("numbered");
}
