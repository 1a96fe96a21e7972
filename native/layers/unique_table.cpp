// unique_table.cpp -- open addressing with linear probing; the hash reads 16 bytes at a time.
#include "unique_table.h"

#include <algorithm>
#include <cstring>

namespace scanline {

namespace {

constexpr i32 kWordsAtOnce = 4;
constexpr size_t kInitialSlots = 1024;

// The two halves of a 128-bit product, xored.
u64 folded_product(u64 a, u64 b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<u64>(product) ^ static_cast<u64>(product >> 64);
}

}  // namespace

UniqueTable::UniqueTable(i32 key_words) { reset(key_words); }

void UniqueTable::reset(i32 key_words) {
  key_stride_ = (key_words + kWordsAtOnce - 1) / kWordsAtOnce * kWordsAtOnce;
  buffer_.assign(static_cast<size_t>(key_stride_), 0);
  clear();
}

void UniqueTable::clear() {
  size_ = 0;
  keys_.assign(static_cast<size_t>(key_stride_), 0);
  if (slots_.empty()) slots_.resize(kInitialSlots);
  std::fill(slots_.begin(), slots_.end(), Slot{0, 0});
}

u64 UniqueTable::hash_of(const u32* key) const {
  u64 hash = 0x9E3779B97F4A7C15;
  for (i32 w = 0; w < key_stride_; w += kWordsAtOnce) {
    u64 two[2];
    std::memcpy(two, key + w, sizeof two);
    // The index is mixed in, so that exchanged words give another hash.
    hash ^= folded_product(two[0] ^ (0xD6E8FEB86659FD93 + static_cast<u64>(w)),
                           two[1] ^ 0xA0761D6478BD642F);
  }
  return folded_product(hash, 0xE7037ED1A0B428DB);
}

bool UniqueTable::equals_buffer(i32 id) const {
  const u32* key = keys_.data() + static_cast<i64>(id) * key_stride_;
  u32 different = 0;
  for (i32 w = 0; w < key_stride_; ++w) different |= key[w] ^ buffer_[static_cast<size_t>(w)];
  return different == 0;
}

i32 UniqueTable::intern() {
  const u64 hash = hash_of(buffer_.data());
  const u32 tag = static_cast<u32>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  size_t at = static_cast<size_t>(hash) & mask;
  for (; slots_[at].id != 0; at = (at + 1) & mask) {
    const i32 id = static_cast<i32>(slots_[at].id);
    if (slots_[at].tag == tag && equals_buffer(id)) return id;
  }
  append_buffer();
  slots_[at] = {tag, static_cast<u32>(size_)};
  if (2 * static_cast<size_t>(size_) > slots_.size()) grow();
  return size_;
}

void UniqueTable::append_buffer() {
  ++size_;
  const size_t needed = (static_cast<size_t>(size_) + 1) * static_cast<size_t>(key_stride_);
  if (keys_.capacity() < needed) keys_.reserve(2 * needed);
  keys_.insert(keys_.end(), buffer_.begin(), buffer_.end());
}

void UniqueTable::grow() {
  slots_.assign(2 * slots_.size(), Slot{0, 0});
  const size_t mask = slots_.size() - 1;
  for (i32 id = 1; id <= size_; ++id) {
    const u64 hash = hash_of(keys_.data() + static_cast<i64>(id) * key_stride_);
    size_t at = static_cast<size_t>(hash) & mask;
    while (slots_[at].id != 0) at = (at + 1) & mask;
    slots_[at] = {static_cast<u32>(hash >> 32), static_cast<u32>(id)};
  }
}

}  // namespace scanline
