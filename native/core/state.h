// state.h -- everything one console remembers, as one trivially copyable struct.
//
// One field list (fields.h) generates the struct, the check of a snapshot and the printer of the
// first difference, so that no hand-written copy can forget a field. Only canonical fields: what
// can be computed from others (masks, effective patterns, enabled bits) belongs to the TIA's
// derived part, never here. Clocks are 32-bit with wrap-around and are rebased at the start of a
// frame.
#pragma once

#include "fields.h"

namespace scanline {

constexpr u32 kStateVersion = 1;  // raise it whenever the layout changes

// Values of paddle_threshold_cycles that are no charge time.
constexpr u32 kNoPaddle = 0xFFFFFFFF;    // infinite resistance: the input never charges
constexpr u32 kZeroPaddle = 0xFFFFFFFE;  // no resistance: the input is always charged

// Bounds may also use `properties` and `Cartridge`, the ROM's policy (state_check.h).
#define SCANLINE_STATE_FIELDS(SCALAR, ARRAY)                                                    \
  /* clocks: CPU cycles and colour clocks (3 per cycle) since the start of the frame */         \
  SCALAR(u32, cycles, value <= kMaxCycles) /* CPU cycles executed in this frame */              \
  /* <= 0: clocks of its line already gone at frame start */                                    \
  SCALAR(i32, frame_start_clock, value > -kLineClocks && value <= 0)                            \
  /* first clock that this frame draws */                                                       \
  SCALAR(i32, draw_origin_clock, draws_from(state, properties, value))                          \
  /* how far ALE's TIA has been brought up to date */                                           \
  SCALAR(i32, last_clock,                                                                       \
         value >= state.draw_origin_clock && value <= window_of(state, properties).stop)        \
  SCALAR(i32, vsync_finish_clock, true) /* earliest clock at which VSYNC off ends the frame */  \
  SCALAR(i32, last_hmove_clock, true)                                                           \
  SCALAR(i32, dump_disabled_cycle,                                                              \
         true) /* cycle at which the paddle capacitors began to charge */                       \
  SCALAR(i32, timer_set_cycle, true)                                                            \
  SCALAR(i32, timer_interrupt_read_cycle, true)                                                 \
  /* draws taken from the fixed-seed system generator */                                        \
  SCALAR(u32, system_random_draws, value <= kMaxSkippedWords)                                   \
  /* charge time of INPT0..3; kNoPaddle, kZeroPaddle */                                         \
  ARRAY(u32, paddle_threshold_cycles, 4, is_paddle_threshold(properties, value))                \
  SCALAR(u16, pc, true)                                                                         \
  SCALAR(u16, collision, true) /* bits 2r, 2r+1: D7, D6 of collision register r (CXM0P is 0) */ \
  SCALAR(u16, lines_of_last_frame, true)                                                        \
  SCALAR(u8, a, true)                                                                           \
  SCALAR(u8, x, true)                                                                           \
  SCALAR(u8, y, true)                                                                           \
  SCALAR(u8, sp, true)                                                                          \
  SCALAR(u8, p, true) /* NV1BDIZC */                                                            \
  SCALAR(u8, jammed, value <= 1)                                                                \
  SCALAR(u8, partial, value <= 1)       /* the last frame stopped at the instruction limit */   \
  SCALAR(u8, greyed, value <= 1)        /* its undrawn part has been greyed already */          \
  SCALAR(u8, buffer_parity, value <= 1) /* which of the two pictures is the current one */      \
  SCALAR(u8, timer, true)                                                                       \
  SCALAR(u8, timer_shift, is_timer_shift(value))                                                \
  SCALAR(u8, timer_read_after_interrupt, value <= 1)                                            \
  SCALAR(u8, ddra, true)                                                                        \
  SCALAR(u8, swcha, true)            /* joystick lines as the RIOT reads them */                \
  SCALAR(u8, swchb, true)            /* console switches */                                     \
  SCALAR(u8, fire_lines, value <= 3) /* bit 0: INPT4 pressed, bit 1: INPT5 pressed */           \
  /* TIA: registers as written */                                                               \
  SCALAR(u8, vsync, true)                                                                       \
  SCALAR(u8, vblank, true)                                                                      \
  ARRAY(u8, nusiz, 2, true)                                                                     \
  ARRAY(u8, colu, 4, true) /* P0, P1, PF, BK, colour-loss bit included */                       \
  SCALAR(u8, ctrlpf, true)                                                                      \
  ARRAY(u8, refp, 2, value <= 1)                                                                \
  ARRAY(u8, pf, 3, index != 0 || (value & 0x0F) == 0)                                           \
  ARRAY(u8, grp, 2, true)                                                                       \
  ARRAY(u8, dgrp, 2, true) /* delayed copies */                                                 \
  ARRAY(u8, enam, 2, value <= 1)                                                                \
  SCALAR(u8, enabl, value <= 1)                                                                 \
  SCALAR(u8, denabl, value <= 1)                                                                \
  ARRAY(u8, hm, 5, value <= 15) /* motion nibbles P0, P1, M0, M1, BL */                         \
  ARRAY(u8, vdelp, 2, value <= 1)                                                               \
  SCALAR(u8, vdelbl, value <= 1)                                                                \
  ARRAY(u8, resmp, 2, value <= 1)                                                               \
  ARRAY(u8, pos, 5, value < kWidth) /* horizontal positions P0, P1, M0, M1, BL */               \
  /* TIA: what the order of writes leaves behind */                                             \
  ARRAY(u8, suppress, 2, value <= 1)  /* the first copy of player i is hidden */                \
  SCALAR(u8, reflect_now, value <= 1) /* reflection in force on the current line */             \
  SCALAR(u8, comb, value <= 1)        /* the HMOVE comb waits for its line */                   \
  SCALAR(u8, cosmic_ark, value <= 1)                                                            \
  SCALAR(u8, cosmic_ark_counter, value <= 3)                                                    \
  SCALAR(u8, m0_variant, value <= 2) /* 0 as NUSIZ says, 1 wide, 2 hidden */                    \
  /* cartridge */                                                                               \
  ARRAY(u8, bank, 4, Cartridge::has_bank(index, value)) /* current bank, or E0's four slices */ \
  ARRAY(u8, ram, 128, true)                                                                     \
  ARRAY(u8, unused, 2, value == 0)

struct MachineState {
  SCANLINE_DECLARE(SCANLINE_STATE_FIELDS)
};
SCANLINE_NO_PADDING(MachineState, SCANLINE_STATE_FIELDS);

}  // namespace scanline
