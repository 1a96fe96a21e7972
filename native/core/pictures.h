// pictures.h -- a console's two pictures when only some frames are seen. Host only.
//
// Takes one frame attempt at a time, seen or not, and a way to run it with any sink; gives pictures
// equal to those of a console that draws every frame. Knows no CPU, no cartridge type and no
// environment.
//
// A frame that draws its whole window is complete: nothing of the buffer's older content is left,
// and it can be drawn again from the state at its start. So unseen frames leave that state instead
// of pixels. A frame that ends early keeps the lines of two frames ago, and one that goes on in the
// next attempt is greyed; both act on colour indices, so these (rare) frames are drawn as indices,
// their older content redrawn first if it was not seen, and then translated by `Map`.
#pragma once

#include "cartridge_state.h"
#include "sinks.h"
#include "state.h"
#include "tia_frame.h"

namespace scanline {

// What determines a frame: everything before its first instruction, inputs included.
struct FrameStart {
  MachineState machine;
  CartridgeState cartridge;
};

// True for a frame that has ended and drawn every line of its window.
inline bool drew_everything(const MachineState& machine, const Properties& properties) {
  return !machine.partial && machine.last_clock == window_of(machine, properties).stop;
}

// `Run` below is called as run(MachineState&, CartridgeState&, sink) and runs one frame attempt.
template <class Map = IndexMap>
class Pictures {
 public:
  explicit Pictures(const Properties& properties, Map map = Map())
      : properties_(properties), map_(map) {
    clear();
  }
  ~Pictures() { delete[] indices_; }
  Pictures(const Pictures&) = delete;
  Pictures& operator=(const Pictures&) = delete;

  // System reset: both pictures are black.
  void clear() {
    fill(pictures_, 0, 2 * kPictureBytes, map_(0));
    if (indices_) fill(indices_, 0, 2 * kPictureBytes, 0);
    for (Buffer& buffer : buffers_) {
      buffer.is_redrawable = false;
      buffer.is_drawn = true;
    }
    draws_indices_ = false;
  }

  template <class Run>
  void run_frame(MachineState& machine, CartridgeState& cartridge, bool seen, Run run) {
    if (machine.partial) return continue_frame(machine, cartridge, run);
    const FrameStart start{machine, cartridge};
    const u32 which = machine.buffer_parity ^ 1;
    if (draws_indices_) {
      run_with_indices(machine, cartridge, which, run);
    } else if (seen) {
      run(machine, cartridge, Pixels<Map>(pictures_, map_));
    } else {
      run(machine, cartridge, NoPixels());
    }
    if (drew_everything(machine, properties_)) {
      buffers_[which].start = start;
      buffers_[which].is_redrawable = true;
      buffers_[which].is_drawn = seen || draws_indices_;
      draws_indices_ = false;
    } else {
      if (!draws_indices_) repair(start, which, run);
      buffers_[which].is_redrawable = false;
      draws_indices_ = true;
    }
  }

  // The picture of the last frame, drawn now if nobody was to see it.
  template <class Run>
  const u8* current(const MachineState& machine, Run run) {
    return picture(machine.buffer_parity, run);
  }

  // The picture of the frame before.
  template <class Run>
  const u8* previous(const MachineState& machine, Run run) {
    return picture(machine.buffer_parity ^ 1, run);
  }

 private:
  struct Buffer {
    FrameStart start;    // of the frame it shows, if it is redrawable
    bool is_redrawable;  // shows a complete frame; otherwise `indices_` holds it
    bool is_drawn;       // `pictures_` holds it
  };

  template <class Run>
  const u8* picture(u32 which, Run run) {
    if (!buffers_[which].is_drawn) redraw(which, Pixels<Map>(pictures_, map_), run);
    buffers_[which].is_drawn = true;
    return pictures_ + which * kPictureBytes;
  }

  template <class Sink, class Run>
  void redraw(u32 which, Sink sink, Run run) {
    FrameStart again = buffers_[which].start;
    run(again.machine, again.cartridge, sink);
  }

  // Afterwards `indices_` holds what the buffer shows.
  template <class Run>
  void hold_indices(u32 which, Run run) {
    if (!indices_) {
      indices_ = new u8[2 * kPictureBytes];
      fill(indices_, 0, 2 * kPictureBytes, 0);
    }
    if (buffers_[which].is_redrawable) redraw(which, Pixels<IndexMap>(indices_), run);
    buffers_[which].is_redrawable = false;
  }

  template <class Run>
  void run_with_indices(MachineState& machine, CartridgeState& cartridge, u32 which, Run run) {
    hold_indices(which, run);
    run(machine, cartridge, Pixels<IndexMap>(indices_));
    translate(which);
  }

  // The frame turned out to be incomplete: once more, over what the buffer showed before.
  template <class Run>
  void repair(const FrameStart& start, u32 which, Run run) {
    FrameStart again = start;
    run_with_indices(again.machine, again.cartridge, which, run);
  }

  // Not redrawable, since inputs may have changed within the frame.
  template <class Run>
  void continue_frame(MachineState& machine, CartridgeState& cartridge, Run run) {
    run_with_indices(machine, cartridge, machine.buffer_parity, run);
    draws_indices_ = true;
  }

  void translate(u32 which) {
    const u32 first = which * kPictureBytes;
    for (u32 i = first; i < first + kPictureBytes; ++i) pictures_[i] = map_(indices_[i]);
    buffers_[which].is_drawn = true;
  }

  const Properties& properties_;
  Map map_;
  Buffer buffers_[2];
  bool draws_indices_;              // the last frame was incomplete, the next one may well be
  u8* indices_ = nullptr;           // two pictures of indices, allocated when first needed
  u8 pictures_[2 * kPictureBytes];  // two pictures of mapped bytes
};

}  // namespace scanline
