// cartridge_dpc.h -- the DPC of Pitfall II: two banks, eight data fetchers, a shift register.
//
// A policy like those of cartridge.h. Program: bytes 0-8191, display data: bytes 8192-10239, read
// from its end. The shift register is clocked only by accesses that ALE sends to the cartridge:
// all writes, and reads of 0x000-0x07F and of the page with the hotspots.
#pragma once

#include "cartridge.h"

namespace scanline {

struct CartridgeDPC {
  static constexpr u32 kNumRandomWords = 0, kRegionBytes = 0x1000;
  static constexpr u32 kPlainBegin = 0x80, kPlainEnd = 0xFC0;
  static constexpr u32 kDisplay = 8192, kDisplaySize = 2048;

  SCANLINE_HD static u32 slice(const MachineState& machine, u32 window) {
    return machine.bank[0] * 4u + (window & 3);
  }

  SCANLINE_HD static void clock_shift_register(CartridgeState& own) {
    const u32 r = own.shift_register;
    const u32 parity = (r >> 7) ^ (r >> 5) ^ (r >> 4) ^ (r >> 3);
    own.shift_register = u8((r << 1) | (~parity & 1));
  }

  // A fetcher in music mode counts oscillator clocks instead of reads.
  SCANLINE_HD static bool in_music_mode(const CartridgeState& own, u32 fetcher) {
    return fetcher >= 5 && own.music_mode[fetcher - 5];
  }

  SCANLINE_HD static void advance_music(CartridgeState& own, u32 fetcher, i32 clocks) {
    const i32 top = own.top[fetcher], bottom = own.bottom[fetcher];
    i32 low = 0;
    if (top != 0) {
      low = (own.counter[fetcher] & 0xFF) - clocks % (top + 1);
      if (low < 0) low += top + 1;
    }
    if (low <= bottom) {
      own.flag[fetcher] = 0x00;
    } else if (low <= top) {
      own.flag[fetcher] = 0xFF;
    }
    own.counter[fetcher] = u16((own.counter[fetcher] & 0x700) | low);
  }

  // The oscillator runs at 15750 Hz, the processor at 1193191.66666667 Hz. Compile without
  // contraction: the fraction is carried over, so a fused multiply-add would drift.
  SCANLINE_HD static void update_music(CartridgeState& own, u32 cycles) {
    const i32 elapsed = i32(cycles - u32(own.music_cycle));
    own.music_cycle = i32(cycles);
    const double clocks = (15750.0 * elapsed) / 1193191.66666667 + own.music_clock_fraction;
    const i32 whole = i32(clocks);
    own.music_clock_fraction = clocks - double(whole);
    if (whole <= 0) return;
    for (u32 fetcher = 5; fetcher < 8; ++fetcher) {
      if (own.music_mode[fetcher - 5]) advance_music(own, fetcher, whole);
    }
  }

  SCANLINE_HD static u8 read_music(CartridgeState& own, u32 cycles) {
    SCANLINE_TABLE u8 kAmplitude[8] = {0x00, 0x04, 0x05, 0x09, 0x06, 0x0A, 0x0B, 0x0F};
    update_music(own, cycles);
    u32 voices = 0;
    for (u32 i = 0; i < 3; ++i) {
      if (own.music_mode[i] && own.flag[5 + i]) voices |= 1u << i;
    }
    return kAmplitude[voices];
  }

  SCANLINE_HD static u8 display_byte(CartridgeSlot slot, u32 fetcher) {
    return slot.rom[kDisplay + kDisplaySize - 1 - slot.own.counter[fetcher]];
  }

  SCANLINE_HD static u8 fetch(CartridgeSlot slot, u32 fetcher, u32 function) {
    switch (function) {
      case 0:
        return fetcher < 4 ? slot.own.shift_register : read_music(slot.own, slot.cycles);
      case 1:
        return display_byte(slot, fetcher);
      case 2:
        return display_byte(slot, fetcher) & slot.own.flag[fetcher];
      case 7:
        return slot.own.flag[fetcher];
      default:
        return 0;
    }
  }

  SCANLINE_HD static u8 read_fetcher(CartridgeSlot slot, u32 offset) {
    CartridgeState& own = slot.own;
    const u32 fetcher = offset & 7;
    const u8 low = u8(own.counter[fetcher]);
    if (low == own.top[fetcher]) {
      own.flag[fetcher] = 0xFF;
    } else if (low == own.bottom[fetcher]) {
      own.flag[fetcher] = 0x00;
    }
    const u8 value = fetch(slot, fetcher, offset >> 3);
    if (!in_music_mode(own, fetcher)) own.counter[fetcher] = (own.counter[fetcher] - 1) & 0x7FF;
    return value;
  }

  SCANLINE_HD static void write_fetcher(CartridgeState& own, u32 offset, u8 value) {
    const u32 fetcher = offset & 7;
    u16& counter = own.counter[fetcher];
    switch ((offset >> 3) & 7) {
      case 0:
        own.top[fetcher] = value;
        own.flag[fetcher] = 0x00;
        break;
      case 1:
        own.bottom[fetcher] = value;
        break;
      case 2:
        counter = u16((counter & 0x700) | (in_music_mode(own, fetcher) ? own.top[fetcher] : value));
        break;
      case 3:
        counter = u16(((value & 7) << 8) | (counter & 0xFF));
        if (fetcher >= 5) own.music_mode[fetcher - 5] = (value >> 4) & 1;
        break;
      case 6:
        own.shift_register = 1;
        break;
      default:
        break;
    }
  }

  SCANLINE_HD static SCANLINE_INLINE void touch(CartridgeSlot slot, u32 offset) {
    if (offset - 0xFF8 < 2) slot.machine.bank[0] = offset & 1;
  }

  SCANLINE_HD static SCANLINE_INLINE u8 read(CartridgeSlot slot, u16 address) {
    const u32 offset = address & 0xFFF;
    if (offset < 0x80 || offset >= 0xFC0) {
      clock_shift_register(slot.own);
      if (offset < 0x40) return read_fetcher(slot, offset);
      touch(slot, offset);
    }
    return slot.rom[slot.machine.bank[0] * 0x1000 + offset];
  }

  SCANLINE_HD static SCANLINE_INLINE void write(CartridgeSlot slot, u16 address, u8 value) {
    const u32 offset = address & 0xFFF;
    clock_shift_register(slot.own);
    if (offset - 0x40 < 0x40) {
      write_fetcher(slot.own, offset, value);
    } else {
      touch(slot, offset);
    }
  }

  SCANLINE_HD static bool has_bank(u32 place, u8 bank) { return place == 0 ? bank < 2 : bank == 0; }

  // The registers survive a reset; only the music clock starts again.
  SCANLINE_HD static void reset(MachineState& machine, CartridgeState& own) {
    machine.bank[0] = 1;
    own.music_cycle = 0;
    own.music_clock_fraction = 0.0;
  }
};

}  // namespace scanline
