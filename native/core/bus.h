// bus.h -- the 13 address lines: which chip answers, one access at a time.
//
// The byte-wise path: used by the plain loop, by the device, and by faster loops for whatever they
// do not handle themselves. Lives for one call of a loop; what must survive is written back by it.
// A12: cartridge. Else A7 = 0: TIA. Else A9 = 0: RAM, A9 = 1: the RIOT's registers.
#pragma once

#include "cartridge.h"
#include "riot.h"

namespace scanline {

template <class Cartridge, class Tia>
struct Bus {
  MachineState& machine;
  CartridgeState& cartridge;
  const RomImage& rom;
  Tia& tia;
  u32 cycles;
  u8 data = 0;             // last value on the data lines: the noise in unconnected TIA bits
  bool after_read = true;  // the previous access was a read: only then WSYNC halts
  bool stopped = false;    // the frame ended, or the processor jammed

  SCANLINE_HD SCANLINE_INLINE CartridgeSlot slot() {
    return {rom.bytes, machine, cartridge, cycles, rom.type};
  }

  SCANLINE_HD SCANLINE_INLINE u8 read_chip(u16 address) {
    if (address & 0x1000) return Cartridge::read(slot(), address);
    if (!(address & 0x80)) return tia.read(address, data, cycles);
    if (!(address & 0x200)) return machine.ram[address & 0x7F];
    return read_riot(machine, address, cycles);
  }

  SCANLINE_HD SCANLINE_INLINE void write_chip(u16 address, u8 value) {
    if (address & 0x1000) return Cartridge::write(slot(), address, value);
    if (!(address & 0x80)) {
      if (tia.write(address, value, cycles, after_read)) stopped = true;
    } else if (!(address & 0x200)) {
      machine.ram[address & 0x7F] = value;
    } else {
      write_riot(machine, address, value, cycles);
    }
  }

  // Out of line: inlined into every opcode they would cost minutes of compilation.
  SCANLINE_HD SCANLINE_NOINLINE u8 read(u16 address) {
    data = read_chip(address);
    after_read = true;
    return data;
  }

  SCANLINE_HD SCANLINE_NOINLINE void write(u16 address, u8 value) {
    write_chip(address, value);
    data = value;
    after_read = false;
  }

  SCANLINE_HD void jam() {
    machine.jammed = 1;
    stopped = true;
  }
};

}  // namespace scanline
