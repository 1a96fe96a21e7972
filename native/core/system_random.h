// system_random.h -- the words that fill RAM and timer at power-on and reset.
//
// ALE seeds a Mersenne Twister with one fixed number in every console and never reseeds it, so a
// word is known by its number alone and a console only counts how many it has drawn. Computing
// word n costs about n nanoseconds, little beside the frames that a reset emulates.
#pragma once

#include "types.h"

namespace scanline {

constexpr u32 kSystemRandomSeed = 4753849;

// MT19937 (Matsumoto and Nishimura, 1998).
class MersenneTwister {
 public:
  SCANLINE_HD explicit MersenneTwister(u32 seed) {
    words_[0] = seed;
    for (u32 i = 1; i < kSize; ++i) {
      words_[i] = 1812433253u * (words_[i - 1] ^ (words_[i - 1] >> 30)) + i;
    }
  }

  SCANLINE_HD u32 next() {
    if (position_ == kSize) twist();
    u32 y = words_[position_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9D2C5680u;
    y ^= (y << 15) & 0xEFC60000u;
    return y ^ (y >> 18);
  }

  SCANLINE_HD void skip(u32 num_words) {
    while (num_words > kSize - position_) {
      num_words -= kSize - position_;
      twist();
    }
    position_ += num_words;
  }

 private:
  static constexpr u32 kSize = 624, kShift = 397;

  SCANLINE_HD void twist() {
    for (u32 i = 0; i < kSize; ++i) {
      const u32 y = (words_[i] & 0x80000000u) | (words_[(i + 1) % kSize] & 0x7FFFFFFFu);
      words_[i] = words_[(i + kShift) % kSize] ^ (y >> 1) ^ ((y & 1) ? 0x9908B0DFu : 0);
    }
    position_ = 0;
  }

  u32 words_[kSize];
  u32 position_ = kSize;
};

// Continues the fixed sequence behind `num_drawn` words.
SCANLINE_HD inline MersenneTwister system_random(u32 num_drawn) {
  MersenneTwister generator(kSystemRandomSeed);
  generator.skip(num_drawn);
  return generator;
}

}  // namespace scanline
