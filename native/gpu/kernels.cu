// kernels.cu -- the entry points as CUDA, for one cartridge type (SCANLINE_CARTRIDGE).
//
// Compiled at run time by NVRTC with functions for the device by default, so that the tables of
// games need no annotation. The host gives the sizes of its structs as macros; a device that lays
// them out in another way is refused when this is compiled.
#include "kernels.h"

using namespace scanline;

static_assert(sizeof(gpu::Lane) == SCANLINE_LANE_BYTES, "a lane as the host lays it out");
static_assert(sizeof(gpu::Game) == SCANLINE_GAME_BYTES, "a game as the host lays it out");
static_assert(sizeof(gpu::Start) == SCANLINE_START_BYTES, "a start as the host lays it out");

#define SCANLINE_KERNEL(name) extern "C" __global__ void name
#define SCANLINE_BUFFER u8*
#define SCANLINE_LANES
#define SCANLINE_INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#include "kernels.inc"
