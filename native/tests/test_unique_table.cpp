// test_unique_table.cpp -- ids of keys against a map.
#include <algorithm>
#include <map>

#include "../layers/unique_table.h"
#include "check.h"

using namespace scanline;

namespace {

using Key = std::vector<u32>;

Key random_key(i32 num_words, check::Random& random) {
  Key key(static_cast<size_t>(num_words));
  for (u32& word : key) word = static_cast<u32>(random.below(4));
  return key;
}

i32 id_of(UniqueTable& table, const Key& key) {
  std::copy(key.begin(), key.end(), table.key_buffer());
  return table.intern();
}

void test_equal_keys_have_equal_ids(UniqueTable& table, i32 num_words) {
  check::Random random(static_cast<u64>(num_words));
  std::map<Key, i32> expected;
  for (int i = 0; i < 20000; ++i) {
    const Key key = random_key(num_words, random);
    const i32 next = static_cast<i32>(expected.size()) + 1;
    CHECK(id_of(table, key) == expected.emplace(key, next).first->second);
  }
  CHECK(table.size() == static_cast<i32>(expected.size()));
  for (const auto& [key, id] : expected)
    CHECK(std::equal(key.begin(), key.end(), table.keys() + id * table.key_stride()));
}

void test_row_zero_is_zeros(const UniqueTable& table) {
  for (i32 w = 0; w < table.key_stride(); ++w) CHECK(table.keys()[w] == 0);
}

}  // namespace

int main() {
  UniqueTable table(8);
  for (const i32 num_words : {8, 9, 1, 16, 33}) {
    table.reset(num_words);
    test_equal_keys_have_equal_ids(table, num_words);
    test_row_zero_is_zeros(table);
    table.clear();
    test_equal_keys_have_equal_ids(table, num_words);  // from 1 again
  }
  return check::result("unique table");
}
