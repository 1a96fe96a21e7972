// condition.h -- questions about memory as data: an OR of ANDs of comparisons.
//
// Written as C++ (`ram(0xC7) == 1 && lives == 1 || score == 10`), kept as a small array that
// host and device interpret. A sum of products: `||` binds clauses, never the inside of one.
#pragma once

#include "decode.h"

namespace scanline::games {

// Sources below 0x80 are not memory: values of the step that asks.
enum Source : u8 { kScoreSource, kLivesSource, kPreviousSource, kLatchedSource };

enum class Compare : u8 { kEqual, kNotEqual, kLess, kGreater };

struct Test {
  i32 value = 0;
  u8 source = 0;
  u8 mask = 0xFF;
  Decoder decoder = Decoder::kRaw;
  Compare compare = Compare::kEqual;
};

constexpr u32 kMaxTests = 5;

struct Condition {
  Test tests[kMaxTests] = {};
  u8 num_tests = 0;
  u8 clause_ends = 0;  // bit i: test i is the last of its clause

  constexpr bool empty() const { return num_tests == 0; }
};

// ---- writing conditions ----

constexpr Condition condition(Test test) {
  Condition result;
  result.tests[0] = test;
  result.num_tests = 1;
  result.clause_ends = 1;
  return result;
}

constexpr Condition joined(Condition a, const Condition& b, bool same_clause) {
  if (same_clause) a.clause_ends &= static_cast<u8>(~(1u << (a.num_tests - 1)));
  for (u32 i = 0; i < b.num_tests; ++i) {
    if (b.clause_ends >> i & 1) a.clause_ends |= static_cast<u8>(1u << a.num_tests);
    a.tests[a.num_tests++] = b.tests[i];  // beyond kMaxTests: no constant expression, no build
  }
  return a;
}

constexpr Condition operator&&(const Condition& a, const Condition& b) {
  return joined(a, b, true);
}
constexpr Condition operator||(const Condition& a, const Condition& b) {
  return joined(a, b, false);
}

struct Operand {
  u8 source = 0;
  u8 mask = 0xFF;
  Decoder decoder = Decoder::kRaw;

  constexpr Condition test(Compare compare, i32 value) const {
    Test result;
    result.value = value;
    result.source = source;
    result.mask = mask;
    result.decoder = decoder;
    result.compare = compare;
    return condition(result);
  }
};

constexpr Condition operator==(Operand a, i32 value) { return a.test(Compare::kEqual, value); }
constexpr Condition operator!=(Operand a, i32 value) { return a.test(Compare::kNotEqual, value); }
constexpr Condition operator<(Operand a, i32 value) { return a.test(Compare::kLess, value); }
constexpr Condition operator>(Operand a, i32 value) { return a.test(Compare::kGreater, value); }
constexpr Condition operator>=(Operand a, i32 value) {
  return a.test(Compare::kGreater, value - 1);
}

namespace words {

constexpr Operand ram(u8 address, u8 mask = 0xFF) { return {address, mask, Decoder::kRaw}; }
constexpr Operand ram(u8 address, Decoder decoder) { return {address, 0xFF, decoder}; }

constexpr Operand score{kScoreSource, 0xFF, Decoder::kRaw};
constexpr Operand lives{kLivesSource, 0xFF, Decoder::kRaw};
constexpr Operand previous{kPreviousSource, 0xFF, Decoder::kRaw};
constexpr Operand latched{kLatchedSource, 0xFF, Decoder::kRaw};

}  // namespace words

// ---- answering them ----

SCANLINE_HD constexpr bool compares(Compare compare, i32 a, i32 b) {
  switch (compare) {
    case Compare::kNotEqual:
      return a != b;
    case Compare::kLess:
      return a < b;
    case Compare::kGreater:
      return a > b;
    default:
      return a == b;
  }
}

// What the sources that are not memory are worth in the step that asks.
struct StepValues {
  i32 score, lives;
  u8 previous, latched;
};

SCANLINE_HD constexpr i32 value_of(u8 source, const StepValues& values) {
  switch (source) {
    case kScoreSource:
      return values.score;
    case kLivesSource:
      return values.lives;
    case kPreviousSource:
      return values.previous;
    default:
      return values.latched;
  }
}

template <class Memory>
SCANLINE_HD bool holds(const Test& test, const StepValues& values, const Memory& memory) {
  i32 found;
  if (test.source < 0x80) {
    found = value_of(test.source, values);
  } else {
    found = decode(test.decoder, static_cast<u8>(memory.ram(test.source) & test.mask));
  }
  return compares(test.compare, found, test.value);
}

template <class Memory>
SCANLINE_HD bool holds(const Condition& condition, const StepValues& values, const Memory& memory) {
  bool clause = true;
  for (u32 i = 0; i < condition.num_tests; ++i) {
    clause = clause && holds(condition.tests[i], values, memory);
    if (condition.clause_ends >> i & 1) {
      if (clause) return true;
      clause = true;
    }
  }
  return false;
}

}  // namespace scanline::games
