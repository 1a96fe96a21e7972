// host_grid.h -- the kernels of kernels.inc on the host: blocks and lanes as a loop.
//
// For tests: the same text as on a device, without one, so that sanitizers and debuggers see it.
// Lanes run in the order that the caller gives; results must not depend on it.
#pragma once

#include <string>
#include <vector>

#include "../core/rom.h"

namespace scanline::gpu {

// Runs one kernel for every index of `order`. Buffers and scalars are those of the entry point, in
// its order. Empty, or the reason why it cannot be launched.
std::string run_on_host(const std::string& kernel, CartridgeType type,
                        const std::vector<unsigned char*>& buffers, const std::vector<u32>& scalars,
                        const std::vector<u32>& order);

}  // namespace scanline::gpu
