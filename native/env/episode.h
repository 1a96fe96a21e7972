// episode.h -- agent steps over one ALE environment: what happens between two decisions.
//
// Takes an action index; emulates the frames of one step, follows the rules of EnvSettings for
// resets, lost lives, limits, rewards and pictures, and writes one row of results where the caller
// wants it. Knows no threads, batches or Python. The environment is a template parameter with
// ALE's meaning of act and reset:
//
//   void reset();  i32 act(u32 action, bool seen);  bool game_over();  i32 lives();
//   const u8* screen();  const u8* previous_screen();  const u8* ram();
//   void show_pictures(i32 count);   makes the last one or two pictures valid although unseen
//   i32 frame_number();  i32 episode_frame_number();
//   Snapshot, save(Snapshot&), start_from(const Snapshot&)   for cached starts
//
// One object per environment. What must survive a snapshot is in EpisodeState and in `pooled`.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "../games/actions.h"
#include "ale_draws.h"
#include "observe.h"
#include "philox.h"
#include "settings.h"

namespace scanline {

enum class Pending : u8 { kNothing, kReset, kContinueLife };

// A lost life is followed by buttons of its own, not by the next decision.
inline bool life_has_continuation(LifeLoss rule) {
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

inline bool is_skipped(const EnvSettings& settings, u32 purpose) {
  return settings.random_stream == RandomStream::kAle &&
         purpose == static_cast<u32>(Purpose::kNoops);
}

inline WrongField wrong_field(const EpisodeState& state, const EnvSettings& settings) {
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
struct EpisodeRules {
  EnvSettings settings;
  const Observer* observer;
  std::vector<u32> actions;  // ALE ids by action index
  bool has_fire = false;     // FIRE is among them
  bool has_up = false;
};

// One way in which a game can begin: everything up to the first decision has been played and
// observed. A snapshot does not know how its last pictures are pooled.
template <class Env>
struct CachedStart {
  typename Env::Snapshot env;
  std::vector<u8> stack;   // start frames, oldest first, and the newest frame
  std::vector<u8> pooled;  // what a stale picture would show next
};

template <class Env>
using StartCache = std::vector<std::unique_ptr<const CachedStart<Env>>>;

template <class Env>
class Episode {
 public:
  // `starts` may be null: every episode then begins with a reset of the game.
  Episode(Env& env, const EpisodeRules& rules, const StartCache<Env>* starts)
      : env_(env), rules_(rules), starts_(starts) {
    if (keeps_pooled()) pooled_.resize(static_cast<size_t>(rules.observer->pooled_bytes()));
  }

  EpisodeState state{};

  // Starts the random draws anew.
  void seed(u32 ale_seed, const EnvStream& stream) {
    state = EpisodeState();
    state.ale_seed = ale_seed;
    state.stream = stream;
  }

  // Plays up to the first decision and keeps the result as one entry of a cache.
  void save_start(CachedStart<Env>& start, Observer::Scratch& scratch) {
    start.stack.resize(start_bytes() + frame_bytes());
    begin({start.stack.data() + start_bytes(), start.stack.data()}, scratch);
    env_.save(start.env);
    start.pooled = pooled_;
  }

  u32 num_actions() const { return static_cast<u32>(rules_.actions.size()); }
  std::vector<u8>& pooled() { return pooled_; }

  // Starts a new episode, whatever the state of the old one.
  void reset(const StepRow& row, Observer::Scratch& scratch) {
    clear(row);
    begin({row.frame, row.start_frames}, scratch);
    write_state(row);
  }

  // Does what an ended episode or a lost life waits for; a new episode if nothing does.
  void restart(const StepRow& row, Observer::Scratch& scratch) {
    clear(row);
    resume({row.frame, row.start_frames}, scratch);
    write_state(row);
  }

  // One decision. With a pending reset the action is ignored, as next-step autoreset wants it.
  void step(u32 action, const StepRow& row, Observer::Scratch& scratch) {
    if (state.pending != 0) {
      restart(row, scratch);
      return;
    }
    play(rules_.actions[action]);
    write_results(row);
    if (state.pending != 0 && settings().autoreset == Autoreset::kSameStep) {
      if (played_.ended()) observe_step(row.final_frame, scratch);
      resume({row.frame, row.start_frames}, scratch);
    } else {
      observe_step(row.frame, scratch);
      if (played_.ended()) std::memcpy(row.final_frame, row.frame, frame_bytes());
    }
    write_state(row);
  }

 private:
  using S = const EnvSettings&;
  S settings() const { return rules_.settings; }
  bool keeps_pooled() const { return settings().terminal_frame != TerminalFrame::kReal; }

  // ---- one step ----

  // How the frames of a step ended.
  struct Played {
    i32 frames = 0;   // emulated
    i32 planned = 0;  // of so many
    i64 reward = 0;
    bool terminated = false, truncated = false, life_lost = false;
    bool ended() const { return terminated || truncated; }
  };

  void play(u32 action) {
    played_ = emulate(action, planned_frames());
    state.frames_since_reset = counted(state.frames_since_reset, played_.frames);
    state.lives = env_.lives();
    state.episode_agent_steps = counted(state.episode_agent_steps);
    state.episode_return += played_.reward;
    state.depth = std::min(state.depth + 1, settings().stack);
    if (played_.ended()) {
      state.pending = static_cast<u8>(Pending::kReset);
    } else if (played_.life_lost && life_has_continuation(settings().life_loss)) {
      state.pending = static_cast<u8>(Pending::kContinueLife);
    }
  }

  i32 planned_frames() {
    S s = settings();
    if (s.frame_skip_min == s.frame_skip) return s.frame_skip;
    const u32 range = static_cast<u32>(s.frame_skip - s.frame_skip_min + 1);
    return s.frame_skip_min +
           static_cast<i32>(state.stream.below(range, Purpose::kSkip,
                                               state.draws[static_cast<u32>(Purpose::kSkip)]++));
  }

  Played emulate(u32 action, i32 planned) {
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

  bool fires_on_loss() const { return settings().life_loss == LifeLoss::kFire && rules_.has_fire; }

  // Frames at the end of a step that an observation is made of.
  i32 num_seen_frames() const {
    if (settings().colour == FrameColour::kRam) return 0;
    return settings().pooling == Pooling::kNone ? 1 : 2;
  }

  // Lives are compared with those at the end of the last step, on every frame.
  void judge(Played& played) {
    const i32 limit = settings().episode_limit_frames;
    const bool resets_on_life = settings().life_loss == LifeLoss::kFullReset;
    const i32 lives = env_.lives();
    const bool lost = lives < state.lives && lives > 0;
    played.terminated = env_.game_over() || (resets_on_life && lost);
    played.truncated =
        !played.terminated && limit > 0 && state.frames_since_reset >= limit - played.frames;
    played.life_lost = lost && !resets_on_life && !env_.game_over();
  }

  void write_results(const StepRow& row) {
    *row.raw_reward = static_cast<float>(played_.reward);
    *row.reward = clipped(played_.reward);
    *row.terminated = played_.terminated;
    *row.truncated = played_.truncated;
    *row.life_lost = played_.life_lost;
    if (row.episode_return != nullptr)
      *row.episode_return = static_cast<float>(state.episode_return);
    if (row.episode_agent_steps != nullptr) *row.episode_agent_steps = state.episode_agent_steps;
  }

  float clipped(i64 reward) const {
    const i64 sign = reward > 0 ? 1 : reward < 0 ? -1 : 0;
    return static_cast<float>(settings().reward_clip == RewardClip::kNone ? reward : sign);
  }

  // ---- starting and continuing ----

  // Where the frames of a new stack go.
  struct NewStack {
    u8* newest;
    u8* older;  // StepRow's start_frames
  };

  void resume(const NewStack& stack, Observer::Scratch& scratch) {
    if (state.pending == static_cast<u8>(Pending::kContinueLife)) {
      continue_life(stack, scratch);
    } else {
      begin(stack, scratch);
    }
  }

  void begin(const NewStack& stack, Observer::Scratch& scratch) {
    state.started = 1;
    if (starts_ != nullptr) {
      begin_from_cache(stack);
    } else {
      begin_from_reset();
      fill_stack(stack.older, scratch);
      observe_start(stack.newest, scratch);
    }
    settle(1);
  }

  void begin_from_cache(const NewStack& stack) {
    const u32 chosen = state.stream.below(static_cast<u32>(starts_->size()), Purpose::kCache,
                                          state.draws[static_cast<u32>(Purpose::kCache)]++);
    const CachedStart<Env>& start = *(*starts_)[chosen];
    env_.start_from(start.env);
    if (start_bytes() > 0) std::memcpy(stack.older, start.stack.data(), start_bytes());
    std::memcpy(stack.newest, start.stack.data() + start_bytes(), frame_bytes());
    pooled_ = start.pooled;
    restart_totals();
  }

  void begin_from_reset() {
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

  // Plays the NOOP steps of a stack that begins with frames of its own; the newest of its frames is
  // left to observe_start. A game that ends meanwhile begins anew, and its first frame stands for
  // those of the one before.
  void fill_stack(u8* start_frames, Observer::Scratch& scratch) {
    const i32 num = num_start_frames(settings());
    const auto at = [&](i32 i) { return start_frames + static_cast<size_t>(i) * frame_bytes(); };
    if (settings().stack_padding == StackPadding::kNoopSteps) quiet_step(games::kNoop);
    i32 num_old = 0;  // frames of a game that has ended
    for (i32 i = 0; i < num; ++i) {
      observe_start(at(i), scratch);
      if (quiet_step(games::kNoop)) num_old = i + 1;
    }
    if (num_old > 0 && num_old == num) observe_start(at(--num_old), scratch);
    for (i32 i = 0; i < num_old; ++i) std::memcpy(at(i), at(num_old), frame_bytes());
  }

  size_t frame_bytes() const { return static_cast<size_t>(rules_.observer->frame_bytes()); }
  size_t start_bytes() const {
    return static_cast<size_t>(num_start_frames(settings())) * frame_bytes();
  }

  void restart_totals() {
    state.episode_return = 0;
    state.episode_agent_steps = state.frames_since_reset = 0;
  }

  void continue_life(const NewStack& stack, Observer::Scratch& scratch) {
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
        depth = fresh_ ? 1 : std::min(state.depth + 1, s.stack);
        break;
      case LifeLoss::kNoopFireUp:
        press_noop_fire_up();
        break;
      default:
        break;
    }
    if (depth == 1) fill_stack(stack.older, scratch);
    observe_start(stack.newest, scratch);
    settle(depth);
  }

  void settle(i32 depth) {
    state.pending = state.fires = 0;
    state.depth = depth;
    state.lives = env_.lives();
  }

  // Whether it had to.
  bool restart_if_over() {
    if (!env_.game_over()) return false;
    env_.reset();
    fresh_ = true;
    single_ = true;
    restart_totals();
    return true;
  }

  // One frame whose picture alone will be the observation, if it is the last.
  void press(u32 action, bool present) {
    if (!present) return;
    env_.act(action, false);
    single_ = true;
  }

  // A whole agent step that no policy decided; true if the game ended in it and was reset.
  bool quiet_step(u32 action) {
    const i32 planned = settings().frame_skip;
    for (i32 frame = 0; frame < planned && !env_.game_over(); ++frame) env_.act(action, false);
    single_ = planned == 1;
    return restart_if_over();
  }

  void press_noop_fire_up() {
    press(games::kNoop, true);
    press(games::kFire, rules_.has_fire);
    press(games::kUp, rules_.has_up);
    restart_if_over();
  }

  void fire_then_second() {
    if (!rules_.has_fire || rules_.actions.size() < 3) return;
    quiet_step(games::kFire);
    quiet_step(rules_.actions[2]);
  }

  void play_noops() {
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
  i32 num_noops() {
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

  // ---- what the caller sees ----

  static void clear(const StepRow& row) {
    *row.reward = *row.raw_reward = 0.0f;
    *row.terminated = *row.truncated = *row.life_lost = false;
  }

  void write_state(const StepRow& row) const {
    *row.depth = static_cast<u8>(state.depth);
    *row.lives = state.lives;
    if (row.frame_number != nullptr) *row.frame_number = env_.frame_number();
    if (row.episode_frame_number != nullptr)
      *row.episode_frame_number = env_.episode_frame_number();
  }

  void observe_start(u8* target, Observer::Scratch& scratch) {
    if (copies_ram(target)) return;
    env_.show_pictures(single_ ? 1 : 2);
    const u8* older = single_ ? env_.screen() : env_.previous_screen();
    rules_.observer->observe(older, env_.screen(), target, scratch, pooled_data());
  }

  void observe_step(u8* target, Observer::Scratch& scratch) {
    if (copies_ram(target)) return;
    const bool whole = played_.frames == played_.planned && !played_.ended();
    if (!whole && keeps_pooled()) {
      observe_early_end(target, scratch);
      return;
    }
    if (played_.ended()) env_.show_pictures(2);
    const bool alone = played_.planned == 1;
    rules_.observer->observe(alone ? env_.screen() : env_.previous_screen(), env_.screen(), target,
                             scratch, pooled_data());
  }

  bool copies_ram(u8* target) const {
    if (settings().colour != FrameColour::kRam) return false;
    std::memcpy(target, env_.ram(), 128);
    return true;
  }

  u8* pooled_data() { return pooled_.empty() ? nullptr : pooled_.data(); }

  // The peers keep pooling into the picture of the step before, and catch the last two frames of a
  // step only: ALE those before the end, EnvPool the end as well.
  void observe_early_end(u8* target, Observer::Scratch& scratch) {
    const i32 missing = played_.planned - played_.frames;
    const bool pools = settings().pooling != Pooling::kNone;
    if (settings().terminal_frame == TerminalFrame::kStale) {
      if (missing == 0 && pools && played_.planned > 1)
        rules_.observer->pool_into(env_.previous_screen(), pooled_.data());
    } else if (missing <= 1) {
      const u8* older = missing == 0 ? env_.previous_screen() : env_.screen();
      rules_.observer->observe(older, env_.screen(), target, scratch, pooled_.data());
      return;
    }
    rules_.observer->observe_pooled(pooled_.data(), target, scratch);
  }

  Env& env_;
  const EpisodeRules& rules_;
  const StartCache<Env>* starts_;
  std::vector<u8> pooled_;  // pooled picture of the last step, where a stale one may be shown
  Played played_;
  bool single_ = true;  // the start picture is one frame, not the maximum of two
  bool fresh_ = true;   // the game has been reset since the life was lost
};

}  // namespace scanline
