// philox.h -- random words by counter: Philox 4x32-10 (Salmon et al., 2011).
//
// Takes a key and a counter; gives four words that depend on nothing else. The same function as
// in src/scanline/streams.py, so that Python and native code can share a seed. Holds no state: an
// environment remembers how many words each purpose has drawn, and results cannot depend on
// threads, groups or neighbours.
#pragma once

#include "../core/fields.h"

namespace scanline {

struct PhiloxKey {
  u32 low = 0, high = 0;
};

struct PhiloxWords {
  u32 word[4];
};

SCANLINE_HD inline PhiloxWords philox(PhiloxKey key, PhiloxWords counter) {
  u32 *c = counter.word, low = key.low, high = key.high;
  for (i32 round = 0; round < 10; ++round, low += 0x9E3779B9u, high += 0xBB67AE85u) {
    const u64 first = static_cast<u64>(c[0]) * 0xD2511F53u;
    const u64 second = static_cast<u64>(c[2]) * 0xCD9E8D57u;
    const u32 next0 = static_cast<u32>(second >> 32) ^ c[1] ^ low;
    const u32 next2 = static_cast<u32>(first >> 32) ^ c[3] ^ high;
    c[0] = next0;
    c[1] = static_cast<u32>(second);
    c[2] = next2;
    c[3] = static_cast<u32>(first);
  }
  return counter;
}

// What an environment draws numbers for; part of the counter, so that purposes do not disturb
// each other.
enum class Purpose : u32 { kNoops, kSkip, kSticky, kCache, kNumPurposes };

// One environment's place in the stream.
struct EnvStream {
  PhiloxKey key;
  u32 env_id = 0;

  SCANLINE_HD u32 word(Purpose purpose, u32 index) const {
    return philox(key, {{env_id, static_cast<u32>(purpose), index, 0}}).word[0];
  }
  // 0 .. limit - 1; the bias is below limit / 2^32.
  SCANLINE_HD u32 below(u32 limit, Purpose purpose, u32 index) const {
    return static_cast<u32>((static_cast<u64>(word(purpose, index)) * limit) >> 32);
  }
};
static_assert(sizeof(EnvStream) == 3 * sizeof(u32), "words, each of which may have any value");

// Words for sticky actions by counter: all that there is to remember of that stream.
struct CounterRandom {
  EnvStream stream;
  u32 num_drawn;

  SCANLINE_HD u32 next() { return stream.word(Purpose::kSticky, num_drawn++); }
};

SCANLINE_HD inline WrongField wrong_field(const EnvStream&) { return {}; }

}  // namespace scanline
