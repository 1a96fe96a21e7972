// tia_registers.h -- what a write to each TIA register does to the state, and what a read gives.
//
// Takes a state that is drawn up to the write's moment; when that is, and drawing itself, is the
// business of tia_plain.h and tia_masks.h, which share these effects. WSYNC, RSYNC and audio
// change nothing here.
#pragma once

#include "state.h"
#include "tia_frame.h"
#include "tia_objects.h"

namespace scanline {

enum TiaWrite : u8 {
  VSYNC = 0x00,
  VBLANK = 0x01,
  WSYNC = 0x02,
  NUSIZ0 = 0x04,
  NUSIZ1 = 0x05,
  COLUP0 = 0x06,
  COLUP1 = 0x07,
  COLUPF = 0x08,
  COLUBK = 0x09,
  CTRLPF = 0x0A,
  REFP0 = 0x0B,
  REFP1 = 0x0C,
  PF0 = 0x0D,
  PF1 = 0x0E,
  PF2 = 0x0F,
  RESP0 = 0x10,
  RESP1 = 0x11,
  RESM0 = 0x12,
  RESM1 = 0x13,
  RESBL = 0x14,
  GRP0 = 0x1B,
  GRP1 = 0x1C,
  ENAM0 = 0x1D,
  ENAM1 = 0x1E,
  ENABL = 0x1F,
  HMP0 = 0x20,
  HMP1 = 0x21,
  HMM0 = 0x22,
  HMM1 = 0x23,
  HMBL = 0x24,
  VDELP0 = 0x25,
  VDELP1 = 0x26,
  VDELBL = 0x27,
  RESMP0 = 0x28,
  RESMP1 = 0x29,
  HMOVE = 0x2A,
  HMCLR = 0x2B,
  CXCLR = 0x2C,
};

// X(register) for each of them. clang-format finds no rest in such a list.
// clang-format off
#define SCANLINE_TIA_WRITES(X) \
  X(VSYNC) X(VBLANK) X(WSYNC) X(NUSIZ0) X(NUSIZ1) X(COLUP0) X(COLUP1) X(COLUPF) X(COLUBK) \
  X(CTRLPF) X(REFP0) X(REFP1) X(PF0) X(PF1) X(PF2) X(RESP0) X(RESP1) X(RESM0) X(RESM1) X(RESBL) \
  X(GRP0) X(GRP1) X(ENAM0) X(ENAM1) X(ENABL) X(HMP0) X(HMP1) X(HMM0) X(HMM1) X(HMBL) X(VDELP0) \
  X(VDELP1) X(VDELBL) X(RESMP0) X(RESMP1) X(HMOVE) X(HMCLR) X(CXCLR)
// clang-format on

enum M0Variant : u8 { kMissileNormal = 0, kMissileWide = 1, kMissileHidden = 2 };

constexpr i32 kResetOverCopyClocks = 11;  // a player reset over its copy is drawn this much further

// Clocks after which a write is seen. Playfield registers wait for their pixel clock.
SCANLINE_HD SCANLINE_INLINE constexpr i32 write_delay(u32 address, i32 clock_of_line) {
  switch (address) {
    case VBLANK:
    case REFP0:
    case REFP1:
    case GRP0:
    case GRP1:
      return 1;
    case NUSIZ0:
    case NUSIZ1:
    case RESM0:
    case RESM1:
      return 8;
    case PF0:
    case PF1:
    case PF2:
      return 2 + ((clock_of_line / 3 + 2) & 3);
    default:
      return 0;
  }
}

// --- values that follow from the registers -------------------------------------------------------

// The byte that a player shows, before reflection.
SCANLINE_HD SCANLINE_INLINE u8 player_byte(const MachineState& state, u32 i) {
  return state.vdelp[i] ? state.dgrp[i] : state.grp[i];
}

SCANLINE_HD SCANLINE_INLINE u8 player_pattern(const MachineState& state, u32 i) {
  const u8 pattern = player_byte(state, i);
  return state.refp[i] ? reverse_bits(pattern) : pattern;
}

SCANLINE_HD SCANLINE_INLINE u32 playfield_bits(const MachineState& state) {
  return playfield_bits(state.pf[0], state.pf[1], state.pf[2]);
}

SCANLINE_HD SCANLINE_INLINE bool missile_enabled(const MachineState& state, u32 i) {
  return state.enam[i] && !state.resmp[i];
}

SCANLINE_HD SCANLINE_INLINE bool ball_enabled(const MachineState& state) {
  return state.vdelbl ? state.denabl : state.enabl;
}

// Width of missile 0 on the current line; 0 hides it (it stays enabled).
SCANLINE_HD SCANLINE_INLINE i32 missile0_width(const MachineState& state) {
  if (state.m0_variant == kMissileHidden) return 0;
  return narrow_width(state.nusiz[0] | (state.m0_variant == kMissileWide ? 0x10 : 0));
}

SCANLINE_HD inline u32 enabled_objects(const MachineState& state) {
  u32 enabled = 0;
  for (u32 i = 0; i < 2; ++i) {
    if (player_pattern(state, i) != 0) enabled |= object_bit(kP0 + i);
    if (missile_enabled(state, i)) enabled |= object_bit(kM0 + i);
  }
  if (ball_enabled(state)) enabled |= object_bit(kBall);
  if (playfield_bits(state) != 0) enabled |= object_bit(kPlayfield);
  return enabled;
}

// --- line end ------------------------------------------------------------------------------------

// Cosmic Ark's starfield: missile 0 keeps moving by itself.
SCANLINE_HD inline void step_cosmic_ark(MachineState& state) {
  constexpr u32 kSteps = 0x11002112;  // 18, 33, 0, 17 pixels to the left, lowest byte first
  state.cosmic_ark_counter = (state.cosmic_ark_counter + 1) & 3;
  const i32 step = static_cast<i32>((kSteps >> (8 * state.cosmic_ark_counter)) & 0xFF);
  state.pos[kM0] = static_cast<u8>(wrap(state.pos[kM0] - step));
  state.m0_variant = state.cosmic_ark_counter == 1   ? kMissileWide
                     : state.cosmic_ark_counter == 2 ? kMissileHidden
                                                     : kMissileNormal;
}

// Done when the first clock after a displayed line is drawn.
SCANLINE_HD inline void end_line(MachineState& state) {
  state.reflect_now = state.ctrlpf & 1;
  state.suppress[0] = state.suppress[1] = 0;
  if (state.cosmic_ark) step_cosmic_ark(state);
}

// --- writes --------------------------------------------------------------------------------------

// True when this write ends the frame.
SCANLINE_HD inline bool write_vsync(MachineState& state, u8 value, i32 clock) {
  state.vsync = value;
  if (value & 2) {
    state.vsync_finish_clock = clock + kLineClocks;
    return false;
  }
  if (clock < state.vsync_finish_clock) return false;
  state.vsync_finish_clock = kNoVsync;
  return true;
}

SCANLINE_HD inline void write_vblank(MachineState& state, u8 value, i32 clock) {
  if ((state.vblank & 0x80) && !(value & 0x80)) state.dump_disabled_cycle = clock / 3;
  state.vblank = value;
}

SCANLINE_HD inline void write_nusiz(MachineState& state, u32 i, u8 value) {
  state.nusiz[i] = value;
  state.suppress[i] = 0;
  if (i == 0) state.m0_variant = kMissileNormal;
}

SCANLINE_HD inline void write_ctrlpf(MachineState& state, u8 value, i32 clock) {
  state.ctrlpf = value;
  if (line_clock(state, clock) < kBlankClocks + 79) state.reflect_now = value & 1;
}

// GRP0 and GRP1 each latch the other's delayed copy, GRP1 the ball's as well.
SCANLINE_HD inline void write_grp(MachineState& state, u32 i, u8 value) {
  state.grp[i] = value;
  state.dgrp[i ^ 1] = state.grp[i ^ 1];
  if (i == 1) state.denabl = state.enabl;
}

// The caller draws on by kResetOverCopyClocks first if the reset meets a copy.
SCANLINE_HD inline void reset_player(MachineState& state, u32 i, i32 position, ResetMeets meets) {
  state.pos[kP0 + i] = static_cast<u8>(position);
  state.suppress[i] = meets == ResetMeets::kStart ? 0 : 1;
}

SCANLINE_HD inline void reset_missile(MachineState& state, u32 i, i32 clock) {
  const i32 clock_in_line = line_clock(state, clock);
  const u32 since_hmove = static_cast<u32>(clock) - static_cast<u32>(state.last_hmove_clock);
  state.pos[kM0 + i] =
      static_cast<u8>(i == 0 ? missile0_reset_position(clock_in_line, since_hmove)
                             : missile1_reset_position(clock_in_line, since_hmove));
  if (i == 0) state.m0_variant = kMissileNormal;
}

SCANLINE_HD inline void reset_ball(MachineState& state, i32 clock) {
  const u32 since_hmove = static_cast<u32>(clock) - static_cast<u32>(state.last_hmove_clock);
  state.pos[kBall] = static_cast<u8>(ball_reset_position(line_clock(state, clock), since_hmove));
}

// HMM0 going from 7 to 6 exactly 21 cycles after HMOVE lets missile 0 run.
SCANLINE_HD inline void write_motion(MachineState& state, u32 object, u8 value, i32 clock) {
  const u8 nibble = value >> 4;
  const u32 since_hmove = static_cast<u32>(clock) - static_cast<u32>(state.last_hmove_clock);
  if (object == kM0 && since_hmove == 63 && state.hm[kM0] == 7 && nibble == 6) {
    state.cosmic_ark = 1;
    state.cosmic_ark_counter = 0;
  }
  state.hm[object] = nibble;
}

SCANLINE_HD inline void write_resmp(MachineState& state, u32 i, u8 value) {
  const u8 locked = (value >> 1) & 1;
  if (state.resmp[i] && !locked) {
    state.pos[kM0 + i] = static_cast<u8>(wrap(state.pos[kP0 + i] + player_middle(state.nusiz[i])));
    if (i == 0) state.m0_variant = kMissileNormal;
  }
  state.resmp[i] = locked;
}

SCANLINE_HD inline void move_objects(MachineState& state, i32 line_cycle) {
  const HmoveBounds bounds = hmove_bounds(line_cycle);
  for (u32 object = kP0; object <= kBall; ++object) {
    const i32 dx = hmove_motion(bounds, state.hm[object]);
    state.pos[object] = static_cast<u8>(wrap(state.pos[object] + dx));
  }
}

// What else HMOVE ends: copies hidden by a reset and the running missile.
SCANLINE_HD SCANLINE_INLINE void end_hmove(MachineState& state, i32 clock) {
  state.suppress[0] = state.suppress[1] = 0;
  state.m0_variant = kMissileNormal;
  state.cosmic_ark = 0;
  state.last_hmove_clock = clock;
}

SCANLINE_HD inline void strobe_hmove(MachineState& state, const Properties& properties, i32 clock) {
  const i32 cycle = line_clock(state, clock) / 3;
  if (properties.hmove_blanks && hmove_draws_comb(cycle)) state.comb = 1;
  move_objects(state, cycle);
  end_hmove(state, clock);
}

SCANLINE_HD inline void clear_motion(MachineState& state) {
  for (u8& nibble : state.hm) nibble = 0;
}

// Everything but VSYNC, WSYNC, RESP0 and RESP1, which also need the caller.
SCANLINE_HD inline void write_register(MachineState& state, const Properties& properties,
                                       u32 address, u8 value, i32 clock) {
  switch (address) {
      // clang-format off
    case VBLANK: return write_vblank(state, value, clock);
    case NUSIZ0: case NUSIZ1: return write_nusiz(state, address - NUSIZ0, value);
    case COLUP0: case COLUP1: case COLUPF: case COLUBK:
      state.colu[address - COLUP0] =
          static_cast<u8>((value & 0xFE) | colour_loss(state, properties));
      return;
    case CTRLPF: return write_ctrlpf(state, value, clock);
    case REFP0: case REFP1: state.refp[address - REFP0] = (value >> 3) & 1; return;
    case PF0: state.pf[0] = value & 0xF0; return;
    case PF1: case PF2: state.pf[address - PF0] = value; return;
    case RESM0: case RESM1: return reset_missile(state, address - RESM0, clock);
    case RESBL: return reset_ball(state, clock);
    case GRP0: case GRP1: return write_grp(state, address - GRP0, value);
    case ENAM0: case ENAM1: state.enam[address - ENAM0] = (value >> 1) & 1; return;
    case ENABL: state.enabl = (value >> 1) & 1; return;
    case HMP0: case HMP1: case HMM0: case HMM1: case HMBL:
      return write_motion(state, address - HMP0, value, clock);
    case VDELP0: case VDELP1: state.vdelp[address - VDELP0] = value & 1; return;
    case VDELBL: state.vdelbl = value & 1; return;
    case RESMP0: case RESMP1: return write_resmp(state, address - RESMP0, value);
    case HMOVE: return strobe_hmove(state, properties, clock);
    case HMCLR: return clear_motion(state);
    case CXCLR: state.collision = 0; return;
    default: return;
      // clang-format on
  }
}

// --- reads ---------------------------------------------------------------------------------------

// A paddle's capacitor has charged. The sum is unsigned, as in ALE: a start in an earlier frame
// may be negative and then counts as far in the future.
SCANLINE_HD inline bool paddle_charged(const MachineState& state, u32 paddle, u32 cycles) {
  const u32 threshold = state.paddle_threshold_cycles[paddle];
  if (threshold == kZeroPaddle) return true;
  if (threshold == kNoPaddle || (state.vblank & 0x80)) return false;
  return cycles > static_cast<u32>(state.dump_disabled_cycle) + threshold;
}

// Bits 6 and 7 of a read; the other six are what the data bus held.
SCANLINE_HD inline u8 read_register(const MachineState& state, u32 address, u32 cycles) {
  const u32 which = address & 0x0F;
  if (which < 8) {
    const u32 latches = static_cast<u32>(state.collision) >> (2 * which);
    return static_cast<u8>(((latches & 1) << 7) | ((latches & 2) << 5));
  }
  if (which < 12) return paddle_charged(state, which - 8, cycles) ? 0x80 : 0;
  if (which < 14) return (state.fire_lines >> (which - 12)) & 1 ? 0 : 0x80;
  return 0;
}

}  // namespace scanline
