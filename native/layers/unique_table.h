// unique_table.h -- a hash table that gives equal keys equal ids (interning).
//
// Takes keys of a fixed number of 32-bit words; gives ids 1, 2, 3, ... in the order in which
// distinct keys first came. Keys are compared whole, so ids never depend on the hash. Id 0 is
// reserved: its key row is zeros. Knows no meaning of a key.
#pragma once

#include <cstddef>
#include <vector>

#include "../core/types.h"

namespace scanline {

class UniqueTable {
 public:
  explicit UniqueTable(i32 key_words);

  i32 size() const { return size_; }                // distinct keys: ids 1 .. size
  i32 key_stride() const { return key_stride_; }    // words from one key to the next, zero-padded
  const u32* keys() const { return keys_.data(); }  // rows 0 .. size

  // The caller writes a key into this buffer, whose words stay until they are overwritten, and
  // then calls `intern` for its id.
  u32* key_buffer() { return buffer_.data(); }
  i32 intern();
  // Removes all keys.
  void clear();
  // Removes all keys and changes their number of words.
  void reset(i32 key_words);

 private:
  u64 hash_of(const u32* key) const;
  bool equals_buffer(i32 id) const;
  void append_buffer();
  void grow();

  // The upper half of a hash as a tag, and an id: most different keys differ in their tags.
  struct Slot {
    u32 tag, id;
  };

  i32 key_stride_;
  i32 size_ = 0;
  std::vector<u32> buffer_;
  std::vector<u32> keys_;
  std::vector<Slot> slots_;  // a power of two; at least half of them are free (id 0)
};

}  // namespace scanline
