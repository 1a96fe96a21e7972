// state_check.h -- whether a console's state, read from bytes of unknown origin, can be run.
//
// Takes a state, the ROM's properties and its cartridge policy; names the first field that is out
// of bounds. Every state that emulation reaches passes, and no state that passes leads outside of
// an array, overflows a sum or runs for long. The bounds themselves are in the field lists.
#pragma once

#include "controllers.h"
#include "loop_plain.h"
#include "machine.h"

namespace scanline {

// Cycles of one instruction: eight, and a line that WSYNC waits for.
constexpr u32 kMaxInstructionCycles = 8 + kLineClocks / 3;
// A frame that goes on behind kMaxFrameCycles ends with the attempt that led there.
constexpr u32 kMaxCycles = kMaxFrameCycles + kMaxInstructionsPerFrame * kMaxInstructionCycles;
static_assert(kMaxCycles + kMaxInstructionsPerFrame * kMaxInstructionCycles < 0x7FFFFFFFu / 3,
              "colour clocks fit 31 bits");

template <class Cartridge>
SCANLINE_HD inline WrongField wrong_field(const MachineState& state, const Properties& properties) {
  SCANLINE_CHECK(SCANLINE_STATE_FIELDS);
}

}  // namespace scanline
