// ale_environment.h -- ALE's environment around one console: act, reset, modes, sticky actions.
//
// Takes a console and a row of the game table; gives reward, lives, end and frame counters that
// are equal to ale-py's frame by frame. An episode's agent steps are not its business.
//
//   Console: SeenConsole<...>; it draws unseen frames only when their pictures are asked for
//   Random:  u32 next(); ALE's own stream is MersenneTwister, seeded with `random_seed`
//
// A frame may be emulated unseen, which leaves its picture undrawn; show_pictures() draws what is
// missing of the last two. The constructor is ALE's loadROM: it ends with one full reset.
#pragma once

#include "../core/console_state.h"
#include "../core/controllers.h"
#include "../core/rom.h"
#include "../core/system_random.h"
#include "../games/modes.h"
#include "../games/step.h"

namespace scanline {

struct AleSettings {
  float repeat_action_probability = 0.25f;  // of each frame, for each player
  i32 episode_limit_frames = 0;             // truncates the episode; 0: never
};

// What an environment remembers besides its console and its random stream, as one list of fields
// (core/fields.h). Bounds also use `row` and `properties`.
#define SCANLINE_ALE_FIELDS(SCALAR, ARRAY)                                                 \
  SCALAR(games::GameState, game, wrong_field(value))                                       \
  /* how far the two players have turned their paddles */                                  \
  ARRAY(i32, paddles, 2, value >= kPaddleMin && value <= properties.paddle_max)            \
  ARRAY(float, strength, 2, is_within(value, 1.0f)) /* of the held actions, for paddles */ \
  SCALAR(i32, frame_number, value >= 0)                                                    \
  SCALAR(i32, episode_frame_number, value >= 0)                                            \
  SCALAR(u32, mode, games::has_mode(row, value))                                           \
  SCALAR(u32, difficulty, value == 0 || games::has_difficulty(row, value))                 \
  /* actions in force, as asked for: players A and B */                                    \
  ARRAY(u8, held, 2, value < games::kNumActions)                                           \
  SCALAR(u8, mode_failed, value <= 1)                                                      \
  SCALAR(u8, unused, value == 0)

struct AleState {
  SCANLINE_DECLARE(SCANLINE_ALE_FIELDS)
};
SCANLINE_NO_PADDING(AleState, SCANLINE_ALE_FIELDS);

SCANLINE_HD inline WrongField wrong_field(const AleState& state, const games::GameRow& row,
                                          const Properties& properties) {
  SCANLINE_CHECK(SCANLINE_ALE_FIELDS);
}

template <class ConsoleType, class Random = MersenneTwister>
class AleEnvironment {
 public:
  static constexpr u32 kNoopFrames = 60, kResetFrames = 4;

  SCANLINE_HD AleEnvironment(const RomImage& rom, const games::GameRow& row,
                             const AleSettings& settings, const Random& random)
      : console_(rom), row_(row), settings_(settings), random_(random) {
    state_.mode = games::mode_at(row, 0);
    state_.strength[0] = state_.strength[1] = 1.0f;
    reset(true);
  }

  // Goes on with a running environment; the console is made of `source`.
  template <class Source>
  SCANLINE_HD AleEnvironment(Source& source, const games::GameRow& row, const AleSettings& settings,
                             const Random& random, const AleState& state)
      : console_(source), row_(row), settings_(settings), random_(random), state_(state) {}

  // ---- acting ----

  // One frame. Actions are 0..17 for both players; what the game does not allow is a NOOP.
  SCANLINE_HD i32 act(u32 action_a, bool seen = true) {
    return act(action_a, games::kNoop, 1.0f, 1.0f, seen);
  }

  SCANLINE_HD i32 act(u32 action_a, u32 action_b, float strength_a, float strength_b,
                      bool seen = true) {
    ask(0, action_a, strength_a);
    ask(1, action_b, strength_b);
    if (game_over() || truncated()) return 0;
    emulate({{allowed(state_.held[0]), allowed(state_.held[1])},
             {state_.strength[0], state_.strength[1]}},
            1, seen);
    count_frame();
    return state_.game.reward;
  }

  // ALE's reset_game, which is no function of the ROM alone: RAM survives it.
  SCANLINE_HD void reset(bool seen = false) {
    state_.episode_frame_number = 0;
    for (i32& resistance : state_.paddles) resistance = centred_paddle(console_.properties());
    console_.system_reset();
    emulate(player_a(games::kNoop), kNoopFrames, seen);
    soft_reset(seen);
    games::reset(row_, state_.game);
    Driver driver{*this, seen};
    state_.mode_failed = !games::select_mode(row_, state_.game, state_.mode, driver);
    soft_reset(seen);
    for (const games::ActionRun& run : row_.starts) {
      emulate(player_a(run.action), run.frames, seen);
    }
  }

  // ---- settings that change while it runs ----

  // From the next reset on; the caller has checked that the game offers it.
  SCANLINE_HD void set_mode(u32 mode) { state_.mode = mode; }
  // From the next frame on: bit 0 left switch, bit 1 right switch in position A.
  SCANLINE_HD void set_difficulty(u32 difficulty) { state_.difficulty = difficulty; }
  SCANLINE_HD u32 mode() const { return state_.mode; }
  SCANLINE_HD u32 difficulty() const { return state_.difficulty; }
  // The menu of the last reset never showed the mode (ALE would still be pressing SELECT).
  SCANLINE_HD bool mode_failed() const { return state_.mode_failed != 0; }

  // ---- results ----

  SCANLINE_HD bool game_over() const { return state_.game.terminal != 0; }
  SCANLINE_HD bool truncated() const {
    const i32 limit = settings_.episode_limit_frames;
    return limit > 0 && state_.episode_frame_number >= limit;
  }
  SCANLINE_HD i32 lives() const { return state_.game.lives; }
  SCANLINE_HD i32 frame_number() const { return state_.frame_number; }
  SCANLINE_HD i32 episode_frame_number() const { return state_.episode_frame_number; }
  SCANLINE_HD const games::GameRow& row() const { return row_; }
  SCANLINE_HD ConsoleType& console() { return console_; }
  SCANLINE_HD const Properties& properties() const { return console_.properties(); }
  SCANLINE_HD const u8* ram() const { return console_.machine.ram; }
  SCANLINE_HD i32 screen_height() const { return console_.screen_height(); }
  SCANLINE_HD const u8* screen() const { return console_.screen(); }
  SCANLINE_HD const u8* previous_screen() const { return console_.previous_screen(); }

  // Draws the newest picture, or the newest two, if that has not been done.
  SCANLINE_HD void show_pictures(i32 count = 2) { console_.show_pictures(count); }

  // All that there is to remember besides the console.
  SCANLINE_HD AleState& state() { return state_; }
  SCANLINE_HD Random& random() { return random_; }

  // ---- snapshots ----

  struct Snapshot {
    ConsoleSnapshot console;
    AleState state;
    Random random;
  };
  static constexpr bool kSnapshotHasPadding =
      sizeof(Snapshot) != sizeof(ConsoleSnapshot) + sizeof(AleState) + sizeof(Random);

  // The first field of a snapshot of unknown origin that forbids to restore it; `kind` are further
  // arguments of the random stream's check.
  template <class... Kind>
  SCANLINE_HD static WrongField check(const Snapshot& snapshot, CartridgeType type,
                                      const Properties& properties, const games::GameRow& row,
                                      Kind... kind) {
    if (const WrongField wrong = wrong_field(snapshot.console, type, properties)) return wrong;
    if (const WrongField wrong = wrong_field(snapshot.state, row, properties)) return wrong;
    return wrong_field(snapshot.random, kind...);
  }

  // For `save` to fill.
  SCANLINE_HD Snapshot blank_snapshot() const { return {{}, {}, random_}; }
  SCANLINE_HD void save(Snapshot& snapshot) {
    console_.save(snapshot.console);
    snapshot.state = state_;
    snapshot.random = random_;
  }
  SCANLINE_HD void restore(const Snapshot& snapshot) {
    console_.restore(snapshot.console);
    state_ = snapshot.state;
    random_ = snapshot.random;
  }
  // Takes over the game of a snapshot, but keeps its own random stream and frame count.
  template <class Start>
  SCANLINE_HD void start_from(const Start& snapshot) {
    const i32 frame_number = state_.frame_number;
    console_.restore(snapshot.console);
    state_ = snapshot.state;
    state_.frame_number = frame_number;
  }

 private:
  // What the score rules may read.
  struct Memory {
    const ConsoleType& console;
    SCANLINE_HD u8 ram(u8 address) const { return console.ram(address); }
    SCANLINE_HD u8 cartridge(u16 address) const { return console.cartridge_ram(address); }
  };

  // What the selection of a mode may do.
  struct Driver {
    AleEnvironment& env;
    bool seen;
    SCANLINE_HD u8 ram(u8 address) const { return env.console_.ram(address); }
    SCANLINE_HD u8 cartridge(u16 address) const { return env.console_.cartridge_ram(address); }
    SCANLINE_HD void press_select(u32 num_frames) { env.press_select(num_frames, seen); }
    SCANLINE_HD void soft_reset() { env.soft_reset(seen); }
    SCANLINE_HD void act(u32 action) { env.act(action, seen); }
    SCANLINE_HD u32 random() { return env.random_.next(); }
  };

  // What both players do in a frame; the strength matters to paddles only.
  struct Joint {
    u32 action[2];
    float strength[2];
  };

  SCANLINE_HD static Joint player_a(u32 action) { return {{action, games::kNoop}, {1.0f, 1.0f}}; }

  SCANLINE_HD void ask(u32 player, u32 action, float strength) {
    const double draw = random_.next() / 4294967296.0;
    if (draw < static_cast<double>(settings_.repeat_action_probability)) return;
    state_.held[player] = action < games::kNumActions ? static_cast<u8>(action) : u8{games::kNoop};
    state_.strength[player] = strength;
  }

  SCANLINE_HD u32 allowed(u32 action) const {
    return row_.legal_actions >> action & 1 ? action : u32{games::kNoop};
  }

  SCANLINE_HD void count_frame() {
    state_.frame_number = counted(state_.frame_number);
    state_.episode_frame_number = counted(state_.episode_frame_number);
  }

  // Frames that the score rules watch, with the actions held all along.
  SCANLINE_HD void emulate(const Joint& joint, u32 num_frames, bool seen) {
    for (u32 i = 0; i < num_frames; ++i) {
      set_inputs(joint);
      console_.run_frame(seen);
      games::step(row_, state_.game, Memory{console_});
    }
  }

  SCANLINE_HD void soft_reset(bool seen) {
    emulate(player_a(games::kReset), kResetFrames, seen);
    state_.held[0] = state_.held[1] = games::kNoop;
  }

  // The score rules do not see the frames with SELECT, only the one after them.
  SCANLINE_HD void press_select(u32 num_frames, bool seen) {
    release_all();
    set_switches(console_.machine, true, false, state_.difficulty);
    for (u32 i = 0; i < num_frames; ++i) console_.run_frame(seen);
    emulate(player_a(games::kNoop), 1, seen);
    count_frame();
  }

  SCANLINE_HD void release_all() {
    if (uses_paddles(properties())) {
      set_paddle_buttons(console_.machine, properties(), false, false);
    } else {
      set_joysticks(console_.machine, properties(), games::kNoop, games::kNoop);
    }
  }

  SCANLINE_HD void set_inputs(const Joint& joint) {
    const bool reset = joint.action[0] == games::kReset;
    set_switches(console_.machine, false, reset, state_.difficulty);
    if (uses_paddles(properties())) {
      set_paddles(joint);
    } else {
      set_joysticks(console_.machine, properties(), joint.action[0], joint.action[1]);
    }
  }

  SCANLINE_HD void set_paddles(const Joint& joint) {
    for (u32 i = 0; i < 2; ++i) {
      turn_paddle(state_.paddles[i], properties(), joint.action[i], joint.strength[i]);
    }
    set_paddle_resistances(console_.machine, properties(), state_.paddles[0], state_.paddles[1]);
    set_paddle_buttons(console_.machine, properties(), fires(joint.action[0]),
                       fires(joint.action[1]));
  }

  SCANLINE_HD static bool fires(u32 action) {
    return action == games::kFire || (action >= games::kUpFire && action < games::kNumActions);
  }

  ConsoleType console_;
  const games::GameRow& row_;
  AleSettings settings_;
  Random random_;
  AleState state_ = {};
};

}  // namespace scanline
