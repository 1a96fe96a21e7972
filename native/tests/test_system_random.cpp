// Words by number against the standard library's Mersenne Twister.
#include <random>
#include <vector>

#include "../core/system_random.h"
#include "check.h"

using namespace scanline;

int main() {
  std::mt19937 standard(kSystemRandomSeed);
  std::vector<u32> words(5000);
  for (u32& word : words) word = u32(standard());
  for (u32 first : {0u, 1u, 128u, 623u, 624u, 625u, 1248u, 4000u}) {
    MersenneTwister generator = system_random(first);
    for (u32 i = first; i < words.size(); ++i) CHECK(generator.next() == words[i]);
  }
  MersenneTwister leaping(kSystemRandomSeed);
  leaping.skip(100);
  leaping.skip(2000);
  CHECK(leaping.next() == words[2100]);
  return check::result("system_random");
}
