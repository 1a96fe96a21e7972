// idle_skip.h -- how many turns of a waiting loop change nothing but the clock.
//
// A waiting loop is one instruction and a branch back to it. The turns counted here can be skipped
// by adding their cycles and instructions; the one that follows is executed as usual, so registers
// and flags need no model. Exact for every timer value, interval and phase: the timer only falls,
// it is not read past its expiry, and the branch of each skipped turn is taken.
#pragma once

#include "decoded_op.h"
#include "riot.h"

namespace scanline {

// Reads at delta, delta + period, ...: how many of them are at or below the last one wanted?
SCANLINE_HD SCANLINE_INLINE u32 num_turns(i64 last_delta, u32 delta, u32 period) {
  return i64(delta) > last_delta ? 0 : u32(last_delta - i64(delta)) / period + 1;
}

// Largest delta at which the timer still shows `value`; negative if it never does.
SCANLINE_HD SCANLINE_INLINE i64 last_delta_showing(const MachineState& s, i32 value) {
  return i64(i32(s.timer) - value) * (i64(1) << s.timer_shift) - 1;
}

// `cycles`: those at the first read. BNE waits for 0, BPL for expiry, BMI for a value below 128.
SCANLINE_HD inline u32 timer_turns(const MachineState& s, PollLoop loop, u32 cycles) {
  const u32 delta = timer_delta(s, cycles);
  switch (loop.branch) {
    case opcode::kBne:
      return num_turns(last_delta_showing(s, 1), delta, loop.period_cycles);
    case opcode::kBmi:
      return num_turns(last_delta_showing(s, 128), delta, loop.period_cycles);
    case opcode::kBpl:
      if (timer_count(s, cycles) > 127) return 0;
      return num_turns(last_delta_showing(s, 0), delta, loop.period_cycles);
    default:
      return 0;
  }
}

// BPL waits until the flag in bit 7 is set.
SCANLINE_HD inline u32 timer_flag_turns(const MachineState& s, PollLoop loop, u32 cycles) {
  if (loop.branch != opcode::kBpl) return 0;
  return num_turns(last_delta_showing(s, 0), timer_delta(s, cycles), loop.period_cycles);
}

// DEX or DEY with BNE ends at 0, with BPL at 255.
SCANLINE_HD inline u32 count_turns(u8 value, PollLoop loop) {
  if (loop.branch == opcode::kBne) return u8(value - 1);
  return value <= 128 ? value : 0;
}

}  // namespace scanline
