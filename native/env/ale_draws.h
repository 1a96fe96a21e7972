// ale_draws.h -- the numbers that ale-py's vector environment and EnvPool draw after a reset.
//
// Both seed one MT19937 per environment and take a uniform integer from it at every reset; the
// library function they use maps a word to the range by a multiplication with rejection (Lemire,
// 2019). Only a seed and a count are remembered: the words are computed anew, which costs a few
// microseconds per reset.
#pragma once

#include "../core/system_random.h"

namespace scanline {

class AleDraws {
 public:
  SCANLINE_HD AleDraws(u32 seed, u32 num_words) : generator_(seed), num_words_(num_words) {
    generator_.skip(num_words);
  }

  // 0 .. limit - 1, limit > 0.
  SCANLINE_HD u32 below(u32 limit) {
    u64 product = next() * limit;
    if (static_cast<u32>(product) < limit) {
      const u32 threshold = (0u - limit) % limit;
      while (static_cast<u32>(product) < threshold) product = next() * limit;
    }
    return static_cast<u32>(product >> 32);
  }

  SCANLINE_HD u32 num_words() const { return num_words_; }

 private:
  SCANLINE_HD u64 next() {
    ++num_words_;
    return generator_.next();
  }

  MersenneTwister generator_;
  u32 num_words_;
};

}  // namespace scanline
