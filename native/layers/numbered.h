// numbered.h -- equal keys get equal numbers.
//
// Takes keys of a fixed number of 32-bit words; gives 1, 2, 3, ... in the order in which different
// keys were first seen. Knows no meaning of a key. Number 0 is nobody's: its row is zeros.
#pragma once

#include <cstddef>
#include <vector>

#include "../core/types.h"

namespace scanline {

class Numbered {
 public:
  explicit Numbered(i32 num_words);

  i32 row_words() const { return row_words_; }  // of a row of `keys`; zeros fill it up
  i32 num() const { return num_; }
  const u32* keys() const { return keys_.data(); }

  // Room for a key, whose words stay until they are written again, and the number of what is there.
  u32* draft() { return draft_.data(); }
  i32 number_of_draft();
  void clear();
  // Forgets all keys; those that come have another number of words.
  void take_words(i32 num_words);

 private:
  u64 hash_of(const u32* key) const;
  bool is_draft(i32 number) const;
  void add_draft();
  void grow();

  // Half of a hash and a number: most strangers are told apart without a look at their keys.
  struct Slot {
    u32 mark, number;
  };

  i32 row_words_;
  i32 num_ = 0;
  std::vector<u32> draft_;
  std::vector<u32> keys_;    // rows 0 .. num
  std::vector<Slot> slots_;  // a power of two of them, at least half of them free
};

}  // namespace scanline
