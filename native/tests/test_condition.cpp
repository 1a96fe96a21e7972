// test_condition.cpp -- conditions against the same expression in plain C++.
#include "../games/condition.h"
#include "check.h"

using namespace scanline;
using namespace scanline::games;

namespace {

struct Bytes {
  u8 bytes[128];
  u8 ram(u8 address) const { return bytes[address & 0x7F]; }
};

void fill(Bytes& memory, check::Random& random) {
  for (u8& byte : memory.bytes) byte = static_cast<u8>(random.below(4));
}

void test_sums_of_products() {
  using namespace words;
  constexpr Condition condition =
      (ram(0x80) == 1 && ram(0x81, 0x02) != 0) || (ram(0x82) > 1 && ram(0x83) < 2) || score == 3;
  check::Random random(1);
  Bytes memory;
  for (int i = 0; i < 2000; ++i) {
    fill(memory, random);
    const StepValues values = {random.below(5), 0, 0, 0};
    const u8* b = memory.bytes;
    const bool expected =
        (b[0] == 1 && (b[1] & 2) != 0) || (b[2] > 1 && b[3] < 2) || values.score == 3;
    CHECK(holds(condition, values, memory) == expected);
  }
}

void test_values_that_are_not_memory() {
  using namespace words;
  const Bytes memory = {};
  const StepValues values = {7, 2, 0x59, 1};
  CHECK(holds(score >= 7 && lives == 2 && previous == 0x59 && latched == 1, values, memory));
  CHECK(!holds(score >= 8, values, memory));
  CHECK(!holds(lives < 2, values, memory));
}

void test_an_empty_condition_never_holds() {
  const Bytes memory = {};
  CHECK(!holds(Condition(), StepValues{}, memory));
}

void test_decoders() {
  CHECK(decode(Decoder::kRaw, 0x9C) == 0x9C);
  CHECK(decode(Decoder::kBcd, 0x42) == 42);
  CHECK(decode(Decoder::kBcd, 0x9A) == 100);
  CHECK(decode(Decoder::kLowDigit, 0x7A) == 0 && decode(Decoder::kHighDigit, 0xA3) == 0);
  CHECK(decode(Decoder::kLowNibble, 0x7A) == 10 && decode(Decoder::kHighNibble, 0xA3) == 10);
  CHECK(decode(Decoder::kKnockout, 0xC0) == 100 && decode(Decoder::kKnockout, 0x99) == 99);
  CHECK(decode(Decoder::kEighth, 0x80) == 0 && decode(Decoder::kEighth, 0x48) == 9);
  CHECK(decode(Decoder::kEighthOrBlank, 0x48) == 9 && decode(Decoder::kEighthOrBlank, 0x50) == 0);
  CHECK(decode(Decoder::kEighthOrBlank, 0x41) == 0);
}

}  // namespace

int main() {
  test_sums_of_products();
  test_values_that_are_not_memory();
  test_an_empty_condition_never_holds();
  test_decoders();
  return check::result("test_condition");
}
