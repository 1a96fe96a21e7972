// seen_console.h -- a console that draws only what somebody looks at, and whatever it must.
//
// Wraps a console of core/console.h; frames that are not seen leave no picture but the state at
// their start, from which they can be drawn later. Pictures that are asked for are exactly those
// of a console that draws every frame. Knows nothing of games or agents.
//
// A frame that reached the last displayed line has overwritten its whole picture, so its
// predecessor in the same buffer does not matter. A frame that did not keeps lines of the picture
// two frames before: then the recent frames are drawn after all, and so is everything until two
// whole frames have passed.
#pragma once

#include <vector>

#include "../core/console.h"

namespace scanline {

template <class Console>
class SeenConsole : public Console {
 public:
  explicit SeenConsole(const RomImage& rom) : Console(rom) {}

  void system_reset() {
    Console::system_reset();
    forget();
  }

  void run_frame(bool seen) {
    remember();
    continued_ = this->machine.partial != 0;
    if (continued_) held_.assign(this->screen(), this->screen() + kPictureBytes);
    const bool draws = seen || num_to_draw_ > 0;
    Console::run_frame(draws);
    recent(0).drawn = draws;
    if (!is_whole()) {
      if (num_to_draw_ == 0) draw_recent(kNumRecent);
      num_to_draw_ = 2;
    } else if (num_to_draw_ > 0) {
      --num_to_draw_;
    }
  }

  // The picture as it was before the last call of run_frame. An unfinished frame goes on in the
  // same buffer, so that picture had to be put aside.
  const u8* previous_screen() const {
    return continued_ ? held_.data() : Console::previous_screen();
  }

  // Makes the newest picture, or the newest two, valid.
  void show_pictures(i32 count) { draw_recent(count); }

  void save(ConsoleSnapshot& snapshot) {
    show_pictures(2);
    Console::save(snapshot);
  }
  void restore(const ConsoleSnapshot& snapshot) {
    Console::restore(snapshot);
    forget();
    continued_ = false;
    // Whether the last frames were whole is not known any more.
    num_to_draw_ = 2;
  }

  // Goes on without its past: the pictures are valid as they are.
  void forget() {
    for (Start& start : starts_) start.drawn = true;
    num_to_draw_ = 0;
  }

 private:
  static constexpr i32 kNumRecent = 3;

  // A frame as it began, its inputs included.
  struct Start {
    ConsoleState console;
    bool drawn = true;
  };

  // The start of the frame `ago` frames before the newest.
  Start& recent(i32 ago) { return starts_[(newest_ + kNumRecent - ago) % kNumRecent]; }

  void remember() {
    newest_ = (newest_ + 1) % kNumRecent;
    recent(0).console = this->state();
  }

  bool is_whole() const {
    const Window window = window_of(this->machine, this->properties());
    return !this->machine.partial && this->machine.last_clock >= window.stop &&
           this->machine.draw_origin_clock == window.start;
  }

  // Draws what is missing among the newest `count` frames, and the newest once more if the picture
  // beneath it was missing. Emulation is deterministic; what was changed since, such as an input,
  // is put back.
  void draw_recent(i32 count) {
    const ConsoleState now = this->state();
    bool beneath_was_missing = false;
    for (i32 ago = count - 1; ago >= 0; --ago) {
      Start& start = recent(ago);
      if (start.drawn && !(ago == 0 && beneath_was_missing)) continue;
      if (ago == 2) beneath_was_missing = true;
      this->set_state(start.console);
      Console::run_frame(true);
      start.drawn = true;
    }
    this->set_state(now);
  }

  Start starts_[kNumRecent];
  i32 newest_ = 0;
  i32 num_to_draw_ = 0;     // frames that are drawn although unseen
  bool continued_ = false;  // the last call went on with an unfinished frame
  std::vector<u8> held_;    // its picture before that
};

}  // namespace scanline
