// tia_plain.h -- the TIA pixel by pixel: slow, obvious, and the reference of tia_masks.h.
//
// Draws lazily as ALE does: every access first draws up to its moment with the registers as they
// were. Takes the console's state, the ROM's properties and a sink; knows no CPU.
// Checked by tests/test_tia_plain.cpp against known pictures, and by conformance with ALE.
#pragma once

#include "sinks.h"
#include "state.h"
#include "tia_frame.h"
#include "tia_registers.h"

namespace scanline {

template <class Sink>
class PlainTia {
 public:
  SCANLINE_HD PlainTia(MachineState& state, const Properties& properties, Sink sink)
      : state_(state), properties_(properties), sink_(sink) {
    sink_.select(state_.buffer_parity);
  }

  // Begins a frame; not to be called when the last one was partial.
  SCANLINE_HD void start_frame() {
    start_tia_frame(state_, properties_);
    sink_.select(state_.buffer_parity);
  }

  SCANLINE_HD u8 read(u16 address, u8 data_bus, u32 cycles) {
    draw_to(clock_of(cycles));
    return static_cast<u8>(read_register(state_, address, cycles) | (data_bus & 0x3F));
  }

  // True if the frame ends with the instruction that made this write; `partial` is cleared then.
  SCANLINE_HD bool write(u16 address, u8 value, u32& cycles, bool after_read) {
    const u32 target = address & 0x3F;
    const i32 clock = clock_of(cycles);
    draw_to(clock + write_delay(target, line_clock(state_, clock)));
    bool ended = lines_since_frame_start(state_, clock) > line_limit(properties_);
    if (target == VSYNC) {
      ended |= write_vsync(state_, value, clock);
    } else if (target == WSYNC) {
      if (after_read) cycles += cycles_to_line_end(state_, cycles);
    } else if (target == RESP0 || target == RESP1) {
      strobe_player_reset(target - RESP0, clock);
    } else {
      write_register(state_, properties_, target, value, clock);
    }
    if (ended) state_.partial = 0;
    return ended;
  }

  SCANLINE_HD void finish() { finish_tia_frame(state_, properties_, sink_); }

 private:
  SCANLINE_HD void strobe_player_reset(u32 i, i32 clock) {
    const i32 position = player_reset_position(line_clock(state_, clock));
    const ResetMeets meets = player_reset_meets(state_.nusiz[i], state_.pos[kP0 + i], position);
    if (meets == ResetMeets::kCopy) draw_to(clock + kResetOverCopyClocks);
    reset_player(state_, i, position, meets);
  }

  SCANLINE_HD void draw_to(i32 clock) {
    const Window window = window_of(state_, properties_);
    if (clock < window.start) return;
    if (clock > window.stop) clock = window.stop;
    if (state_.last_clock >= clock) return;
    const u32 enabled = enabled_objects(state_);
    for (i32 t = state_.last_clock - state_.draw_origin_clock; t < clock - state_.draw_origin_clock;
         ++t) {
      draw_clock(t / kLineClocks, t % kLineClocks, enabled);
    }
    state_.last_clock = clock;
  }

  SCANLINE_HD void draw_clock(i32 row, i32 clock_in_line, u32 enabled) {
    if (clock_in_line == 0 && row != 0) end_line(state_);
    const i32 x = clock_in_line - kBlankClocks;
    if (x < 0) return;
    sink_.put(row, x, pixel(x, enabled));
    if (x == kCombPixels - 1) state_.comb = 0;
  }

  // Colour of one pixel; collisions happen under the comb too, but not in vertical blank.
  SCANLINE_HD u8 pixel(i32 x, u32 enabled) {
    if (state_.vblank & 2) return 0;
    const u32 objects = objects_at(x, enabled);
    if (objects & (objects - 1)) state_.collision |= static_cast<u16>(latches_of(objects));
    if (state_.comb && x < kCombPixels) return 0;
    return state_.colu[colour_at(priority_of(state_.ctrlpf, enabled), objects, x < 80)];
  }

  // Enabled objects that are lit at pixel x.
  SCANLINE_HD u32 objects_at(i32 x, u32 enabled) const {
    u32 objects = 0;
    for (u32 i = 0; i < 2; ++i) {
      if ((enabled & object_bit(kP0 + i)) && player_at(player_pattern(state_, i), state_.nusiz[i],
                                                       state_.pos[kP0 + i], state_.suppress[i], x))
        objects |= object_bit(kP0 + i);
      const i32 width = i == 0 ? missile0_width(state_) : narrow_width(state_.nusiz[1]);
      if ((enabled & object_bit(kM0 + i)) &&
          missile_at(state_.nusiz[i], width, state_.pos[kM0 + i], x))
        objects |= object_bit(kM0 + i);
    }
    if ((enabled & object_bit(kBall)) && ball_at(narrow_width(state_.ctrlpf), state_.pos[kBall], x))
      objects |= object_bit(kBall);
    if ((enabled & object_bit(kPlayfield)) &&
        playfield_at(playfield_bits(state_), state_.reflect_now, x))
      objects |= object_bit(kPlayfield);
    return objects;
  }

  MachineState& state_;
  const Properties& properties_;
  Sink sink_;
};

}  // namespace scanline
