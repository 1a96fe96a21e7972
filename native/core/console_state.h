// console_state.h -- what is kept of one console outside of it: its state, with or without
// pictures.
//
// Plain structs, host and device. What a console does with them is in console.h.
#pragma once

#include "cartridge_state.h"
#include "sinks.h"
#include "state.h"

namespace scanline {

// Everything that decides the future of a console, except for what its pictures still show.
struct ConsoleState {
  MachineState machine;
  CartridgeState cartridge;
};

// The same, pictures included; any byte is a colour.
struct ConsoleSnapshot {
  MachineState machine;
  CartridgeState cartridge;
  u8 pictures[2 * kPictureBytes];
};
static_assert(sizeof(ConsoleSnapshot) ==
                  sizeof(MachineState) + sizeof(CartridgeState) + 2 * kPictureBytes,
              "no padding");

}  // namespace scanline
