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

  // Words of a row of `keys`; a key handed in is as long, with zeros behind its own words.
  i32 row_words() const { return row_words_; }
  i32 num() const { return num_; }
  const u32* keys() const { return keys_.data(); }

  i32 number_of(const u32* key);
  void clear();
  // Forgets all keys; those that come have another number of words.
  void take_words(i32 num_words);

 private:
  u64 hash_of(const u32* key) const;
  bool is_key(i32 number, const u32* key) const;
  void add_row(const u32* key);
  void grow();

  // Half of a hash and a number: most strangers are told apart without a look at their keys.
  struct Slot {
    u32 mark, number;
  };

  i32 row_words_;
  i32 num_ = 0;
  std::vector<u32> keys_;    // rows 0 .. num
  std::vector<Slot> slots_;  // a power of two of them, at least half of them free
};

}  // namespace scanline
