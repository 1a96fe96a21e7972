// fast_frame.h -- one frame of the fast console as a function of plain memory.
//
// Included by one file per kind of processor. The file for AVX2 renames the namespace first, so
// that its templates do not share names (and the linker no code) with those of the other; hence the
// untyped pointers: the structs have one layout but two names. Includes the core only, which uses
// no standard header, so nothing else can be shared either.
#pragma once

#include "../core/console_fast.h"

namespace scanline {

// What a frame reads and changes: the members of a console.
struct FrameMemory {
  void* machine;           // MachineState
  void* cartridge;         // CartridgeState
  const void* rom;         // RomImage
  const void* properties;  // Properties
  unsigned char* pictures;
};

template <class Cartridge, class Sink>
inline void run_fast_frame(const FrameMemory& memory, Sink sink) {
  MachineState& machine = *static_cast<MachineState*>(memory.machine);
  CartridgeState& cartridge = *static_cast<CartridgeState*>(memory.cartridge);
  MaskTia<Sink> tia(machine, *static_cast<const Properties*>(memory.properties), sink);
  run_frame<TranslatedLoop, Cartridge>(machine, cartridge,
                                       *static_cast<const RomImage*>(memory.rom), tia);
}

inline void run_fast_frame(const FrameMemory& memory, bool draw) {
  visit_cartridge(static_cast<const RomImage*>(memory.rom)->type, [&](auto cartridge) {
    using Cartridge = decltype(cartridge);
    if (draw) {
      run_fast_frame<Cartridge>(memory, Pixels<>(memory.pictures));
    } else {
      run_fast_frame<Cartridge>(memory, NoPixels());
    }
  });
}

}  // namespace scanline
