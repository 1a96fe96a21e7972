// tia_frame.h -- clocks of the TIA: where a frame begins, what it draws, when it must end.
//
// Changes the TIA's clocks in MachineState only; knows no register effects and no pixels. All
// sums wrap around in 32 bits, as they do in ALE after many frames without VSYNC or HMOVE.
#pragma once

#include "properties.h"
#include "state.h"
#include "tia_objects.h"

namespace scanline {

constexpr i32 kNoVsync = 0x7FFFFFFF;

SCANLINE_HD SCANLINE_INLINE i32 clock_of(u32 cycles) { return static_cast<i32>(cycles * 3u); }

SCANLINE_HD SCANLINE_INLINE i32 minus_wrapping(i32 clock, u32 amount) {
  return static_cast<i32>(static_cast<u32>(clock) - amount);
}

// Drawing and collisions exist in [start, stop) only.
struct Window {
  i32 start;
  i32 stop;
};

SCANLINE_HD SCANLINE_INLINE Window window_of(const MachineState& state,
                                             const Properties& properties) {
  const i32 start = state.frame_start_clock + kLineClocks * properties.y_start;
  return {start, start + kLineClocks * properties.height};
}

// A frame draws from its first line on, or from line 0 if a reset came into the middle of it.
SCANLINE_HD inline bool draws_from(const MachineState& state, const Properties& properties,
                                   i32 clock) {
  return clock == window_of(state, properties).start || clock == state.frame_start_clock;
}

SCANLINE_HD SCANLINE_INLINE i32 line_clock(const MachineState& state, i32 clock) {
  return (clock - state.frame_start_clock) % kLineClocks;
}

SCANLINE_HD SCANLINE_INLINE i32 lines_since_frame_start(const MachineState& state, i32 clock) {
  return (clock - state.frame_start_clock) / kLineClocks;
}

// A write on a later line than this ends the frame, VSYNC or not.
SCANLINE_HD SCANLINE_INLINE i32 line_limit(const Properties& properties) {
  return properties.pal ? 342 : 290;
}

// Cycles that WSYNC waits; 0 at the very start of a line.
SCANLINE_HD SCANLINE_INLINE u32 cycles_to_line_end(const MachineState& state, u32 cycles) {
  const i32 clock = line_clock(state, clock_of(cycles));
  return clock == 0 ? 0 : static_cast<u32>((kLineClocks - clock) / 3);
}

// Bit 0 of the colours: PAL televisions lose colour after a frame with an odd number of lines.
SCANLINE_HD SCANLINE_INLINE u8 colour_loss(const MachineState& state,
                                           const Properties& properties) {
  return properties.pal && (state.lines_of_last_frame & 1) ? 1 : 0;
}

// ALE's frame start. RIOT and cartridge must have rebased their cycles by state.cycles before.
SCANLINE_HD inline void start_tia_frame(MachineState& state, const Properties& properties) {
  const u32 gone = state.cycles * 3u;
  const i32 phase = line_clock(state, static_cast<i32>(gone));
  state.buffer_parity ^= 1;
  state.vsync_finish_clock = minus_wrapping(state.vsync_finish_clock, gone);
  state.last_hmove_clock = minus_wrapping(state.last_hmove_clock, gone);
  state.dump_disabled_cycle = minus_wrapping(state.dump_disabled_cycle, state.cycles);
  state.cycles = 0;
  state.frame_start_clock = -phase;
  state.draw_origin_clock = window_of(state, properties).start;
  state.last_clock = state.draw_origin_clock;
  state.greyed = 0;
  if (!properties.pal) return;
  for (u8& colour : state.colu) {
    colour = static_cast<u8>((colour & 0xFE) | colour_loss(state, properties));
  }
}

// After the last access of a run, with state.cycles up to date: counts the lines of a frame that
// ended (to the end of its last instruction), or greys once what a partial frame has not reached.
template <class Sink>
SCANLINE_HD inline void finish_tia_frame(MachineState& state, const Properties& properties,
                                         Sink& sink) {
  const i32 line = lines_since_frame_start(state, clock_of(state.cycles));
  if (!state.partial) {
    state.lines_of_last_frame = static_cast<u16>(line);
  } else if (!state.greyed) {
    sink.grey(line > properties.y_start ? line - properties.y_start : 0, properties.height);
  }
  state.greyed = state.partial;
}

SCANLINE_HD inline void reset_tia_registers(MachineState& state) {
  state.vsync = state.vblank = state.ctrlpf = 0;
  state.enabl = state.denabl = state.vdelbl = 0;
  state.reflect_now = state.comb = state.cosmic_ark = state.cosmic_ark_counter = 0;
  state.m0_variant = 0;
  state.collision = 0;
  for (u32 i = 0; i < 2; ++i) {
    state.nusiz[i] = state.refp[i] = state.grp[i] = state.dgrp[i] = state.enam[i] = 0;
    state.vdelp[i] = state.resmp[i] = state.suppress[i] = 0;
  }
  for (u8& colour : state.colu) colour = 0;
  for (u8& part : state.pf) part = 0;
  for (u8& motion : state.hm) motion = 0;
  for (u8& position : state.pos) position = 0;
}

// System reset; state.cycles is 0 already. Keeps `partial`, `greyed` and the picture's parity: if
// the frame was partial no new one starts, and drawing begins at line 0 instead of y_start.
// Both pictures become black; that is the owner's job.
SCANLINE_HD inline void reset_tia(MachineState& state) {
  reset_tia_registers(state);
  state.frame_start_clock = clock_of(state.cycles);
  state.draw_origin_clock = state.frame_start_clock;
  state.last_clock = state.frame_start_clock;
  state.vsync_finish_clock = kNoVsync;
  state.last_hmove_clock = 0;
  state.dump_disabled_cycle = 0;
  state.lines_of_last_frame = 0;
}

}  // namespace scanline
