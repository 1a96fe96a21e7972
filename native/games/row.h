// row.h -- one game's specification as data, and the words in which the table writes it.
//
// A row answers: which bytes are the score, how a change of score becomes reward, how many lives
// are left, when the game is over, which actions make sense, and how a mode is chosen. It holds
// no behaviour: step.h and modes.h interpret it, on host and device alike.
#pragma once

#include "actions.h"
#include "condition.h"
#include "game_id.h"

namespace scanline::games {

// ---- score: a weighted sum of decoded bytes ----

struct Term {
  i32 weight = 0;
  u8 address = 0;
  Decoder decoder = Decoder::kRaw;
};

struct Score {
  Term terms[6] = {};
  i32 initial = 0;  // score before the first frame of an episode
  i32 fold = 0;     // a score of at least this much is lowered by it; 0: never
  Condition blank;  // memory shows no score, which counts as 0
  u8 num_terms = 0;

  constexpr Score plus(u8 address, Decoder decoder, i32 weight) const {
    Score result = *this;
    result.terms[result.num_terms].weight = weight;
    result.terms[result.num_terms].address = address;
    result.terms[result.num_terms++].decoder = decoder;
    return result;
  }
  constexpr Score starting_at(i32 value) const {
    Score result = *this;
    result.initial = value;
    return result;
  }
  constexpr Score folded_at(i32 value) const {
    Score result = *this;
    result.fold = value;
    return result;
  }
  constexpr Score blank_when(const Condition& condition) const {
    Score result = *this;
    result.blank = condition;
    return result;
  }
};

// One byte; two and three packed-decimal bytes, lowest digits first.
constexpr Score one(u8 address, Decoder decoder, i32 weight = 1) {
  return Score().plus(address, decoder, weight);
}
constexpr Score bcd(i32 weight, u8 low) { return one(low, Decoder::kBcd, weight); }
constexpr Score bcd(i32 weight, u8 low, u8 high) {
  return bcd(weight, low).plus(high, Decoder::kBcd, 100 * weight);
}
constexpr Score bcd(i32 weight, u8 low, u8 middle, u8 high) {
  return bcd(weight, low, middle).plus(high, Decoder::kBcd, 10000 * weight);
}
// One digit a byte, the last digit first.
template <class... Addresses>
constexpr Score digits(Decoder decoder, i32 weight, Addresses... addresses) {
  Score result;
  const u8 list[] = {static_cast<u8>(addresses)...};
  for (u8 address : list) {
    result = result.plus(address, decoder, weight);
    weight *= 10;
  }
  return result;
}
// Ours minus theirs.
constexpr Score difference(Decoder decoder, u8 ours, u8 theirs) {
  return one(ours, decoder).plus(theirs, decoder, -1);
}

// ---- reward: what becomes of a change of score ----

enum class DeltaRule : u8 {
  kPlain,
  kNotNegative,  // a fall counts as nothing
  kWraps,        // a fall means that the counter passed `value`
  kZeroOrOne,    // clipped to 0..1
  kAtMostOne,    // clipped from above
  kIgnores,      // a change by exactly `value` counts as nothing
};

struct Delta {
  DeltaRule rule = DeltaRule::kPlain;
  i32 value = 0;
};

enum class EndRule : u8 {
  kCounts,      // the last frame is like any other
  kKeepsScore,  // it gives no reward and leaves the score as it was
  kClearsScore  // it gives its reward and sets the score to 0
};

// ---- lives ----

enum class LivesRule : u8 {
  kNone,        // the game has no lives: always 0
  kAlive,       // 1 until the end
  kOne,         // 1, even after the end
  kRead,        // read from memory
  kReadWhile,   // read while the gate holds, else as before
  kReadElse,    // read while the gate holds, else `fallback`
  kDropWhile,   // read, but a loss of exactly one needs the gate
  kBitCount,    // the number of bits set
  kTally,       // bits A, 8 of pitfall's tally marks
  kFuel,        // riverraid's byte: 58 before the start, 59 for the last ship
  kCountsDown,  // from `initial`, each time that the watched byte falls by one
};

struct LivesPart {
  u8 address = 0;
  u8 mask = 0;
  u8 shift = 0;
  i8 sign = 1;
};

struct Lives {
  Condition gate;
  i32 initial = 0;
  i32 fallback = 0;
  i32 add = 0;
  LivesPart parts[2] = {};
  LivesRule rule = LivesRule::kAlive;
  u8 num_parts = 0;
  bool signed_byte = false;  // the sum is kept in 8 bits, with sign

  constexpr Lives plus(i32 value) const {
    Lives result = *this;
    result.add = value;
    return result;
  }
  constexpr Lives minus(u8 address, u8 mask) const {
    Lives result = *this;
    LivesPart& part = result.parts[result.num_parts++];
    part.address = address;
    part.mask = mask;
    part.sign = -1;
    return result;
  }
  constexpr Lives gated(LivesRule how, const Condition& condition, i32 otherwise = 0) const {
    Lives result = *this;
    result.rule = how;
    result.gate = condition;
    result.fallback = otherwise;
    return result;
  }
  constexpr Lives from(i32 value) const {
    Lives result = *this;
    result.initial = value;
    return result;
  }
  constexpr Lives in_signed_byte() const {
    Lives result = *this;
    result.signed_byte = true;
    return result;
  }
};

constexpr Lives lives_rule(LivesRule rule, u8 address = 0, u8 mask = 0xFF, u8 shift = 0) {
  Lives result;
  result.rule = rule;
  result.num_parts = address != 0 ? 1 : 0;
  result.parts[0].address = address;
  result.parts[0].mask = mask;
  result.parts[0].shift = shift;
  return result;
}
constexpr Lives no_lives() { return lives_rule(LivesRule::kNone); }
constexpr Lives lives_at(u8 address, u8 mask = 0xFF, u8 shift = 0) {
  return lives_rule(LivesRule::kRead, address, mask, shift);
}

// ---- modes ----

struct Range {
  u16 first = 0;
  u16 step = 1;
  u16 count = 0;
};

constexpr Range range(u16 first, u16 count, u16 step = 1) { return {first, step, count}; }

struct Modes {
  Range ranges[2] = {range(0, 1), {}};
  bool product = false;  // every sum of a member of both, else one range after the other
};

enum class SelectRule : u8 {
  kNothing,  // the game has no menu, and not even RESET is pressed again
  kPress,    // press SELECT until a byte shows the mode
  kAdventure,
  kDoubleDunk,
  kMsPacman,
  kVideoCube,
};

// kPress: the byte at `address` must be scale * mode + offset (or that plus `alternative`), and
// the byte at `also_address`, if any, `also_value`.
struct Select {
  u16 address = 0;  // above 0x1000: cartridge memory
  SelectRule rule = SelectRule::kNothing;
  Decoder decoder = Decoder::kRaw;
  u8 frames = 1;  // SELECT is held so long at each press
  u8 scale = 1;
  u8 offset = 0;
  u8 second_offset = 0;  // added for modes of the second range
  u8 alternative = 0;
  u8 also_address = 0;
  u8 also_value = 0;
  u8 first_press = 0;  // frames of a press that only opens the menu
  u8 wait = 0;         // frames of NOOP before anything else
  bool resets_first = false;

  constexpr Select at(u8 times, u8 plus, u8 plus_in_second_range = 0) const {
    Select result = *this;
    result.scale = times;
    result.offset = plus;
    result.second_offset = plus_in_second_range;
    return result;
  }
  constexpr Select also(u8 at_address, u8 value) const {
    Select result = *this;
    result.also_address = at_address;
    result.also_value = value;
    return result;
  }
  constexpr Select or_plus(u8 value) const {
    Select result = *this;
    result.alternative = value;
    return result;
  }
  constexpr Select in(Decoder how) const {
    Select result = *this;
    result.decoder = how;
    return result;
  }
  constexpr Select opened_by(u8 press_frames) const {
    Select result = *this;
    result.first_press = press_frames;
    return result;
  }
  constexpr Select after(u8 wait_frames) const {
    Select result = *this;
    result.wait = wait_frames;
    return result;
  }
  constexpr Select after_reset() const {
    Select result = *this;
    result.resets_first = true;
    return result;
  }
};

constexpr Select press(u16 address, u8 frames) {
  Select result;
  result.rule = SelectRule::kPress;
  result.address = address;
  result.frames = frames;
  return result;
}
constexpr Select select_by(SelectRule rule) {
  Select result;
  result.rule = rule;
  return result;
}

// ---- the row ----

struct ActionRun {
  u16 frames = 0;
  u8 action = kNoop;
};

constexpr ActionRun run(u8 action, u16 frames = 1) { return {frames, action}; }

struct GameRow {
  Score score;
  Lives lives;
  Condition end;
  Condition latch;  // sets GameState::latched for the rest of the episode
  Modes modes;
  Select select;
  Delta delta;
  ActionSet minimal_actions = kAllActions;
  ActionSet legal_actions = kAllActions;
  ActionRun starts[3] = {};  // after RESET, one frame each
  GameId game = GameId::adventure;
  EndRule end_rule = EndRule::kCounts;
  u8 difficulties = 1;          // bit i: difficulty i is offered
  u8 watch = 0;                 // address of the byte whose past value a condition asks for
  u8 watch_initial = 0;         //
  bool special = false;         // score, lives and end are code: special/<game>.h
  bool mode_masks_end = false;  // the step after a mode was chosen cannot be the end

  constexpr GameRow scores(const Score& value) const {
    GameRow row = *this;
    row.score = value;
    return row;
  }
  constexpr GameRow scores(const Score& value, DeltaRule rule, i32 by = 0) const {
    GameRow row = scores(value);
    row.delta.rule = rule;
    row.delta.value = by;
    return row;
  }
  constexpr GameRow has(const Lives& value) const {
    GameRow row = *this;
    row.lives = value;
    return row;
  }
  constexpr GameRow ends(const Condition& value, EndRule rule = EndRule::kCounts) const {
    GameRow row = *this;
    row.end = value;
    row.end_rule = rule;
    return row;
  }
  constexpr GameRow latches(const Condition& value) const {
    GameRow row = *this;
    row.latch = value;
    return row;
  }
  constexpr GameRow watches(u8 address, u8 initial) const {
    GameRow row = *this;
    row.watch = address;
    row.watch_initial = initial;
    return row;
  }
  constexpr GameRow acts(ActionSet minimal, ActionSet legal = kAllActions) const {
    GameRow row = *this;
    row.minimal_actions = minimal;
    row.legal_actions = legal;
    return row;
  }
  constexpr GameRow plays(const Select& how, Range first, Range second = {}) const {
    GameRow row = *this;
    row.select = how;
    row.modes.ranges[0] = first;
    row.modes.ranges[1] = second;
    return row;
  }
  constexpr GameRow plays_product() const {
    GameRow row = *this;
    row.modes.product = true;
    return row;
  }
  constexpr GameRow masks_end_after_mode() const {
    GameRow row = *this;
    row.mode_masks_end = true;
    return row;
  }
  constexpr GameRow offers(u8 difficulty_mask) const {
    GameRow row = *this;
    row.difficulties = difficulty_mask;
    return row;
  }
  constexpr GameRow begins(ActionRun first, ActionRun second = {}, ActionRun third = {}) const {
    GameRow row = *this;
    row.starts[0] = first;
    row.starts[1] = second;
    row.starts[2] = third;
    return row;
  }
};

constexpr GameRow game(GameId id) {
  GameRow row;
  row.game = id;
  return row;
}
constexpr GameRow coded(GameId id) {
  GameRow row = game(id);
  row.special = true;
  return row;
}

}  // namespace scanline::games
