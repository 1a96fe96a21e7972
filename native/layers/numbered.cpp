// numbered.cpp -- see numbered.h. Open addressing; a hash folds 16 bytes at a time.
#include "numbered.h"

#include <algorithm>
#include <cstring>

namespace scanline {

namespace {

constexpr i32 kWordsAtOnce = 4;
constexpr size_t kFirstSlots = 1024;

// Both halves of a product of 128 bits.
u64 folded(u64 a, u64 b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<u64>(product) ^ static_cast<u64>(product >> 64);
}

}  // namespace

Numbered::Numbered(i32 num_words) { take_words(num_words); }

void Numbered::take_words(i32 num_words) {
  row_words_ = (num_words + kWordsAtOnce - 1) / kWordsAtOnce * kWordsAtOnce;
  draft_.assign(static_cast<size_t>(row_words_), 0);
  clear();
}

void Numbered::clear() {
  num_ = 0;
  keys_.assign(static_cast<size_t>(row_words_), 0);
  if (slots_.empty()) slots_.resize(kFirstSlots);
  std::fill(slots_.begin(), slots_.end(), Slot{0, 0});
}

u64 Numbered::hash_of(const u32* key) const {
  u64 hash = 0x9E3779B97F4A7C15;
  for (i32 w = 0; w < row_words_; w += kWordsAtOnce) {
    u64 two[2];
    std::memcpy(two, key + w, sizeof two);
    // The place goes in, so that exchanged words give another hash.
    hash ^=
        folded(two[0] ^ (0xD6E8FEB86659FD93 + static_cast<u64>(w)), two[1] ^ 0xA0761D6478BD642F);
  }
  return folded(hash, 0xE7037ED1A0B428DB);
}

bool Numbered::is_draft(i32 number) const {
  const u32* mine = keys_.data() + static_cast<i64>(number) * row_words_;
  u32 different = 0;
  for (i32 w = 0; w < row_words_; ++w) different |= mine[w] ^ draft_[static_cast<size_t>(w)];
  return different == 0;
}

i32 Numbered::number_of_draft() {
  const u64 hash = hash_of(draft_.data());
  const u32 mark = static_cast<u32>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  size_t at = static_cast<size_t>(hash) & mask;
  for (; slots_[at].number != 0; at = (at + 1) & mask) {
    const i32 number = static_cast<i32>(slots_[at].number);
    if (slots_[at].mark == mark && is_draft(number)) return number;
  }
  add_draft();
  slots_[at] = {mark, static_cast<u32>(num_)};
  if (2 * static_cast<size_t>(num_) > slots_.size()) grow();
  return num_;
}

void Numbered::add_draft() {
  ++num_;
  const size_t needed = (static_cast<size_t>(num_) + 1) * static_cast<size_t>(row_words_);
  if (keys_.capacity() < needed) keys_.reserve(2 * needed);
  keys_.insert(keys_.end(), draft_.begin(), draft_.end());
}

void Numbered::grow() {
  slots_.assign(2 * slots_.size(), Slot{0, 0});
  const size_t mask = slots_.size() - 1;
  for (i32 number = 1; number <= num_; ++number) {
    const u64 hash = hash_of(keys_.data() + static_cast<i64>(number) * row_words_);
    size_t at = static_cast<size_t>(hash) & mask;
    while (slots_[at].number != 0) at = (at + 1) & mask;
    slots_[at] = {static_cast<u32>(hash >> 32), static_cast<u32>(number)};
  }
}

}  // namespace scanline
