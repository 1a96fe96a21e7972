// test_bits160.cpp -- every form of Bits160 against an array of 160 booleans.
#include "../core/bits160.h"
#include "check.h"

using namespace scanline;

namespace {

struct Line {
  bool lit[160] = {};
};

template <class Bits>
bool equal(const Bits& bits, const Line& line) {
  for (int x = 0; x < 160; ++x) {
    if (((bits.chunk(x / 32) >> (x % 32)) & 1) != (line.lit[x] ? 1u : 0u)) return false;
  }
  return true;
}

bool pattern_bit(Pattern96 pattern, int i) {
  return i < 64 ? (pattern.low >> i) & 1 : (pattern.high >> (i - 64)) & 1;
}

Pattern96 random_pattern(check::Random& random) {
  Pattern96 pattern{random.bits(), static_cast<u32>(random.bits())};
  if (random.one_in(2)) pattern.high = 0;
  if (random.one_in(3)) pattern.low &= 0xFF;
  return pattern;
}

template <class Bits>
void spans_hold_their_pixels_only() {
  for (int begin = 0; begin <= 160; ++begin) {
    for (int end = begin; end <= 160; ++end) {
      Line line;
      for (int x = begin; x < end; ++x) line.lit[x] = true;
      CHECK(equal(Bits::span(begin, end), line));
      CHECK(Bits::span(begin, end).any() == (begin < end));
    }
  }
}

template <class Bits>
void a_placed_pattern_wraps_around() {
  check::Random random(2);
  for (int position = 0; position < 160; ++position) {
    for (int trial = 0; trial < 50; ++trial) {
      const Pattern96 pattern = random_pattern(random);
      Line line;
      for (int i = 0; i < 96; ++i) {
        if (pattern_bit(pattern, i)) line.lit[(position + i) % 160] = true;
      }
      CHECK(equal(Bits::place(pattern, position), line));
    }
  }
}

template <class Bits>
void halves_lie_side_by_side() {
  check::Random random(3);
  for (int trial = 0; trial < 2000; ++trial) {
    Pattern96 left = random_pattern(random), right = random_pattern(random);
    left.high &= 0xFFFF;
    right.high &= 0xFFFF;
    Line line;
    for (int i = 0; i < 80; ++i) {
      line.lit[i] = pattern_bit(left, i);
      line.lit[80 + i] = pattern_bit(right, i);
    }
    CHECK(equal(Bits::halves(left, right), line));
  }
}

template <class Bits>
void set_operations_act_on_each_pixel() {
  check::Random random(4);
  for (int trial = 0; trial < 2000; ++trial) {
    const int pa = random.below(160), pb = random.below(160);
    const Pattern96 a = random_pattern(random), b = random_pattern(random);
    const Bits bits_a = Bits::place(a, pa), bits_b = Bits::place(b, pb);
    Line line_and, line_or, line_without;
    bool meets = false;
    for (int x = 0; x < 160; ++x) {
      const int i = (x - pa + 160) % 160, j = (x - pb + 160) % 160;
      const bool lit_a = i < 96 && pattern_bit(a, i), lit_b = j < 96 && pattern_bit(b, j);
      line_and.lit[x] = lit_a && lit_b;
      line_or.lit[x] = lit_a || lit_b;
      line_without.lit[x] = lit_a && !lit_b;
      meets |= lit_a && lit_b;
    }
    CHECK(equal(bits_a & bits_b, line_and));
    CHECK(equal(bits_a | bits_b, line_or));
    CHECK(equal(without(bits_a, bits_b), line_without));
    CHECK(meet(bits_a, bits_b) == meets);
  }
  CHECK(!Bits::none().any());
}

template <class Bits>
void all() {
  spans_hold_their_pixels_only<Bits>();
  a_placed_pattern_wraps_around<Bits>();
  halves_lie_side_by_side<Bits>();
  set_operations_act_on_each_pixel<Bits>();
}

}  // namespace

int main() {
  all<Bits160Words<u32>>();
  all<Bits160Words<u64>>();
  all<Bits160>();
  return check::result("bits160");
}
