// step.h -- what one frame meant: reward, lives and end of the game, from memory.
//
// Takes a game's row, what it remembers and the console's memory (`u8 ram(u8)` for 0x80..0xFF,
// `u8 cartridge(u16)` for SuperChip memory); changes GameState only. Called once after every
// emulated frame that ALE watches; knows nothing of actions, resets or the screen.
#pragma once

#include "game_state.h"
#include "row.h"
#include "special/special.h"

namespace scanline::games {

SCANLINE_HD inline i32 shown_lives(LivesRule rule, const GameState& state) {
  if (rule == LivesRule::kOne) return 1;
  if (rule == LivesRule::kNone || state.terminal) return 0;
  return rule == LivesRule::kAlive ? 1 : state.held_lives;
}

// Forgets the last episode, but not what ALE keeps: the mode's own flag of video_checkers and
// the timer byte that video_cube compares with.
SCANLINE_HD inline void reset(const GameRow& row, GameState& state) {
  state.reward = 0;
  state.score = row.score.initial;
  state.held_lives = row.lives.initial;
  state.terminal = 0;
  state.lives = shown_lives(row.lives.rule, state);
  state.latched = 0;
  state.previous = row.watch_initial;
  state.end_masked = 0;
  if (row.special) special::reset(row.game, state);
}

template <class Memory>
SCANLINE_HD i32 read_score(const Score& score, const StepValues& values, const Memory& memory) {
  if (holds(score.blank, values, memory)) return 0;
  i32 sum = 0;
  for (u32 i = 0; i < score.num_terms; ++i) {
    const Term& term = score.terms[i];
    sum += term.weight * decode(term.decoder, memory.ram(term.address));
  }
  return score.fold != 0 && sum >= score.fold ? sum - score.fold : sum;
}

SCANLINE_HD inline i32 reward_of(Delta delta, i32 change) {
  switch (delta.rule) {
    case DeltaRule::kNotNegative:
      return change < 0 ? 0 : change;
    case DeltaRule::kWraps:
      return change < 0 ? change + delta.value : change;
    case DeltaRule::kZeroOrOne:
      return change < 0 ? 0 : change > 1 ? 1 : change;
    case DeltaRule::kAtMostOne:
      return change > 1 ? 1 : change;
    case DeltaRule::kIgnores:
      return change == delta.value ? 0 : change;
    default:
      return change;
  }
}

template <class Memory>
SCANLINE_HD i32 sum_of_parts(const Lives& lives, const Memory& memory) {
  i32 sum = lives.add;
  for (u32 i = 0; i < lives.num_parts; ++i) {
    const LivesPart& part = lives.parts[i];
    sum += part.sign * ((memory.ram(part.address) & part.mask) >> part.shift);
  }
  return lives.signed_byte ? static_cast<i8>(static_cast<u8>(sum)) : sum;
}

SCANLINE_HD inline i32 bit_count(i32 bits) {
  i32 count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}

// Pitfall shows lives as two tally marks.
SCANLINE_HD inline i32 lives_of_tally(i32 marks) { return marks == 0xA ? 3 : marks == 0x8 ? 2 : 1; }

// River Raid: eight per ship in reserve, with two values of their own.
SCANLINE_HD inline i32 lives_of_fuel(i32 byte) {
  return byte == 0x58 ? 4 : byte == 0x59 ? 1 : byte / 8 + 1;
}

// The byte counts as signed: from 80 (-128) nothing falls further.
SCANLINE_HD inline bool fell_by_one(u8 before, u8 now) {
  return before != 0x80 && static_cast<u8>(before - 1) == now;
}

template <class Memory>
SCANLINE_HD i32 read_lives(const Lives& lives, const GameState& state, const StepValues& values,
                           const Memory& memory) {
  const i32 found = sum_of_parts(lives, memory);
  switch (lives.rule) {
    case LivesRule::kReadWhile:
      return holds(lives.gate, values, memory) ? found : state.held_lives;
    case LivesRule::kReadElse:
      return holds(lives.gate, values, memory) ? found : lives.fallback;
    case LivesRule::kDropWhile:
      return found != state.held_lives - 1 || holds(lives.gate, values, memory) ? found
                                                                                : state.held_lives;
    case LivesRule::kBitCount:
      return bit_count(found);
    case LivesRule::kTally:
      return lives_of_tally(found);
    case LivesRule::kFuel:
      return lives_of_fuel(found);
    case LivesRule::kCountsDown:
      return state.held_lives - fell_by_one(state.previous, static_cast<u8>(found));
    default:
      return found;
  }
}

// Score and reward of the frame, once it is known whether it was the last.
SCANLINE_HD inline void count_score(const GameRow& row, GameState& state, i32 found) {
  if (state.terminal && row.end_rule == EndRule::kKeepsScore) {
    state.reward = 0;
    return;
  }
  state.reward = reward_of(row.delta, found - state.score);
  state.score = state.terminal && row.end_rule == EndRule::kClearsScore ? 0 : found;
}

template <class Memory>
SCANLINE_HD void step_by_row(const GameRow& row, GameState& state, const Memory& memory) {
  StepValues values = {0, 0, state.previous, state.latched};
  if (holds(row.latch, values, memory)) state.latched = values.latched = 1;
  values.score = read_score(row.score, values, memory);
  values.lives = read_lives(row.lives, state, values, memory);
  state.held_lives = values.lives;
  state.terminal = holds(row.end, values, memory) && !state.end_masked;
  state.end_masked = 0;
  if (row.watch != 0) state.previous = memory.ram(row.watch);
  count_score(row, state, values.score);
}

template <class Memory>
SCANLINE_HD void step(const GameRow& row, GameState& state, const Memory& memory) {
  if (row.special) {
    special::step(row.game, state, memory);
  } else {
    step_by_row(row, state, memory);
  }
  state.lives = shown_lives(row.lives.rule, state);
}

}  // namespace scanline::games
