// agent_step.h -- what an agent step means: the rules, without the making of observations.
//
// Takes an action index; emulates the frames of one step and follows the rules of EnvSettings for
// resets, lost lives, limits and rewards. Tells which pictures the observation is made of; who
// makes it, and when, is the caller's business (episode.h on the host, gpu/ on a device). No
// standard headers, no heap: host and device. The environment is a template parameter, as in
// episode.h.
//
// What must survive a snapshot is in EpisodeState; the rest is of the step at hand.
#pragma once

#include "../games/actions.h"
#include "ale_draws.h"
#include "philox.h"
#include "settings.h"

namespace scanline {

enum class Pending : u8 { kNothing, kReset, kContinueLife };

// A lost life is followed by buttons of its own, not by the next decision.
SCANLINE_HD inline bool life_has_continuation(LifeLoss rule) {
  return rule == LifeLoss::kNoopStep || rule == LifeLoss::kNoopsAgain ||
         rule == LifeLoss::kNoopFireUp;
}

constexpr i64 kMaxReturn = i64{1} << 62;

// What an episode remembers between steps, as one list of fields (core/fields.h); all are 0 before
// the first reset. Bounds also use `settings`.
#define SCANLINE_EPISODE_FIELDS(SCALAR, ARRAY)                                                \
  SCALAR(i64, episode_return, is_within(value, kMaxReturn)) /* raw reward since the reset */  \
  SCALAR(i32, episode_agent_steps, value >= 0)              /* decisions since then */        \
  SCALAR(i32, frames_since_reset, value >= 0)               /* frames of these decisions */   \
  SCALAR(i32, lives, true)                                  /* at the end of the last step */ \
  /* frames of the stack that belong to this episode */                                       \
  SCALAR(i32, depth, value >= state.started && value <= settings.stack)                       \
  /* words drawn so far, by Purpose; those of ALE's stream are skipped one by one */          \
  ARRAY(u32, draws, 4, value <= kMaxSkippedWords || !is_skipped(settings, index))             \
  SCALAR(EnvStream, stream, wrong_field(value)) /* where they are drawn from */               \
  SCALAR(u32, ale_seed, true)                   /* seed of the draws that follow ALE */       \
  SCALAR(u8, started, value <= 1)               /* a reset has happened */                    \
  /* Pending: what the next step does instead of its action */                                \
  SCALAR(u8, pending, value <= (life_has_continuation(settings.life_loss) ? 2 : 1))           \
  /* 1: FIRE replaces the action of the next frame */                                         \
  SCALAR(u8, fires, value <= (settings.life_loss == LifeLoss::kFire))                         \
  ARRAY(u8, unused, 5, value == 0)

struct EpisodeState {
  SCANLINE_DECLARE(SCANLINE_EPISODE_FIELDS)
};
SCANLINE_NO_PADDING(EpisodeState, SCANLINE_EPISODE_FIELDS);

SCANLINE_HD inline bool is_skipped(const EnvSettings& settings, u32 purpose) {
  return settings.random_stream == RandomStream::kAle &&
         purpose == static_cast<u32>(Purpose::kNoops);
}

SCANLINE_HD inline WrongField wrong_field(const EpisodeState& state, const EnvSettings& settings) {
  SCANLINE_CHECK(SCANLINE_EPISODE_FIELDS);
}

// Where the results of one environment go; the last four may be null. `final_frame` is written
// where an episode ended, `start_frames` where a stack begins with frames of its own.
struct StepRow {
  u8* frame;
  u8* depth;
  float* reward;
  float* raw_reward;
  bool* terminated;
  bool* truncated;
  bool* life_lost;
  i32* lives;
  u8* final_frame;
  u8* start_frames;  // [num_start_frames, frame bytes], oldest first; null if there are none
  i32* frame_number;
  i32* episode_frame_number;
  float* episode_return;
  i32* episode_agent_steps;
};

// What all environments of one game, mode and protocol share.
struct StepRules {
  EnvSettings settings;
  u32 actions[games::kNumActions] = {};  // ALE ids by action index
  u32 num_actions = 0;
  bool has_fire = false;  // FIRE is among them
  bool has_up = false;
};

// Two colour-index pictures; they may be the same.
struct SeenPair {
  const u8* older;
  const u8* newer;
};

template <class Env>
class AgentStep {
 public:
  SCANLINE_HD AgentStep(Env& env, const StepRules& rules) : env_(env), rules_(rules) {}

  EpisodeState state{};

  SCANLINE_HD u32 num_actions() const { return rules_.num_actions; }
  SCANLINE_HD Pending pending() const { return static_cast<Pending>(state.pending); }

  // How the frames of a step ended.
  struct Played {
    i32 frames = 0;   // emulated
    i32 planned = 0;  // of so many
    i64 reward = 0;
    bool terminated = false, truncated = false, life_lost = false;
    SCANLINE_HD bool ended() const { return terminated || truncated; }
  };

  // One decision, of which `played()` then tells.
  SCANLINE_HD void play(u32 action) {
    played_ = emulate(rules_.actions[action], planned_frames());
    state.frames_since_reset = counted(state.frames_since_reset, played_.frames);
    state.lives = env_.lives();
    state.episode_agent_steps = counted(state.episode_agent_steps);
    state.episode_return += played_.reward;
    state.depth = one_deeper();
    if (played_.ended()) {
      state.pending = static_cast<u8>(Pending::kReset);
    } else if (played_.life_lost && life_has_continuation(settings().life_loss)) {
      state.pending = static_cast<u8>(Pending::kContinueLife);
    }
  }

  SCANLINE_HD const Played& played() const { return played_; }

  // The pictures of the step that was played, made valid if it ended early.
  SCANLINE_HD SeenPair step_pictures() {
    if (played_.ended()) env_.show_pictures(2);
    return {played_.planned == 1 ? env_.screen() : env_.previous_screen(), env_.screen()};
  }

  // Which of so many cached starts the next episode begins with.
  SCANLINE_HD u32 choose_start(u32 num_starts) {
    return state.stream.below(num_starts, Purpose::kCache,
                              state.draws[static_cast<u32>(Purpose::kCache)]++);
  }

  // Begins an episode with a cached start.
  template <class Start>
  SCANLINE_HD void begin_from(const Start& start) {
    state.started = 1;
    env_.start_from(start);
    restart_totals();
    settle(1);
  }

  // Plays what a lost life waits for; gives the depth of the stack then, for `settle`.
  SCANLINE_HD i32 continue_life() {
    S s = settings();
    fresh_ = false;
    i32 depth = 1;
    switch (s.life_loss) {
      case LifeLoss::kNoopStep:
        quiet_step(games::kNoop);
        if (s.fire_reset == FireReset::kFireThenSecond) fire_then_second();
        break;
      case LifeLoss::kNoopsAgain:
        single_ = true;
        play_noops();
        if (s.fire_reset == FireReset::kAfterNoops) press(games::kFire, rules_.has_fire);
        depth = fresh_ ? 1 : one_deeper();
        break;
      case LifeLoss::kNoopFireUp:
        press_noop_fire_up();
        break;
      default:
        break;
    }
    return depth;
  }

  // The pictures of a start that was played, made valid.
  SCANLINE_HD SeenPair start_pictures() {
    env_.show_pictures(single_ ? 1 : 2);
    return {single_ ? env_.screen() : env_.previous_screen(), env_.screen()};
  }

  SCANLINE_HD void settle(i32 depth) {
    state.pending = state.fires = 0;
    state.depth = depth;
    state.lives = env_.lives();
  }

  // ---- results ----

  SCANLINE_HD static void clear(const StepRow& row) {
    *row.reward = *row.raw_reward = 0.0f;
    *row.terminated = *row.truncated = *row.life_lost = false;
  }

  SCANLINE_HD void write_state(const StepRow& row) const {
    *row.depth = static_cast<u8>(state.depth);
    *row.lives = state.lives;
    if (row.frame_number != nullptr) *row.frame_number = env_.frame_number();
    if (row.episode_frame_number != nullptr)
      *row.episode_frame_number = env_.episode_frame_number();
  }

  SCANLINE_HD void write_results(const StepRow& row) {
    *row.raw_reward = static_cast<float>(played_.reward);
    *row.reward = clipped(played_.reward);
    *row.terminated = played_.terminated;
    *row.truncated = played_.truncated;
    *row.life_lost = played_.life_lost;
    if (row.episode_return != nullptr)
      *row.episode_return = static_cast<float>(state.episode_return);
    if (row.episode_agent_steps != nullptr) *row.episode_agent_steps = state.episode_agent_steps;
  }

 protected:
  using S = const EnvSettings&;
  SCANLINE_HD S settings() const { return rules_.settings; }

  SCANLINE_HD void begin_from_reset() {
    env_.reset();
    fresh_ = single_ = true;
    restart_totals();
    S s = settings();
    if (s.fire_reset == FireReset::kBeforeNoops) press(games::kFire, rules_.has_fire);
    if (s.fire_reset == FireReset::kNoopFireUp) press_noop_fire_up();
    if (s.fire_reset == FireReset::kFireStep && rules_.has_fire) quiet_step(games::kFire);
    play_noops();
    if (s.fire_reset == FireReset::kAfterNoops) press(games::kFire, rules_.has_fire);
    if (s.fire_reset == FireReset::kFireThenSecond) fire_then_second();
  }

  // A whole agent step that no policy decided; true if the game ended in it and was reset.
  SCANLINE_HD bool quiet_step(u32 action) {
    const i32 planned = settings().frame_skip;
    for (i32 frame = 0; frame < planned && !env_.game_over(); ++frame) env_.act(action, false);
    single_ = planned == 1;
    return restart_if_over();
  }

  Env& env_;
  const StepRules& rules_;

 private:
  SCANLINE_HD i32 one_deeper() const {
    return state.depth < settings().stack ? state.depth + 1 : settings().stack;
  }

  SCANLINE_HD i32 planned_frames() {
    S s = settings();
    if (s.frame_skip_min == s.frame_skip) return s.frame_skip;
    const u32 range = static_cast<u32>(s.frame_skip - s.frame_skip_min + 1);
    return s.frame_skip_min +
           static_cast<i32>(state.stream.below(range, Purpose::kSkip,
                                               state.draws[static_cast<u32>(Purpose::kSkip)]++));
  }

  SCANLINE_HD Played emulate(u32 action, i32 planned) {
    Played played;
    played.planned = planned;
    const i32 num_seen = num_seen_frames();
    while (played.frames < planned && !played.ended()) {
      ++played.frames;
      const u32 pressed = state.fires != 0 ? static_cast<u32>(games::kFire) : action;
      const i32 lives = env_.lives();
      played.reward += env_.act(pressed, played.frames > planned - num_seen);
      state.fires = fires_on_loss() && env_.lives() < lives;
      judge(played);
    }
    return played;
  }

  SCANLINE_HD bool fires_on_loss() const {
    return settings().life_loss == LifeLoss::kFire && rules_.has_fire;
  }

  // Frames at the end of a step that an observation is made of.
  SCANLINE_HD i32 num_seen_frames() const {
    if (settings().colour == FrameColour::kRam) return 0;
    return settings().pooling == Pooling::kNone ? 1 : 2;
  }

  // Lives are compared with those at the end of the last step, on every frame.
  SCANLINE_HD void judge(Played& played) {
    const i32 limit = settings().episode_limit_frames;
    const bool resets_on_life = settings().life_loss == LifeLoss::kFullReset;
    const i32 lives = env_.lives();
    const bool lost = lives < state.lives && lives > 0;
    played.terminated = env_.game_over() || (resets_on_life && lost);
    played.truncated =
        !played.terminated && limit > 0 && state.frames_since_reset >= limit - played.frames;
    played.life_lost = lost && !resets_on_life && !env_.game_over();
  }

  SCANLINE_HD float clipped(i64 reward) const {
    const i64 sign = reward > 0 ? 1 : reward < 0 ? -1 : 0;
    return static_cast<float>(settings().reward_clip == RewardClip::kNone ? reward : sign);
  }

  SCANLINE_HD void restart_totals() {
    state.episode_return = 0;
    state.episode_agent_steps = state.frames_since_reset = 0;
  }

  // Whether it had to.
  SCANLINE_HD bool restart_if_over() {
    if (!env_.game_over()) return false;
    env_.reset();
    fresh_ = true;
    single_ = true;
    restart_totals();
    return true;
  }

  // One frame whose picture alone will be the observation, if it is the last.
  SCANLINE_HD void press(u32 action, bool present) {
    if (!present) return;
    env_.act(action, false);
    single_ = true;
  }

  SCANLINE_HD void press_noop_fire_up() {
    press(games::kNoop, true);
    press(games::kFire, rules_.has_fire);
    press(games::kUp, rules_.has_up);
    restart_if_over();
  }

  SCANLINE_HD void fire_then_second() {
    if (!rules_.has_fire || rules_.num_actions < 3) return;
    quiet_step(games::kFire);
    quiet_step(rules_.actions[2]);
  }

  SCANLINE_HD void play_noops() {
    for (i32 left = num_noops(); left > 0; --left) {
      if (settings().noop_unit == NoopUnit::kAgentSteps) {
        quiet_step(games::kNoop);
      } else {
        press(games::kNoop, true);
        restart_if_over();
      }
    }
  }

  // FIRE counts as one of the NOOPs where it is a single press next to them.
  SCANLINE_HD i32 num_noops() {
    S s = settings();
    const u32 range = static_cast<u32>(s.noop_max - s.noop_min + 1);
    u32 drawn;
    if (s.random_stream == RandomStream::kAle) {
      AleDraws draws(state.ale_seed, state.draws[0]);
      drawn = draws.below(range);
      state.draws[0] = draws.num_words();
    } else {
      drawn = state.stream.below(range, Purpose::kNoops, state.draws[0]++);
    }
    const bool fire_counts =
        s.fire_reset == FireReset::kBeforeNoops || s.fire_reset == FireReset::kAfterNoops;
    return s.noop_min + static_cast<i32>(drawn) - (fire_counts && rules_.has_fire ? 1 : 0);
  }

  Played played_;
  bool single_ = true;  // the start picture is one frame, not the maximum of two
  bool fresh_ = true;   // the game has been reset since the life was lost
};

}  // namespace scanline
