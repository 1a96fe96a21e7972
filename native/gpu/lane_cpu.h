// lane_cpu.h -- the 6507 of a lane while it runs, in words that stay in registers.
//
// Takes and gives core/cpu6507.h's registers; knows no instruction and no bus.
#pragma once

#include "../core/cpu6507.h"
#include "store_log.h"

namespace scanline::gpu {

// Registers and counters of a lane while it runs: one value, so that they stay in registers.
struct LaneCpu {
  u32 registers;  // A, X, Y, SP
  u32 pc;
  u32 nz, carry, overflow;  // as in Registers
  u32 modes;                // decimal, interrupt disable
  u32 cycles;
  u32 left;    // instructions until the limit; 0: the frame has ended for this lane
  u32 answer;  // what a waiting read gave, or kNoAnswer
  StoreFront stores;

  static constexpr u32 kNoAnswer = 0x100;

  SCANLINE_HD void take(const Registers& r) {
    registers = r.a | (u32(r.x) << 8) | (u32(r.y) << 16) | (u32(r.sp) << 24);
    pc = r.pc;
    nz = r.nz;
    carry = r.carry;
    overflow = r.overflow;
    modes = u32(r.decimal) | (u32(r.interrupt_disable) << 1);
  }

  SCANLINE_HD Registers given() const {
    Registers r{};
    r.pc = u16(pc);
    r.nz = u16(nz);
    r.a = u8(registers);
    r.x = u8(registers >> 8);
    r.y = u8(registers >> 16);
    r.sp = u8(registers >> 24);
    r.carry = u8(carry);
    r.overflow = u8(overflow);
    r.decimal = u8(modes & 1);
    r.interrupt_disable = u8(modes >> 1);
    return r;
  }
};

}  // namespace scanline::gpu
