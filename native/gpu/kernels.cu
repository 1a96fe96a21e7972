// kernels.cu -- the entry points for CUDA, compiled at run time (NVRTC) for one cartridge type, which
// SCANLINE_CARTRIDGE names.
//
// The host gives the sizes of its structs as macros; a device that lays them out in another way is
// refused when this is compiled.
#include "kernels.h"

#ifndef SCANLINE_CARTRIDGE
#define SCANLINE_CARTRIDGE Cartridge4K
#endif

using namespace scanline;

#ifdef SCANLINE_LANE_BYTES
static_assert(sizeof(gpu::Lane) == SCANLINE_LANE_BYTES, "a lane as the host lays it out");
static_assert(sizeof(gpu::Game) == SCANLINE_GAME_BYTES, "a game as the host lays it out");
static_assert(sizeof(gpu::Start) == SCANLINE_START_BYTES, "a start as the host lays it out");
#endif

#define SCANLINE_KERNEL(name) extern "C" __global__ void name
#define SCANLINE_BUFFER u8*
#define SCANLINE_LANES
#define SCANLINE_INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#include "kernels.inc"
