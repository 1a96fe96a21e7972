// cartridge.h -- what the cartridge slot answers, one policy per bank-switching scheme.
//
// A policy is a stateless struct used as a template parameter:
//   read(slot, address)          with its side effects; address is the full 16-bit one
//   write(slot, address, value)
//   reset(machine, own)          power-up banks
//   has_bank(place, bank)        whether MachineState::bank[place] can be that
//   kNumRandomWords              how many bytes of `ram` a reset fills with random words
// For pre-decoded programs, which see the 4 KB as windows of 1 KB (window_of):
//   slice(machine, window)       which KB of the image a window shows
//   kPlainBegin, kPlainEnd       offsets where a read gives that byte and does nothing else
//   kRegionBytes                 parts of the image that stay contiguous in the slot
// Knows nothing of the rest of the bus. The DPC is in cartridge_dpc.h.
#pragma once

#include "cartridge_state.h"
#include "rom.h"
#include "state.h"

namespace scanline {

// What a policy sees. `cycles` counts as in the bus.
struct CartridgeSlot {
  const u8* rom;
  MachineState& machine;
  CartridgeState& own;
  u32 cycles;
  CartridgeType type;  // for AnyCartridge; the others know theirs
};

// Windows 0-3 for addresses with A13 clear, 4-7 with A13 set: only FE tells them apart.
SCANLINE_HD SCANLINE_INLINE u32 window_of(u16 address) {
  return ((address >> 10) & 3) | ((address >> 11) & 4);
}

struct Cartridge2K {
  static constexpr u32 kNumRandomWords = 0, kRegionBytes = 0x800;
  static constexpr u32 kPlainBegin = 0, kPlainEnd = 0x1000;
  SCANLINE_HD static u32 slice(const MachineState&, u32 window) { return window & 1; }
  SCANLINE_HD static SCANLINE_INLINE u8 read(CartridgeSlot slot, u16 address) {
    return slot.rom[address & 0x7FF];
  }
  SCANLINE_HD static SCANLINE_INLINE void write(CartridgeSlot, u16, u8) {}
  SCANLINE_HD static bool has_bank(u32, u8 bank) { return bank == 0; }
  SCANLINE_HD static void reset(MachineState&, CartridgeState&) {}
};

struct Cartridge4K {
  static constexpr u32 kNumRandomWords = 0, kRegionBytes = 0x1000;
  static constexpr u32 kPlainBegin = 0, kPlainEnd = 0x1000;
  SCANLINE_HD static u32 slice(const MachineState&, u32 window) { return window & 3; }
  SCANLINE_HD static SCANLINE_INLINE u8 read(CartridgeSlot slot, u16 address) {
    return slot.rom[address & 0xFFF];
  }
  SCANLINE_HD static SCANLINE_INLINE void write(CartridgeSlot, u16, u8) {}
  SCANLINE_HD static bool has_bank(u32, u8 bank) { return bank == 0; }
  SCANLINE_HD static void reset(MachineState&, CartridgeState&) {}
};

// F8 and F6: two or four banks of 4 KB, chosen by touching the last addresses before the vectors.
// With SuperChip: 128 bytes of RAM, written at 0x000-0x07F and read at 0x080-0x0FF; reading the
// write port gives the ROM byte beneath.
template <u32 num_banks, u32 first_hotspot, u8 power_up_bank, bool super_chip>
struct CartridgeBanked {
  static constexpr u32 kNumRandomWords = super_chip ? 128 : 0, kRegionBytes = 0x1000;
  static constexpr u32 kPlainBegin = super_chip ? 0x100 : 0, kPlainEnd = first_hotspot;

  SCANLINE_HD static u32 slice(const MachineState& machine, u32 window) {
    return machine.bank[0] * 4u + (window & 3);
  }
  SCANLINE_HD static SCANLINE_INLINE void touch(CartridgeSlot slot, u32 offset) {
    if (offset - first_hotspot < num_banks) slot.machine.bank[0] = u8(offset - first_hotspot);
  }
  SCANLINE_HD static SCANLINE_INLINE u8 read(CartridgeSlot slot, u16 address) {
    const u32 offset = address & 0xFFF;
    if (super_chip && offset - 0x80 < 0x80) return slot.own.ram[offset & 0x7F];
    touch(slot, offset);
    return slot.rom[slot.machine.bank[0] * 0x1000 + offset];
  }
  SCANLINE_HD static SCANLINE_INLINE void write(CartridgeSlot slot, u16 address, u8 value) {
    const u32 offset = address & 0xFFF;
    if (super_chip && offset < 0x80) slot.own.ram[offset] = value;
    touch(slot, offset);
  }
  SCANLINE_HD static bool has_bank(u32 place, u8 bank) {
    return place == 0 ? bank < num_banks : bank == 0;
  }
  SCANLINE_HD static void reset(MachineState& machine, CartridgeState&) {
    machine.bank[0] = power_up_bank;
  }
};

using CartridgeF8 = CartridgeBanked<2, 0xFF8, 1, false>;
using CartridgeF8SC = CartridgeBanked<2, 0xFF8, 1, true>;
using CartridgeF6 = CartridgeBanked<4, 0xFF6, 0, false>;
using CartridgeF6SC = CartridgeBanked<4, 0xFF6, 0, true>;

// E0: four slices of 1 KB; the first three are chosen among eight by touching 0xFE0-0xFF7, the
// last is fixed.
struct CartridgeE0 {
  static constexpr u32 kNumRandomWords = 0, kRegionBytes = 0x400;
  static constexpr u32 kPlainBegin = 0, kPlainEnd = 0xFE0;

  SCANLINE_HD static u32 slice(const MachineState& machine, u32 window) {
    return machine.bank[window & 3];
  }
  SCANLINE_HD static SCANLINE_INLINE void touch(CartridgeSlot slot, u32 offset) {
    if (offset - 0xFE0 < 24) slot.machine.bank[(offset >> 3) & 3] = offset & 7;
  }
  SCANLINE_HD static SCANLINE_INLINE u8 read(CartridgeSlot slot, u16 address) {
    const u32 offset = address & 0xFFF;
    touch(slot, offset);
    return slot.rom[slot.machine.bank[offset >> 10] * 0x400 + (offset & 0x3FF)];
  }
  SCANLINE_HD static SCANLINE_INLINE void write(CartridgeSlot slot, u16 address, u8) {
    touch(slot, address & 0xFFF);
  }
  SCANLINE_HD static bool has_bank(u32 place, u8 bank) { return place == 3 ? bank == 7 : bank < 8; }
  SCANLINE_HD static void reset(MachineState& machine, CartridgeState&) {
    for (u8 i = 0; i < 4; ++i) machine.bank[i] = u8(4 + i);
  }
};

// FE: the bank is A13 of the address the program uses, which the 6507 has no pin for.
struct CartridgeFE {
  static constexpr u32 kNumRandomWords = 0, kRegionBytes = 0x1000;
  static constexpr u32 kPlainBegin = 0, kPlainEnd = 0x1000;
  SCANLINE_HD static u32 slice(const MachineState&, u32 window) {
    return (window & 3) + (window & 4 ? 0 : 4);
  }
  SCANLINE_HD static SCANLINE_INLINE u8 read(CartridgeSlot slot, u16 address) {
    return slot.rom[(address & 0xFFF) + ((address & 0x2000) ? 0 : 0x1000)];
  }
  SCANLINE_HD static SCANLINE_INLINE void write(CartridgeSlot, u16, u8) {}
  SCANLINE_HD static bool has_bank(u32, u8 bank) { return bank == 0; }
  SCANLINE_HD static void reset(MachineState&, CartridgeState&) {}
};

}  // namespace scanline
