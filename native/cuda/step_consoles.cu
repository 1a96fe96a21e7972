// step_consoles.cu -- kernels that run frames, one console per thread.
//
// Compiled at run time (NVRTC) for one cartridge type, which SCANLINE_CARTRIDGE names. Takes arrays
// with one state per console and leaves them as the CPU's plain loop would, byte for byte; inputs
// are fields of the states. Knows no game, no reset and no observation. A thread works on copies of
// its states, so that the compiler may keep fields in registers across the instructions of a frame.
#include "../core/cartridge_dpc.h"
#include "../core/loop_plain.h"
#include "../core/machine.h"
#include "../core/tia_masks.h"

#ifndef SCANLINE_CARTRIDGE
#define SCANLINE_CARTRIDGE Cartridge4K
#endif

namespace scanline {

struct Consoles {
  MachineState* machines;
  CartridgeState* cartridges;
  u8* pictures;  // two per console, or null for frames nobody sees
  RomImage rom;  // its bytes are in device memory
  u32 num_consoles;
};

template <class Sink>
__device__ void step_frames(const Consoles& consoles, u32 console, u32 num_frames, Sink sink) {
  MachineState machine = consoles.machines[console];
  CartridgeState cartridge = consoles.cartridges[console];
  MaskTia<Sink> tia(machine, consoles.rom.properties, sink);
  for (u32 frame = 0; frame < num_frames; ++frame)
    run_frame<PlainLoop, SCANLINE_CARTRIDGE>(machine, cartridge, consoles.rom, tia);
  consoles.machines[console] = machine;
  consoles.cartridges[console] = cartridge;
}

}  // namespace scanline

extern "C" __global__ void step_unseen(scanline::Consoles consoles, scanline::u32 num_frames) {
  const scanline::u32 console = blockIdx.x * blockDim.x + threadIdx.x;
  if (console >= consoles.num_consoles) return;
  scanline::step_frames(consoles, console, num_frames, scanline::NoPixels());
}

extern "C" __global__ void step_drawn(scanline::Consoles consoles, scanline::u32 num_frames) {
  const scanline::u32 console = blockIdx.x * blockDim.x + threadIdx.x;
  if (console >= consoles.num_consoles) return;
  scanline::u8* pictures = consoles.pictures + scanline::u64(console) * 2 * scanline::kPictureBytes;
  scanline::step_frames(consoles, console, num_frames, scanline::Pixels<>(pictures));
}
