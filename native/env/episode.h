// episode.h -- agent steps over one ALE environment on the host: what happens between two
// decisions.
//
// Takes an action index; plays one step by the rules of agent_step.h, makes the observations that
// belong to it, and writes one row of results where the caller wants it. Knows no threads, batches
// or Python. The environment is a template parameter with ALE's meaning of act and reset:
//
//   void reset();  i32 act(u32 action, bool seen);  bool game_over();  i32 lives();
//   const u8* screen();  const u8* previous_screen();  const u8* ram();
//   void show_pictures(i32 count);   makes the last one or two pictures valid although unseen
//   i32 frame_number();  i32 episode_frame_number();
//   Snapshot, save(Snapshot&), start_from(const Snapshot&)   for cached starts
//
// One object per environment. What must survive a snapshot is in EpisodeState and in `pooled`.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "agent_step.h"
#include "observe.h"

namespace scanline {

// The rules of a game's environments on the host, and what makes their observations.
struct EpisodeRules : StepRules {
  const Observer* observer = nullptr;
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
class Episode : public AgentStep<Env> {
  using Base = AgentStep<Env>;

 public:
  using Base::state;

  // `starts` may be null: every episode then begins with a reset of the game.
  Episode(Env& env, const EpisodeRules& rules, const StartCache<Env>* starts)
      : Base(env, rules), observer_(*rules.observer), starts_(starts) {
    if (keeps_pooled()) pooled_.resize(static_cast<size_t>(observer_.pooled_bytes()));
  }

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

  std::vector<u8>& pooled() { return pooled_; }

  // Starts a new episode, whatever the state of the old one.
  void reset(const StepRow& row, Observer::Scratch& scratch) {
    Base::clear(row);
    begin({row.frame, row.start_frames}, scratch);
    Base::write_state(row);
  }

  // Does what an ended episode or a lost life waits for; a new episode if nothing does.
  void restart(const StepRow& row, Observer::Scratch& scratch) {
    Base::clear(row);
    resume({row.frame, row.start_frames}, scratch);
    Base::write_state(row);
  }

  // One decision. With a pending reset the action is ignored, as next-step autoreset wants it.
  void step(u32 action, const StepRow& row, Observer::Scratch& scratch) {
    if (state.pending != 0) {
      restart(row, scratch);
      return;
    }
    Base::play(action);
    Base::write_results(row);
    const bool ended = Base::played().ended();
    if (state.pending != 0 && settings().autoreset == Autoreset::kSameStep) {
      if (ended) observe_step(row.final_frame, scratch);
      resume({row.frame, row.start_frames}, scratch);
    } else {
      observe_step(row.frame, scratch);
      if (ended) std::memcpy(row.final_frame, row.frame, frame_bytes());
    }
    Base::write_state(row);
  }

 private:
  using Base::env_;
  using Base::quiet_step;
  using Base::settings;
  bool keeps_pooled() const { return settings().terminal_frame != TerminalFrame::kReal; }

  // Where the frames of a new stack go.
  struct NewStack {
    u8* newest;
    u8* older;  // StepRow's start_frames
  };

  void resume(const NewStack& stack, Observer::Scratch& scratch) {
    if (Base::pending() == Pending::kContinueLife) {
      const i32 depth = Base::continue_life();
      if (depth == 1) fill_stack(stack.older, scratch);
      observe_start(stack.newest, scratch);
      Base::settle(depth);
    } else {
      begin(stack, scratch);
    }
  }

  void begin(const NewStack& stack, Observer::Scratch& scratch) {
    if (starts_ != nullptr) {
      begin_from_cache(stack);
      return;
    }
    state.started = 1;
    Base::begin_from_reset();
    fill_stack(stack.older, scratch);
    observe_start(stack.newest, scratch);
    Base::settle(1);
  }

  void begin_from_cache(const NewStack& stack) {
    const u32 chosen = Base::choose_start(static_cast<u32>(starts_->size()));
    const CachedStart<Env>& start = *(*starts_)[chosen];
    Base::begin_from(start.env);
    if (start_bytes() > 0) std::memcpy(stack.older, start.stack.data(), start_bytes());
    std::memcpy(stack.newest, start.stack.data() + start_bytes(), frame_bytes());
    pooled_ = start.pooled;
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

  size_t frame_bytes() const { return static_cast<size_t>(observer_.frame_bytes()); }
  size_t start_bytes() const {
    return static_cast<size_t>(num_start_frames(settings())) * frame_bytes();
  }

  void observe_start(u8* target, Observer::Scratch& scratch) {
    if (copies_ram(target)) return;
    observe(Base::start_pictures(), target, scratch);
  }

  void observe_step(u8* target, Observer::Scratch& scratch) {
    if (copies_ram(target)) return;
    const auto& played = Base::played();
    const bool whole = played.frames == played.planned && !played.ended();
    if (!whole && keeps_pooled()) {
      observe_early_end(target, scratch);
    } else {
      observe(Base::step_pictures(), target, scratch);
    }
  }

  void observe(const SeenPair& pair, u8* target, Observer::Scratch& scratch) {
    observer_.observe(pair.older, pair.newer, target, scratch, pooled_data());
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
    const auto& played = Base::played();
    const i32 missing = played.planned - played.frames;
    const bool pools = settings().pooling != Pooling::kNone;
    if (settings().terminal_frame == TerminalFrame::kStale) {
      if (missing == 0 && pools && played.planned > 1)
        observer_.pool_into(env_.previous_screen(), pooled_.data());
    } else if (missing <= 1) {
      const u8* older = missing == 0 ? env_.previous_screen() : env_.screen();
      observer_.observe(older, env_.screen(), target, scratch, pooled_.data());
      return;
    }
    observer_.observe_pooled(pooled_.data(), target, scratch);
  }

  const Observer& observer_;
  const StartCache<Env>* starts_;
  std::vector<u8> pooled_;  // pooled picture of the last step, where a stale one may be shown
};

}  // namespace scanline
