// kernels.cl -- the entry points as C++ for OpenCL, for one cartridge type (SCANLINE_CARTRIDGE).
//
// The host gives the sizes of its structs as macros; a device that lays them out in another way is
// refused when this is compiled.
#pragma OPENCL FP_CONTRACT OFF
#include "kernels.h"

using namespace scanline;

static_assert(sizeof(gpu::Lane) == SCANLINE_LANE_BYTES, "a lane as the host lays it out");
static_assert(sizeof(gpu::Game) == SCANLINE_GAME_BYTES, "a game as the host lays it out");
static_assert(sizeof(gpu::Start) == SCANLINE_START_BYTES, "a start as the host lays it out");

#define SCANLINE_KERNEL(name) kernel void name
#define SCANLINE_BUFFER global u8*
#define SCANLINE_LANES
#define SCANLINE_INDEX u32(get_global_id(0))
#include "kernels.inc"
