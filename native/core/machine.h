// machine.h -- what a reset and one frame do to a console's states, on host and device alike.
//
// Wires a cartridge policy, a TIA and a loop together for one frame; a console (console.h) or a
// kernel (cuda/) owns the states and says how often. Knows nothing of power-on or format detection.
#pragma once

#include "cartridge.h"
#include "riot.h"
#include "system_random.h"
#include "tia_frame.h"

namespace scanline {

// Without a write to the TIA a frame goes on for ever, and after 2^31 colour clocks, ten minutes,
// ALE's arithmetic overflows. Shortly before that we begin a new frame, so ours never does.
constexpr u32 kMaxFrameCycles = 0x28000000;

// One frame attempt. The TIA is the caller's, so that its sink may differ from frame to frame.
template <class Loop, class Cartridge, class Tia>
SCANLINE_HD inline void run_frame(MachineState& machine, CartridgeState& cartridge,
                                  const RomImage& rom, Tia& tia) {
  if (machine.cycles > kMaxFrameCycles) machine.partial = 0;
  if (!machine.partial) {
    rebase_riot(machine);
    cartridge.music_cycle = i32(u32(cartridge.music_cycle) - machine.cycles);
    tia.start_frame();
  }
  machine.partial = 1;
  Loop::template run<Cartridge>(machine, cartridge, rom, tia);
  tia.finish();
}

SCANLINE_HD inline void reset_cpu(MachineState& machine) {
  machine.a = machine.x = machine.y = 0;
  machine.sp = 0xFF;
  machine.p = 0x30;
  machine.jammed = 0;
}

// RAM, the partial flag and the buffers' order survive. Order of the chips: RIOT, TIA, cartridge.
template <class Cartridge>
SCANLINE_HD inline void reset_machine(MachineState& machine, CartridgeState& cartridge,
                                      const RomImage& rom) {
  MersenneTwister random = system_random(machine.system_random_draws);
  machine.cycles = 0;
  reset_riot(machine, random.next());
  reset_tia(machine);
  for (u32 i = 0; i < Cartridge::kNumRandomWords; ++i) cartridge.ram[i] = u8(random.next());
  machine.system_random_draws += 1 + Cartridge::kNumRandomWords;
  Cartridge::reset(machine, cartridge);
  reset_cpu(machine);
  const CartridgeSlot slot{rom.bytes, machine, cartridge, machine.cycles, rom.type};
  machine.pc = Cartridge::read(slot, 0xFFFC);
  machine.pc = u16(machine.pc | (Cartridge::read(slot, 0xFFFD) << 8));
}

}  // namespace scanline
