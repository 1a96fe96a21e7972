// check.h -- the whole test framework: CHECK, a counter, and a seeded random source.
//
// A test program calls CHECK as often as it likes and returns check_result() from main: 0 if all
// held. The first failures are printed, the rest only counted.
#pragma once

#include <cstdint>
#include <cstdio>

namespace check {

inline int failures = 0;
inline long checks = 0;

inline void report(bool holds, const char* text, const char* file, int line) {
  ++checks;
  if (holds) return;
  if (++failures <= 20) std::printf("%s:%d: does not hold: %s\n", file, line, text);
}

inline int result(const char* name) {
  std::printf("%s: %ld checks, %d failures\n", name, checks, failures);
  return failures == 0 ? 0 : 1;
}

// splitmix64: small, seeded, equal on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  int below(int limit) { return static_cast<int>(bits() % static_cast<std::uint64_t>(limit)); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace check

// Sanitizers need memory and threads of their own: some limits cannot be set with them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SCANLINE_SANITIZED 1
#else
#define SCANLINE_SANITIZED 0
#endif

#define CHECK(expression) check::report((expression), #expression, __FILE__, __LINE__)
