// state.h -- everything one console remembers, as one trivially copyable struct.
//
// One field list generates the struct, the snapshot and the printer of the first difference, so
// that no hand-written copy can forget a field. Only canonical fields: what can be computed from
// others (masks, effective patterns, enabled bits) belongs to the TIA's derived part, never here.
// No padding is left unset (fields are ordered by width), hence memcmp is equality of consoles.
// Clocks are 32-bit with wrap-around and are rebased at the start of a frame.
#pragma once

#include "types.h"

namespace scanline {

constexpr u32 kStateVersion = 1;  // raise it whenever the field list changes

// Values of paddle_threshold_cycles that are no charge time.
constexpr u32 kNoPaddle = 0xFFFFFFFF;    // infinite resistance: the input never charges
constexpr u32 kZeroPaddle = 0xFFFFFFFE;  // no resistance: the input is always charged

// SCALAR(type, name) and ARRAY(type, name, count); widest first.
#define SCANLINE_STATE_FIELDS(SCALAR, ARRAY)                                                    \
  /* clocks: CPU cycles and colour clocks (3 per cycle) since the start of the frame */         \
  SCALAR(u32, cycles)             /* CPU cycles executed in this frame */                       \
  SCALAR(i32, frame_start_clock)  /* <= 0: clocks of its line already gone at frame start */    \
  SCALAR(i32, draw_origin_clock)  /* first clock that this frame draws */                       \
  SCALAR(i32, last_clock)         /* how far ALE's TIA has been brought up to date */           \
  SCALAR(i32, vsync_finish_clock) /* earliest clock at which VSYNC off ends the frame */        \
  SCALAR(i32, last_hmove_clock)                                                                 \
  SCALAR(i32, dump_disabled_cycle) /* cycle at which the paddle capacitors began to charge */   \
  SCALAR(i32, timer_set_cycle)                                                                  \
  SCALAR(i32, timer_interrupt_read_cycle)                                                       \
  SCALAR(u32, system_random_draws)       /* draws taken from the fixed-seed system generator */ \
  ARRAY(u32, paddle_threshold_cycles, 4) /* charge time of INPT0..3; kNoPaddle, kZeroPaddle */  \
  SCALAR(u16, pc)                                                                               \
  SCALAR(u16, collision) /* bits 2r, 2r+1: D7, D6 of collision register r (CXM0P is 0) */       \
  SCALAR(u16, lines_of_last_frame)                                                              \
  SCALAR(u8, a)                                                                                 \
  SCALAR(u8, x)                                                                                 \
  SCALAR(u8, y)                                                                                 \
  SCALAR(u8, sp)                                                                                \
  SCALAR(u8, p) /* NV1BDIZC */                                                                  \
  SCALAR(u8, jammed)                                                                            \
  SCALAR(u8, partial)       /* the last frame stopped at the instruction limit */               \
  SCALAR(u8, greyed)        /* its undrawn part has been greyed already */                      \
  SCALAR(u8, buffer_parity) /* which of the two pictures is the current one */                  \
  SCALAR(u8, timer)                                                                             \
  SCALAR(u8, timer_shift)                                                                       \
  SCALAR(u8, timer_read_after_interrupt)                                                        \
  SCALAR(u8, ddra)                                                                              \
  SCALAR(u8, swcha)      /* joystick lines as the RIOT reads them */                            \
  SCALAR(u8, swchb)      /* console switches */                                                 \
  SCALAR(u8, fire_lines) /* bit 0: INPT4 pressed, bit 1: INPT5 pressed */                       \
  /* TIA: registers as written */                                                               \
  SCALAR(u8, vsync)                                                                             \
  SCALAR(u8, vblank)                                                                            \
  ARRAY(u8, nusiz, 2)                                                                           \
  ARRAY(u8, colu, 4) /* P0, P1, PF, BK, colour-loss bit included */                             \
  SCALAR(u8, ctrlpf)                                                                            \
  ARRAY(u8, refp, 2)                                                                            \
  ARRAY(u8, pf, 3)                                                                              \
  ARRAY(u8, grp, 2)                                                                             \
  ARRAY(u8, dgrp, 2) /* delayed copies */                                                       \
  ARRAY(u8, enam, 2)                                                                            \
  SCALAR(u8, enabl)                                                                             \
  SCALAR(u8, denabl)                                                                            \
  ARRAY(u8, hm, 5) /* motion nibbles P0, P1, M0, M1, BL */                                      \
  ARRAY(u8, vdelp, 2)                                                                           \
  SCALAR(u8, vdelbl)                                                                            \
  ARRAY(u8, resmp, 2)                                                                           \
  ARRAY(u8, pos, 5) /* horizontal positions P0, P1, M0, M1, BL, 0..159 */                       \
  /* TIA: what the order of writes leaves behind */                                             \
  ARRAY(u8, suppress, 2)  /* the first copy of player i is hidden */                            \
  SCALAR(u8, reflect_now) /* reflection in force on the current line */                         \
  SCALAR(u8, comb)        /* the HMOVE comb waits for its line */                               \
  SCALAR(u8, cosmic_ark)                                                                        \
  SCALAR(u8, cosmic_ark_counter)                                                                \
  SCALAR(u8, m0_variant) /* 0 as NUSIZ says, 1 wide, 2 hidden */                                \
  /* cartridge */                                                                               \
  ARRAY(u8, bank, 4) /* current bank, or the four slices of E0 */                               \
  ARRAY(u8, ram, 128)

#define SCANLINE_SCALAR(type, name) type name;
#define SCANLINE_ARRAY(type, name, count) type name[count];
struct MachineState {
  SCANLINE_STATE_FIELDS(SCANLINE_SCALAR, SCANLINE_ARRAY)
};
#undef SCANLINE_SCALAR
#undef SCANLINE_ARRAY

}  // namespace scanline
