// traced_loop.h -- the plain loop, counting what a program makes the console do.
//
// A loop like PlainLoop, with the same effects; notes every opcode executed, every TIA register
// read or written, and every KB of the cartridge seen through each window of the slot. Writes to
// one global record, because a loop has no members; for one thread.
#pragma once

#include <bitset>

#include "../core/cartridge_any.h"
#include "../core/loop_plain.h"

namespace scanline {

struct Coverage {
  std::bitset<256> opcodes;
  std::bitset<16> tia_reads;
  std::bitset<64> tia_writes;
  std::bitset<4 * 16> windows;  // window of 1 KB x KB of the image

  void operator|=(const Coverage& other) {
    opcodes |= other.opcodes;
    tia_reads |= other.tia_reads;
    tia_writes |= other.tia_writes;
    windows |= other.windows;
  }
};

inline Coverage traced;

template <class Cartridge, class Tia>
struct TracingBus : Bus<Cartridge, Tia> {
  using Plain = Bus<Cartridge, Tia>;
  bool at_opcode = true;

  u8 read(u16 address) {
    if (address & 0x1000) note_window(address);
    if (!(address & 0x1080)) traced.tia_reads.set(address & 0x0F);
    const u8 value = Plain::read(address);
    if (at_opcode) traced.opcodes.set(value);
    at_opcode = false;
    return value;
  }

  void write(u16 address, u8 value) {
    if (!(address & 0x1080)) traced.tia_writes.set(address & 0x3F);
    Plain::write(address, value);
  }

  void note_window(u16 address) {
    visit_cartridge(this->rom.type, [this, address](auto policy) {
      const u32 kilobyte = policy.slice(this->machine, window_of(address));
      traced.windows.set(((address >> 10) & 3) * 16 + kilobyte);
    });
  }
};

struct TracingLoop {
  template <class Cartridge, class Tia>
  static void run(MachineState& machine, CartridgeState& cartridge, const RomImage& rom, Tia& tia) {
    if (machine.jammed) return;
    Registers r = load_registers(machine);
    TracingBus<Cartridge, Tia> bus{{machine, cartridge, rom, tia, machine.cycles}};
    for (u32 i = 0; i < kMaxInstructionsPerFrame && !bus.stopped; ++i) {
      bus.at_opcode = true;
      execute_instruction(r, bus);
    }
    machine.cycles = bus.cycles;
    store_registers(machine, r);
  }
};

}  // namespace scanline
