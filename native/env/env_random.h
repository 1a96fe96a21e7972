// env_random.h -- the random words that ALE's environment asks for, from one of two streams.
//
// ALE's own is an MT19937 with a seed per environment; ours is Philox, keyed by environment, which
// needs no state but a count. Trivially copyable without padding: it is part of a snapshot.
#pragma once

#include "../core/system_random.h"
#include "philox.h"
#include "settings.h"

namespace scanline {

class EnvRandom {
 public:
  EnvRandom(RandomStream kind, u32 seed, const EnvStream& stream)
      : twister_(seed), stream_(stream), is_ale_(kind == RandomStream::kAle) {}

  u32 next() { return is_ale_ ? twister_.next() : stream_.word(Purpose::kSticky, num_drawn_++); }

 private:
  MersenneTwister twister_;
  EnvStream stream_;
  u32 num_drawn_ = 0;
  u32 is_ale_;
};

}  // namespace scanline
