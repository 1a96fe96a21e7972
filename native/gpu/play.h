// play.h -- the kernel bodies that step a lane: `play` and `restart`.
//
// Takes a lane in device memory and an action; plays one agent step by the rules of
// env/agent_step.h, or starts an episode from a cached start, and writes numbers. The observation
// of a step is not made here: `play` leaves in the lane which pictures it is made of, and observe.h
// follows. A step is play, observe, and restart where an episode ended and starts in the same step.
#pragma once

#include "lane.h"

namespace scanline::gpu {

// What begins an episode: states, and the first frame of each.
struct StartView {
  const Start* starts;
  const u8* frames;  // [num_starts][frame_bytes]
  u8* frame;         // where the chosen one goes
  u32 frame_bytes;
};

template <class Cartridge>
class LaneStep {
  using Environment = LaneEnvironment<Cartridge>;

 public:
  SCANLINE_HD LaneStep(const LaneView& view, StepNumbers& numbers)
      : view_(view), numbers_(numbers), env_(view), step_(env_, view.game.rules) {
    step_.state = view.lane.episode;
  }

  // One decision; with a pending restart the action is ignored.
  SCANLINE_HD void play(u32 action, const StartView& start) {
    if (step_.pending() != Pending::kNothing) {
      step_.clear(numbers_.row());
      resume(start);
    } else {
      step_.play(action);
      step_.write_results(numbers_.row());
      if (step_.pending() == Pending::kContinueLife && is_same_step()) {
        continue_life();
      } else {
        show(step_.step_pictures());
      }
    }
    finish();
  }

  // Starts the episode that an ended one waits for, within the step of the end.
  SCANLINE_HD void restart_ended(const StartView& start) {
    if (step_.pending() != Pending::kReset) return;
    begin(start);
    finish();
  }

  // Starts an episode, whatever the state of the old one.
  SCANLINE_HD void reset(const StartView& start) {
    step_.clear(numbers_.row());
    begin(start);
    finish();
  }

 private:
  SCANLINE_HD bool is_same_step() const {
    return view_.game.rules.settings.autoreset == Autoreset::kSameStep;
  }

  SCANLINE_HD void resume(const StartView& start) {
    if (step_.pending() == Pending::kContinueLife) {
      continue_life();
    } else {
      begin(start);
    }
  }

  SCANLINE_HD void continue_life() {
    const i32 depth = step_.continue_life();
    show(step_.start_pictures());
    step_.settle(depth);
  }

  SCANLINE_HD void begin(const StartView& start) {
    const u32 chosen = step_.choose_start(view_.game.num_starts);
    step_.begin_from(start.starts[chosen]);
    const u8* frame = start.frames + static_cast<u64>(chosen) * start.frame_bytes;
    for (u32 i = 0; i < start.frame_bytes; ++i) start.frame[i] = frame[i];
    view_.lane.sight.is_due = 0;
  }

  SCANLINE_HD void show(const SeenPair& pair) {
    Sight& sight = view_.lane.sight;
    sight.is_due = 1;
    sight.older = static_cast<u32>(pair.older - view_.lane.pictures);
    sight.newer = static_cast<u32>(pair.newer - view_.lane.pictures);
  }

  SCANLINE_HD void finish() {
    step_.write_state(numbers_.row());
    view_.lane.episode = step_.state;
    env_.store(view_.lane);
  }

  const LaneView& view_;
  StepNumbers& numbers_;
  Environment env_;
  AgentStep<Environment> step_;
};

}  // namespace scanline::gpu
