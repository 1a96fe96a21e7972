// loop_plain.h -- the reference loop: fetch a byte, switch, execute.
//
// Takes a console and a TIA; runs one frame attempt as ALE does: at most 25,000 instructions,
// stopped by the TIA write that ends the frame. Every faster loop is compared with this one and
// falls back to `execute_instruction` for what it does not handle.
#pragma once

#include "addressing.h"
#include "bus.h"
#include "opcodes.h"

namespace scanline {

constexpr u32 kMaxInstructionsPerFrame = 25000;

template <Mode mode, class Bus>
SCANLINE_HD SCANLINE_INLINE u8 read_operand(Registers& r, Bus& bus) {
  return bus.read(effective_address<mode, Access::Read>(r, bus));
}

#define SCANLINE_READ(code, operation, mode, num_cycles) \
  case code:                                             \
    bus.cycles += num_cycles;                            \
    operation(r, read_operand<Mode::mode>(r, bus));      \
    break;
#define SCANLINE_STORE(code, operation, mode, num_cycles)                     \
  case code: {                                                                \
    bus.cycles += num_cycles;                                                 \
    const u16 address = effective_address<Mode::mode, Access::Write>(r, bus); \
    bus.write(address, operation(r, address));                                \
    break;                                                                    \
  }
#define SCANLINE_MODIFY(code, operation, mode, num_cycles)                    \
  case code: {                                                                \
    bus.cycles += num_cycles;                                                 \
    const u16 address = effective_address<Mode::mode, Access::Write>(r, bus); \
    bus.write(address, operation(r, bus.read(address)));                      \
    break;                                                                    \
  }
#define SCANLINE_ACCUMULATOR(code, operation, num_cycles) \
  case code:                                              \
    bus.cycles += num_cycles;                             \
    r.a = operation(r, r.a);                              \
    break;
#define SCANLINE_IMPLIED(code, operation, num_cycles) \
  case code:                                          \
    bus.cycles += num_cycles;                         \
    operation(r);                                     \
    break;
#define SCANLINE_BRANCH(code, condition, num_cycles) \
  case code:                                         \
    bus.cycles += num_cycles;                        \
    branch(r, bus, condition(r));                    \
    break;
#define SCANLINE_CONTROL(code, operation, num_cycles) \
  case code:                                          \
    bus.cycles += num_cycles;                         \
    operation(r, bus);                                \
    break;

template <class Bus>
SCANLINE_HD SCANLINE_INLINE void execute_instruction(Registers& r, Bus& bus) {
  switch (bus.read(r.pc++)) {
    SCANLINE_OPCODES(SCANLINE_READ, SCANLINE_STORE, SCANLINE_MODIFY, SCANLINE_ACCUMULATOR,
                     SCANLINE_IMPLIED, SCANLINE_BRANCH, SCANLINE_CONTROL)
  }
}

#undef SCANLINE_READ
#undef SCANLINE_STORE
#undef SCANLINE_MODIFY
#undef SCANLINE_ACCUMULATOR
#undef SCANLINE_IMPLIED
#undef SCANLINE_BRANCH
#undef SCANLINE_CONTROL

enum class RunUntil : u8 { kFrameEnds, kInCartridge };

// Runs until the frame ends or the instructions are used up, or the program is in the cartridge
// after at least one instruction; how many it ran. Out of line: both loops share one copy.
template <class Bus>
SCANLINE_HD SCANLINE_NOINLINE u32 run_instructions(Registers& registers, Bus& bus,
                                                   u32 max_instructions, RunUntil until) {
  Registers r = registers;
  u32 num_run = 0;
  while (num_run != max_instructions && !bus.stopped) {
    execute_instruction(r, bus);
    ++num_run;
    if (until == RunUntil::kInCartridge && (r.pc & 0x1000)) break;
  }
  registers = r;
  return num_run;
}

struct PlainLoop {
  template <class Cartridge, class Tia>
  SCANLINE_HD static void run(MachineState& machine, CartridgeState& cartridge, const RomImage& rom,
                              Tia& tia) {
    if (machine.jammed) return;
    Registers r = load_registers(machine);
    Bus<Cartridge, Tia> bus{machine, cartridge, rom, tia, machine.cycles};
    run_instructions(r, bus, kMaxInstructionsPerFrame, RunUntil::kFrameEnds);
    machine.cycles = bus.cycles;
    store_registers(machine, r);
  }
};

}  // namespace scanline
