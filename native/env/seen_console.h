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
//
// Host and device: the console and the place for a picture that is put aside are parameters.
#pragma once

#include "../core/console_state.h"
#include "../core/tia_frame.h"
#if !SCANLINE_DEVICE
#include <vector>
#endif

namespace scanline {

// A frame as it began, its inputs included.
struct FrameStart {
  ConsoleState console;
  u32 drawn = 1;
};

// What is remembered of the last frames.
struct RecentFrames {
  static constexpr i32 kNum = 3;

  FrameStart starts[kNum];
  i32 newest = 0;
  i32 num_to_draw = 0;  // frames that are drawn although unseen
  u32 continued = 0;    // the last call went on with an unfinished frame
};

#if !SCANLINE_DEVICE
// A picture that most consoles never have to put aside.
class HeapPicture {
 public:
  SCANLINE_HD void keep(const u8* picture) { bytes_.assign(picture, picture + kPictureBytes); }
  SCANLINE_HD const u8* data() const { return bytes_.data(); }

 private:
  std::vector<u8> bytes_;
};
template <class Console, class Picture = HeapPicture>
#else
template <class Console, class Picture>
#endif
class SeenConsole : public Console {
 public:
  template <class Source>
  SCANLINE_HD explicit SeenConsole(Source& source) : Console(source) {}

  RecentFrames recent_frames;
  Picture held;  // the picture before the last call, where that went on with an unfinished frame

  SCANLINE_HD void system_reset() {
    Console::system_reset();
    forget();
  }

  SCANLINE_HD void run_frame(bool seen) {
    remember();
    recent_frames.continued = this->machine.partial != 0;
    if (recent_frames.continued) held.keep(this->screen());
    const bool draws = seen || recent_frames.num_to_draw > 0;
    Console::run_frame(draws);
    recent(0).drawn = draws;
    if (!is_whole()) {
      if (recent_frames.num_to_draw == 0) draw_recent(RecentFrames::kNum);
      recent_frames.num_to_draw = 2;
    } else if (recent_frames.num_to_draw > 0) {
      --recent_frames.num_to_draw;
    }
  }

  // The picture as it was before the last call of run_frame. An unfinished frame goes on in the
  // same buffer, so that picture had to be put aside.
  SCANLINE_HD const u8* previous_screen() const {
    return recent_frames.continued ? held.data() : Console::previous_screen();
  }

  // Makes the newest picture, or the newest two, valid.
  SCANLINE_HD void show_pictures(i32 count) { draw_recent(count); }

  SCANLINE_HD void save(ConsoleSnapshot& snapshot) {
    show_pictures(2);
    Console::save(snapshot);
  }
  SCANLINE_HD void restore(const ConsoleSnapshot& snapshot) {
    Console::restore(snapshot);
    forget();
    recent_frames.continued = 0;
    // Whether the last frames were whole is not known any more.
    recent_frames.num_to_draw = 2;
  }

  // Goes on without its past: the pictures are valid as they are.
  SCANLINE_HD void forget() {
    for (FrameStart& start : recent_frames.starts) start.drawn = 1;
    recent_frames.num_to_draw = 0;
  }

 private:
  // The start of the frame `ago` frames before the newest.
  SCANLINE_HD FrameStart& recent(i32 ago) {
    return recent_frames
        .starts[(recent_frames.newest + RecentFrames::kNum - ago) % RecentFrames::kNum];
  }

  SCANLINE_HD void remember() {
    recent_frames.newest = (recent_frames.newest + 1) % RecentFrames::kNum;
    recent(0).console = this->state();
  }

  SCANLINE_HD bool is_whole() const {
    const Window window = window_of(this->machine, this->properties());
    return !this->machine.partial && this->machine.last_clock >= window.stop &&
           this->machine.draw_origin_clock == window.start;
  }

  // Draws what is missing among the newest `count` frames, and the newest once more if the picture
  // beneath it was missing. Emulation is deterministic; what was changed since, such as an input,
  // is put back.
  SCANLINE_HD void draw_recent(i32 count) {
    const ConsoleState now = this->state();
    bool beneath_was_missing = false;
    for (i32 ago = count - 1; ago >= 0; --ago) {
      FrameStart& start = recent(ago);
      if (start.drawn && !(ago == 0 && beneath_was_missing)) continue;
      if (ago == 2) beneath_was_missing = true;
      this->set_state(start.console);
      Console::run_frame(true);
      start.drawn = 1;
    }
    this->set_state(now);
  }
};

}  // namespace scanline
