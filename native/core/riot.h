// riot.h -- the 6532: 128 bytes of RAM, two ports, one interval timer.
//
// Reads the controller lines and switches kept in the state; changes the timer and the data
// direction register only. Cycles are those at the end of the instruction, as ALE counts them.
// The RAM itself is addressed by the bus.
#pragma once

#include "state.h"

namespace scanline {

// Cycles since the timer was set, one less than the bus sees.
SCANLINE_HD SCANLINE_INLINE u32 timer_delta(const MachineState& s, u32 cycles) {
  return cycles - 1 - u32(s.timer_set_cycle);
}

// The counter while it has not expired; negative afterwards, for half an hour: sums wrap around.
SCANLINE_HD SCANLINE_INLINE i32 timer_count(const MachineState& s, u32 cycles) {
  return i32(s.timer - (timer_delta(s, cycles) >> s.timer_shift) - 1);
}

// After expiry the counter falls by one a cycle until a read at -2 or below; from that read on
// the prescaler is back in force, with the cycles since the expiry as an offset.
SCANLINE_HD inline u8 read_expired_timer(MachineState& s, u32 cycles) {
  const u32 delta = timer_delta(s, cycles);
  const i32 nominal = i32(s.timer) << s.timer_shift;
  const i32 count = i32(u32(nominal) - delta - 1);
  if (count <= -2 && !s.timer_read_after_interrupt) {
    s.timer_read_after_interrupt = 1;
    s.timer_interrupt_read_cycle = i32(cycles);
  }
  if (!s.timer_read_after_interrupt) return u8(count);
  const u32 offset = u32(s.timer_interrupt_read_cycle) - (u32(s.timer_set_cycle) + u32(nominal));
  return u8(u32(s.timer) - (delta >> s.timer_shift) - offset);
}

SCANLINE_HD SCANLINE_INLINE u8 read_timer(MachineState& s, u32 cycles) {
  const i32 count = timer_count(s, cycles);
  return count >= 0 ? u8(count) : read_expired_timer(s, cycles);
}

SCANLINE_HD SCANLINE_INLINE u8 read_timer_flag(const MachineState& s, u32 cycles) {
  return timer_count(s, cycles) >= 0 || s.timer_read_after_interrupt ? 0x00 : 0x80;
}

SCANLINE_HD inline u8 read_riot(MachineState& s, u16 address, u32 cycles) {
  switch (address & 7) {
    case 0:
      return s.swcha;
    case 1:
      return s.ddra;
    case 2:
      return s.swchb;
    case 3:
      return 0;  // SWBCNT: ALE keeps port B as inputs
    case 4:
    case 6:
      return read_timer(s, cycles);
    default:
      return read_timer_flag(s, cycles);
  }
}

// log2 of the four intervals; the TIM1T's is 0.
SCANLINE_HD inline bool is_timer_shift(u8 shift) {
  return shift == 0 || shift == 3 || shift == 6 || shift == 10;
}

SCANLINE_HD inline void set_timer(MachineState& s, u8 interval, u8 value, u32 cycles) {
  SCANLINE_TABLE u8 kShift[4] = {0, 3, 6, 10};
  s.timer = value;
  s.timer_shift = kShift[interval & 3];
  s.timer_set_cycle = i32(cycles);
  s.timer_read_after_interrupt = 0;
}

SCANLINE_HD inline void write_riot(MachineState& s, u16 address, u8 value, u32 cycles) {
  if ((address & 7) == 1) s.ddra = value;
  if ((address & 0x14) == 0x14) set_timer(s, u8(address), value, cycles);
}

SCANLINE_HD inline void reset_riot(MachineState& s, u32 random) {
  s.timer = u8(25 + random % 75);
  s.timer_shift = 6;
  s.timer_set_cycle = 0;
  s.timer_interrupt_read_cycle = 0;
  s.timer_read_after_interrupt = 0;
  s.ddra = 0;
}

// The cycle counter is about to restart at zero.
SCANLINE_HD SCANLINE_INLINE void rebase_riot(MachineState& s) {
  s.timer_set_cycle = i32(u32(s.timer_set_cycle) - s.cycles);
  s.timer_interrupt_read_cycle = i32(u32(s.timer_interrupt_read_cycle) - s.cycles);
}

}  // namespace scanline
