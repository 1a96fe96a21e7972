// test_tia_objects.cpp -- every closed form of tia_objects.h against a slow definition.
//
// Definitions are written out here as lists and loops, in the words of the behaviour: offsets of
// copies, pixels of a pattern, order of the playfield's bits.
#include <vector>

#include "../core/tia_objects.h"
#include "check.h"

using namespace scanline;

namespace {

std::vector<int> copy_offsets(int mode) {
  switch (mode) {
    case 1:
      return {0, 16};
    case 2:
      return {0, 32};
    case 3:
      return {0, 16, 32};
    case 4:
      return {0, 64};
    case 6:
      return {0, 32, 64};
    default:
      return {0};
  }
}

int pixel_width(int mode) { return mode == 5 ? 2 : (mode == 7 ? 4 : 1); }

void a_player_is_its_pattern_at_every_copy() {
  const int patterns[] = {0x80, 0x01, 0xA5, 0xFF, 0x3C};
  for (int pattern : patterns) {
    for (int mode = 0; mode < 8; ++mode) {
      for (int hidden = 0; hidden < 2; ++hidden) {
        for (int pos = 0; pos < 160; ++pos) {
          bool line[160] = {};
          for (int offset : copy_offsets(mode)) {
            if (hidden && offset == 0) continue;
            for (int bit = 0; bit < 8 * pixel_width(mode); ++bit) {
              if (pattern & (0x80 >> (bit / pixel_width(mode))))
                line[(pos + offset + bit + (pixel_width(mode) > 1 ? 1 : 0)) % 160] = true;
            }
          }
          bool equal = true;
          for (int x = 0; x < 160; ++x)
            equal &= player_at(u8(pattern), u32(mode), pos, hidden != 0, x) == line[x];
          CHECK(equal);
        }
      }
    }
  }
}

void a_missile_is_a_bar_at_every_copy_and_the_ball_is_one_bar() {
  for (int mode = 0; mode < 8; ++mode) {
    for (int size = 0; size < 4; ++size) {
      for (int pos = 0; pos < 160; ++pos) {
        bool missile[160] = {}, ball[160] = {};
        for (int bit = 0; bit < (1 << size); ++bit) {
          for (int offset : copy_offsets(mode)) missile[(pos + offset + bit) % 160] = true;
          ball[(pos + bit) % 160] = true;
        }
        const u32 nusiz = u32(mode | (size << 4));
        bool equal = true;
        for (int x = 0; x < 160; ++x) {
          equal &= missile_at(nusiz, narrow_width(nusiz), pos, x) == missile[x];
          equal &= ball_at(narrow_width(nusiz), pos, x) == ball[x];
        }
        CHECK(equal);
      }
    }
  }
}

bool playfield_by_definition(int pf0, int pf1, int pf2, bool reflected, int x) {
  int column = x / 4;
  if (column >= 20) column = reflected ? 39 - column : column - 20;
  if (column < 4) return (pf0 >> (4 + column)) & 1;
  if (column < 12) return (pf1 >> (7 - (column - 4))) & 1;
  return (pf2 >> (column - 12)) & 1;
}

void the_playfield_reads_its_registers_in_their_order() {
  check::Random random(1);
  for (int trial = 0; trial < 4000; ++trial) {
    const int pf0 = random.below(256), pf1 = random.below(256), pf2 = random.below(256);
    const u32 bits = playfield_bits(u8(pf0), u8(pf1), u8(pf2));
    CHECK(bits < (1u << 20));
    const u32 mirrored = mirrored_playfield_bits(u8(pf0), u8(pf1), u8(pf2));
    for (int i = 0; i < 20; ++i) CHECK(((bits >> i) & 1) == ((mirrored >> (19 - i)) & 1));
    CHECK(mirrored < (1u << 20));
    for (int reflected = 0; reflected < 2; ++reflected) {
      bool equal = true;
      for (int x = 0; x < 160; ++x)
        equal &= playfield_at(bits, reflected != 0, x) ==
                 playfield_by_definition(pf0, pf1, pf2, reflected != 0, x);
      CHECK(equal);
    }
  }
  for (int value = 0; value < 256; ++value) {
    int mirrored = 0;
    for (int bit = 0; bit < 8; ++bit) mirrored |= ((value >> bit) & 1) << (7 - bit);
    CHECK(reverse_bits(u8(value)) == mirrored);
  }
}

// The whole table of 76 x 16 motions that ALE uses, as one fingerprint (FNV-1a over its bytes).
void motion_has_the_fingerprint_of_ales_table() {
  std::uint64_t fingerprint = 0xCBF29CE484222325ull;
  for (int cycle = 0; cycle < 76; ++cycle) {
    for (u32 nibble = 0; nibble < 16; ++nibble) {
      fingerprint =
          (fingerprint ^ u8(hmove_motion(hmove_bounds(cycle), nibble))) * 0x100000001B3ull;
    }
  }
  CHECK(fingerprint == 0x59D168952173DE20ull);
  for (u32 nibble = 0; nibble < 16; ++nibble) CHECK(hmove_motion(hmove_bounds(40), nibble) == 0);
  CHECK(hmove_motion(hmove_bounds(3), 7) == -7 && hmove_motion(hmove_bounds(3), 8) == 8);
  for (int cycle = 0; cycle < 76; ++cycle)
    CHECK(hmove_keeps_zero(hmove_bounds(cycle)) == (hmove_motion(hmove_bounds(cycle), 0) == 0));
}

void a_player_reset_meets_starts_and_copies_of_the_old_place() {
  for (int mode = 0; mode < 8; ++mode) {
    for (int old_pos = 0; old_pos < 160; ++old_pos) {
      ResetMeets expected[160];
      for (ResetMeets& meets : expected) meets = ResetMeets::kNothing;
      for (int offset : copy_offsets(mode)) {
        for (int i = 0; i < 4 + 8 * pixel_width(mode); ++i)
          expected[(old_pos + offset + i) % 160] = i < 4 ? ResetMeets::kStart : ResetMeets::kCopy;
      }
      bool equal = true;
      for (int x = 0; x < 160; ++x)
        equal &= player_reset_meets(u32(mode), old_pos, x) == expected[x];
      CHECK(equal);
    }
  }
}

void resets_put_objects_where_the_beam_is() {
  for (int clock = 0; clock < 228; ++clock) {
    CHECK(player_reset_position(clock) == (clock < 68 ? 3 : (clock - 63) % 160));
    CHECK(narrow_reset_position(clock) == (clock < 68 ? 2 : (clock - 64) % 160));
  }
  CHECK(missile0_reset_position(69, 60) == 8 && missile0_reset_position(69, 63) == 5);
  CHECK(missile1_reset_position(18, 9) == 3 && missile1_reset_position(18, 12) == 2);
  CHECK(ball_reset_position(60, 54) == 10 && ball_reset_position(69, 54) == 10);
  CHECK(ball_reset_position(18, 9) == 3 && ball_reset_position(30, 21) == 6);
  CHECK(ball_reset_position(27, 18) == 5 && ball_reset_position(63, 54) == 2);
}

void each_pair_of_objects_has_one_latch() {
  for (u32 a = 0; a < kNumObjects; ++a) {
    for (u32 b = a + 1; b < kNumObjects; ++b) {
      const u32 latches = latches_of(object_bit(a) | object_bit(b));
      CHECK(latches != 0 && (latches & (latches - 1)) == 0);
    }
    CHECK(latches_of(object_bit(a)) == 0);
  }
  CHECK(latches_of((1 << kM0) | (1 << kP1)) == 1 << 0);            // CXM0P D7
  CHECK(latches_of((1 << kM1) | (1 << kP1)) == 1 << 3);            // CXM1P D6
  CHECK(latches_of((1 << kP1) | (1 << kBall)) == 1 << 7);          // CXP1FB D6
  CHECK(latches_of((1 << kBall) | (1 << kPlayfield)) == 1 << 12);  // CXBLPF D7
  CHECK(latches_of((1 << kM0) | (1 << kM1)) == 1 << 15);           // CXPPMM D6
  CHECK(latches_of(0x3F) == 0xDFFF);
}

// Later lines paint over earlier ones.
int colour_by_painting(bool score, bool first, u32 objects, bool left) {
  const bool playfield = objects & (1 << kPlayfield), ball = objects & (1 << kBall);
  const bool zero = objects & ((1 << kP0) | (1 << kM0)), one = objects & ((1 << kP1) | (1 << kM1));
  int colour = kColourBackground;
  if (first) {
    if (one) colour = kColourP1;
    if (zero) colour = kColourP0;
    if (ball || playfield) colour = kColourPlayfield;
    return colour;
  }
  if (ball) colour = kColourPlayfield;
  if (playfield) colour = score ? (left ? kColourP0 : kColourP1) : kColourPlayfield;
  if (one && colour != kColourP0) colour = kColourP1;
  if (zero) colour = kColourP0;
  return colour;
}

void priority_equals_painting_from_back_to_front() {
  for (u32 enabled = 0; enabled < 64; ++enabled) {
    for (u32 ctrlpf = 0; ctrlpf < 8; ctrlpf += 2) {
      const bool score = ctrlpf & 2, alone = enabled == object_bit(kPlayfield);
      const bool first = (ctrlpf & 4) && !(score && alone);
      for (u32 objects = 0; objects < 64; ++objects) {
        if (objects & ~enabled) continue;
        for (int left = 0; left < 2; ++left)
          CHECK(colour_at(priority_of(ctrlpf, enabled), objects, left != 0) ==
                colour_by_painting(score, first, objects, left != 0));
      }
    }
  }
}

}  // namespace

int main() {
  a_player_is_its_pattern_at_every_copy();
  a_missile_is_a_bar_at_every_copy_and_the_ball_is_one_bar();
  the_playfield_reads_its_registers_in_their_order();
  motion_has_the_fingerprint_of_ales_table();
  a_player_reset_meets_starts_and_copies_of_the_old_place();
  resets_put_objects_where_the_beam_is();
  each_pair_of_objects_has_one_latch();
  priority_equals_painting_from_back_to_front();
  return check::result("tia_objects");
}
