// system_random.h -- the words that fill RAM and timer at power-on and reset.
//
// ALE seeds a Mersenne Twister with one fixed number in every console and never reseeds it, so a
// word is known by its number alone and a console only counts how many it has drawn. Computing
// word n costs about half a nanosecond times n, little beside the frames that a reset emulates.
#pragma once

#include "fields.h"

namespace scanline {

constexpr u32 kSystemRandomSeed = 4753849;

// Most words that a snapshot may ask to skip, a fraction of a second: two million resets of a
// SuperChip cartridge, which draws 129 each time, 268 million of any other.
constexpr u32 kMaxSkippedWords = 1u << 28;

constexpr u32 kTwisterWords = 624;
#define SCANLINE_TWISTER_FIELDS(SCALAR, ARRAY) \
  ARRAY(u32, words_, kTwisterWords, true)      \
  SCALAR(u32, position_, value <= kTwisterWords) /* of the next word; at the end: twist first */

// MT19937 (Matsumoto and Nishimura, 1998).
class MersenneTwister {
 public:
  SCANLINE_HD explicit MersenneTwister(u32 seed) {
    words_[0] = seed;
    position_ = kSize;
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

  SCANLINE_HD friend WrongField wrong_field(const MersenneTwister& state) {
    SCANLINE_CHECK(SCANLINE_TWISTER_FIELDS);
  }

 private:
  static constexpr u32 kSize = kTwisterWords, kShift = 397;

  SCANLINE_HD static u32 mixed(u32 word, u32 next) {
    const u32 y = (word & 0x80000000u) | (next & 0x7FFFFFFFu);
    return (y >> 1) ^ ((0u - (y & 1)) & 0x9908B0DFu);
  }

  // Two loops without a remainder: compilers make vectors of them.
  SCANLINE_HD void twist() {
    constexpr u32 kRest = kSize - kShift;
    for (u32 i = 0; i < kRest; ++i)
      words_[i] = words_[i + kShift] ^ mixed(words_[i], words_[i + 1]);
    for (u32 i = kRest; i < kSize - 1; ++i)
      words_[i] = words_[i - kRest] ^ mixed(words_[i], words_[i + 1]);
    words_[kSize - 1] = words_[kShift - 1] ^ mixed(words_[kSize - 1], words_[0]);
    position_ = 0;
  }

  SCANLINE_DECLARE(SCANLINE_TWISTER_FIELDS)
};
SCANLINE_NO_PADDING(MersenneTwister, SCANLINE_TWISTER_FIELDS);

// Continues the fixed sequence behind `num_drawn` words.
SCANLINE_HD inline MersenneTwister system_random(u32 num_drawn) {
  MersenneTwister generator(kSystemRandomSeed);
  generator.skip(num_drawn);
  return generator;
}

}  // namespace scanline
