// env_random.h -- the random words that ALE's environment asks for, from one of two streams.
//
// ALE's own is an MT19937 with a seed per environment; ours is Philox, keyed by environment, which
// needs no state but a count. Trivially copyable: it is part of a snapshot, so it is written as one
// list of fields (core/fields.h).
#pragma once

#include "../core/system_random.h"
#include "philox.h"
#include "settings.h"

namespace scanline {

// Bounds also use `kind`, the stream that the environment is set to.
#define SCANLINE_ENV_RANDOM_FIELDS(SCALAR, ARRAY)             \
  SCALAR(MersenneTwister, twister_, wrong_field(value))       \
  SCALAR(EnvStream, stream_, wrong_field(value))              \
  SCALAR(u32, num_drawn_, true)                               \
  SCALAR(u32, is_ale_, value == (kind == RandomStream::kAle)) \
  SCALAR(u32, unused_, value == 0) /* to a multiple of 8 bytes */

class EnvRandom {
 public:
  EnvRandom(RandomStream kind, u32 seed, const EnvStream& stream)
      : twister_(seed),
        stream_(stream),
        num_drawn_(0),
        is_ale_(kind == RandomStream::kAle),
        unused_(0) {}

  u32 next() { return is_ale_ ? twister_.next() : next_by_counter(); }

  CounterRandom counter() const { return {stream_, num_drawn_}; }
  void set_counter(const CounterRandom& counter) {
    stream_ = counter.stream;
    num_drawn_ = counter.num_drawn;
  }

  friend WrongField wrong_field(const EnvRandom& state, RandomStream kind) {
    SCANLINE_CHECK(SCANLINE_ENV_RANDOM_FIELDS);
  }

 private:
  u32 next_by_counter() {
    CounterRandom counter = this->counter();
    const u32 word = counter.next();
    num_drawn_ = counter.num_drawn;
    return word;
  }

  SCANLINE_DECLARE(SCANLINE_ENV_RANDOM_FIELDS)
};
SCANLINE_NO_PADDING(EnvRandom, SCANLINE_ENV_RANDOM_FIELDS);

}  // namespace scanline
