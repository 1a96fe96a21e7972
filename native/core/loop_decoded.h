// loop_decoded.h -- the fast loop of the host: decoded instructions, one jump from each to the
// next.
//
// Takes and leaves the same state as loop_plain.h, which also executes whatever the ROM alone does
// not decide: bank switches, code in RAM, the stack over TIA registers, and the last instructions
// before the limit of a frame. Needs computed goto (g++, clang) and RomImage::ops; without either
// it is the plain loop. `idle_skip` jumps over the turns of waiting loops (idle_skip.h).
#pragma once

#include "decode.h"
#include "idle_skip.h"
#include "loop_plain.h"

namespace scanline {

// Cycles in the lower half, instructions in the upper one: one addition counts both.
constexpr u64 kOneInstruction = u64(1) << 32;
// Tested at jumps only; between two of them lie fewer instructions than a bank has bytes.
constexpr u32 kInstructionMargin = 4096;
constexpr u64 kInstructionLimit =
    u64(kMaxInstructionsPerFrame - kInstructionMargin) * kOneInstruction;
// Above it the lower half might overflow within a frame.
constexpr u32 kMaxStartCycles = 0xF0000000;

// What the cartridge slot shows now, KB by KB: where each begins in the image.
struct ProgramView {
  i32 place[16];  // by A13 to A10; those with A12 clear are not the cartridge
  u32 plain_begin, plain_size;
  u32 banks;  // MachineState::bank for which this is right

  SCANLINE_INLINE static u32 window(u16 address) { return (address >> 10) & 15; }
  SCANLINE_INLINE bool is_plain(u16 address) const {
    return is_cartridge(address) && (address & 0xFFFu) - plain_begin < plain_size;
  }
  SCANLINE_INLINE i32 image_place(u16 address) const {
    return place[window(address)] + (address & 0x3FF);
  }
};

SCANLINE_INLINE u32 packed_banks(const MachineState& machine) {
  return u32(machine.bank[0] | (machine.bank[1] << 8) | (machine.bank[2] << 16)) |
         u32(machine.bank[3]) << 24;
}

template <class Cartridge>
inline void renew_view(ProgramView& view, const MachineState& machine) {
  for (u32 window = 0; window < 16; ++window) {
    view.place[window] = i32(Cartridge::slice(machine, window_of(u16(window << 10))) * 0x400);
  }
  view.plain_begin = Cartridge::kPlainBegin;
  view.plain_size = Cartridge::kPlainEnd - Cartridge::kPlainBegin;
  view.banks = packed_banks(machine);
}

// One run of the loop, without the registers: those are locals of `run_decoded`.
template <class Tia>
struct DecodedRun {
  MachineState& machine;
  CartridgeState& cartridge;
  const RomImage& rom;
  Tia& tia;
  ProgramView view;
  void (*renew_view)(ProgramView&, const MachineState&);
};

// What an access tells besides its value or the cycles.
constexpr u64 kEnded = u64(1) << 32;          // the frame ended
constexpr u64 kBanksSwitched = u64(1) << 33;  // the cartridge shows something else now

template <class Tia>
SCANLINE_NOINLINE u8 read_tia(Tia& tia, u16 address, u8 data, u32 cycles) {
  return tia.read(address, data, cycles);
}

// Brings the view up to date if a bank was switched.
template <class Tia>
SCANLINE_INLINE u64 renew_if_switched(DecodedRun<Tia>& run) {
  if (packed_banks(run.machine) == run.view.banks) return 0;
  run.renew_view(run.view, run.machine);
  return kBanksSwitched;
}

template <class Tia>
SCANLINE_INLINE CartridgeSlot slot_of(DecodedRun<Tia>& run, u32 cycles) {
  return {run.rom.bytes, run.machine, run.cartridge, cycles, run.rom.type};
}

// The value, and kBanksSwitched.
template <class Tia>
SCANLINE_NOINLINE u64 read_chip(DecodedRun<Tia>& run, u16 address, u8 data, u32 cycles) {
  if (is_cartridge(address)) {
    const u8 value = AnyCartridge::read(slot_of(run, cycles), address);
    return value | renew_if_switched(run);
  }
  if (!(address & 0x80)) return run.tia.read(address, data, cycles);
  if (!(address & 0x200)) return run.machine.ram[address & 0x7F];
  return read_riot(run.machine, address, cycles);
}

// The cycles, kEnded and kBanksSwitched.
template <class Tia>
SCANLINE_NOINLINE u64 write_chip(DecodedRun<Tia>& run, u16 address, u8 value, u32 cycles) {
  if (is_cartridge(address)) {
    AnyCartridge::write(slot_of(run, cycles), address, value);
    return cycles | renew_if_switched(run);
  }
  if (!(address & 0x80)) {
    const bool ended = run.tia.write(address, value, cycles, true);
    return cycles | (ended ? kEnded : 0);
  }
  if (!(address & 0x200)) {
    run.machine.ram[address & 0x7F] = value;
  } else {
    write_riot(run.machine, address, value, cycles);
  }
  return cycles;
}

// Registers and counters of a run, when they leave the loop's locals.
struct RunPoint {
  Registers registers;
  u64 count;  // instructions and cycles
  bool stopped;
};

// Executes byte by byte, and shows the cartridge anew if a bank was switched.
template <class Tia>
SCANLINE_NOINLINE void run_bytewise(DecodedRun<Tia>& run, RunPoint& point, RunUntil until) {
  Bus<AnyCartridge, Tia> bus{run.machine, run.cartridge, run.rom, run.tia, u32(point.count)};
  const u32 left = kMaxInstructionsPerFrame - u32(point.count >> 32);
  const u32 num_run = run_instructions(point.registers, bus, left, until);
  const u64 num_before = point.count >> 32;
  point.count = (num_before + num_run) * kOneInstruction + bus.cycles;
  point.stopped = bus.stopped || num_run == left;
  renew_if_switched(run);
}

}  // namespace scanline

#include "loop_decoded_handlers.inc"

namespace scanline {

// Not for the device: function pointers and label addresses.
template <bool idle_skip>
struct BasicDecodedLoop {
  template <class Cartridge, class Tia>
  static void run(MachineState& machine, CartridgeState& cartridge, const RomImage& rom, Tia& tia) {
    if (machine.jammed) return;
    DecodedRun<Tia> decoded{machine, cartridge, rom, tia, {}, &renew_view<Cartridge>};
    RunPoint point{load_registers(machine), machine.cycles, false};
    if (rom.ops == nullptr || machine.cycles > kMaxStartCycles) {
      run_bytewise(decoded, point, RunUntil::kFrameEnds);
    } else {
      renew_view<Cartridge>(decoded.view, machine);
      run_decoded<idle_skip>(decoded, point);
    }
    machine.cycles = u32(point.count);
    store_registers(machine, point.registers);
  }
};

using DecodedLoop = BasicDecodedLoop<false>;
using SkippingLoop = BasicDecodedLoop<true>;

}  // namespace scanline
