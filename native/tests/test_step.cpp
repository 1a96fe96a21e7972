// test_step.cpp -- the interpreter of rows: each rule once, on rows made for the purpose.
//
// That the real rows mean what ALE means is tested from Python, against ALE itself.
#include "../games/step.h"
#include "../games/table.h"
#include "check.h"

using namespace scanline;
using namespace scanline::games;

namespace {

struct Bytes {
  u8 bytes[128] = {};
  u8 ram(u8 address) const { return bytes[address & 0x7F]; }
  u8 cartridge(u16) const { return 0; }
  u8& operator[](u8 address) { return bytes[address & 0x7F]; }
};

// Steps through values of one byte.
struct Played {
  GameRow row;
  GameState state = {};
  Bytes memory;

  explicit Played(const GameRow& game_row) : row(game_row) { reset(row, state); }

  const GameState& put(u8 address, u8 value) {
    memory[address] = value;
    step(row, state, memory);
    return state;
  }
};

GameRow counting(DeltaRule rule, i32 by = 0) {
  return game(GameId::pong).scores(bcd(1, 0x90), rule, by);
}

void test_changes_of_score() {
  Played plain(counting(DeltaRule::kPlain));
  CHECK(plain.put(0x90, 0x15).reward == 15 && plain.put(0x90, 0x12).reward == -3);
  Played rising(counting(DeltaRule::kNotNegative));
  CHECK(rising.put(0x90, 0x15).reward == 15 && rising.put(0x90, 0x12).reward == 0);
  Played wrapping(counting(DeltaRule::kWraps, 100));
  CHECK(wrapping.put(0x90, 0x98).reward == 98 && wrapping.put(0x90, 0x01).reward == 3);
  Played stepping(counting(DeltaRule::kZeroOrOne));
  CHECK(stepping.put(0x90, 0x15).reward == 1 && stepping.put(0x90, 0x12).reward == 0);
  Played limited(counting(DeltaRule::kAtMostOne));
  CHECK(limited.put(0x90, 0x15).reward == 1 && limited.put(0x90, 0x12).reward == -3);
  Played ignoring(counting(DeltaRule::kIgnores, 50));
  CHECK(ignoring.put(0x90, 0x50).reward == 0 && ignoring.put(0x90, 0x51).reward == 1);
}

void test_the_last_frame() {
  using namespace words;
  const GameRow row = counting(DeltaRule::kPlain);
  Played counts(row.ends(ram(0x91) == 1));
  counts.put(0x90, 0x10);
  counts.memory[0x90] = 0x12;
  CHECK(counts.put(0x91, 1).reward == 2 && counts.state.terminal && counts.state.lives == 0);
  Played keeps(row.ends(ram(0x91) == 1, EndRule::kKeepsScore));
  keeps.put(0x90, 0x10);
  keeps.memory[0x90] = 0x12;
  CHECK(keeps.put(0x91, 1).reward == 0 && keeps.state.score == 10);
  Played clears(row.ends(ram(0x91) == 1, EndRule::kClearsScore));
  clears.put(0x90, 0x10);
  clears.memory[0x90] = 0x12;
  CHECK(clears.put(0x91, 1).reward == 2 && clears.state.score == 0);
}

void test_lives() {
  using namespace words;
  const GameRow row = game(GameId::pong);
  Played held(row.has(lives_at(0x90).from(5).gated(LivesRule::kReadWhile, ram(0x91) == 1)));
  CHECK(held.put(0x90, 3).lives == 5 && held.put(0x91, 1).lives == 3);
  Played other(row.has(lives_at(0x90).gated(LivesRule::kReadElse, ram(0x91) == 1, 6)));
  CHECK(other.put(0x90, 3).lives == 6 && other.put(0x91, 1).lives == 3);
  Played slow(row.has(lives_at(0x90).from(3).gated(LivesRule::kDropWhile, ram(0x91) == 1)));
  CHECK(slow.put(0x90, 2).lives == 3 && slow.put(0x91, 1).lives == 2);
  Played bits(row.has(lives_rule(LivesRule::kBitCount, 0x90, 0x07)));
  CHECK(bits.put(0x90, 0xFD).lives == 2);
  Played wide(row.has(lives_at(0x90).plus(1)));
  CHECK(wide.put(0x90, 0xFF).lives == 256);
  Played narrow(row.has(lives_at(0x90).plus(1).in_signed_byte()));
  CHECK(narrow.put(0x90, 0xFF).lives == 0 && narrow.put(0x90, 0x7F).lives == -128);
  Played none(row.has(no_lives()));
  CHECK(none.put(0x90, 4).lives == 0);
}

void test_a_byte_that_counts_down() {
  Played qbert(row_of(GameId::qbert));
  CHECK(qbert.put(0x88, 0x02).lives == 4 && qbert.put(0x88, 0x01).lives == 3);
  CHECK(qbert.put(0x88, 0x00).lives == 2 && qbert.put(0x88, 0xFF).lives == 1);
  CHECK(!qbert.state.terminal && qbert.put(0x88, 0x02).terminal);
  CHECK(!fell_by_one(0x80, 0x7F) && fell_by_one(0x00, 0xFF));
}

void test_a_latch_waits_for_its_sign() {
  Played breakout(row_of(GameId::breakout));
  CHECK(!breakout.put(0xB9, 0).terminal);
  CHECK(!breakout.put(0xB9, 5).terminal && breakout.state.latched);
  CHECK(breakout.put(0xB9, 0).terminal);
  reset(breakout.row, breakout.state);
  CHECK(!breakout.state.latched && !breakout.state.terminal);
}

void test_an_end_can_be_masked_for_one_step() {
  Played demon(row_of(GameId::demon_attack));
  demon.state.end_masked = 1;
  demon.memory[0xF2] = 0;
  CHECK(!demon.put(0xF1, 0xBD).terminal && demon.put(0xF1, 0xBD).terminal);
}

void test_every_row_steps_on_any_memory() {
  check::Random random(2);
  for (u32 i = 0; i < kNumGames; ++i) {
    Played played(row_of(static_cast<GameId>(i)));
    for (int frame = 0; frame < 200; ++frame) {
      for (u8& byte : played.memory.bytes) byte = static_cast<u8>(random.bits());
      step(played.row, played.state, played.memory);
      CHECK(played.state.terminal <= 1);
    }
  }
}

}  // namespace

int main() {
  test_changes_of_score();
  test_the_last_frame();
  test_lives();
  test_a_byte_that_counts_down();
  test_a_latch_waits_for_its_sign();
  test_an_end_can_be_masked_for_one_step();
  test_every_row_steps_on_any_memory();
  return check::result("test_step");
}
