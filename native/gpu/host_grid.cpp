// host_grid.cpp -- the entry points compiled for the host, for every cartridge type.
#include "host_grid.h"

#include "../core/cartridge_any.h"
#include "kernels.h"

namespace scanline {
namespace {

template <class Cartridge>
struct HostKernels {
#define SCANLINE_CARTRIDGE Cartridge
#define SCANLINE_KERNEL(name) static void name
#define SCANLINE_BUFFER u8*
#define SCANLINE_LANES u32 host_index,
#define SCANLINE_INDEX host_index
#include "kernels.inc"
};

using Buffers = const std::vector<u8*>&;
using Scalars = const std::vector<u32>&;

template <class Cartridge>
void play(u32 i, Buffers b, Scalars s) {
  HostKernels<Cartridge>::scanline_play(i, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8],
                                        s[0], s[1], s[2]);
}
template <class Cartridge>
void observe(u32 i, Buffers b, Scalars s) {
  HostKernels<Cartridge>::scanline_observe(i, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], s[0],
                                           s[1], s[2]);
}
template <class Cartridge>
void restart(u32 i, Buffers b, Scalars s) {
  HostKernels<Cartridge>::scanline_restart(i, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], s[0],
                                           s[1], s[2], s[3]);
}

struct HostKernel {
  void (*run)(u32, Buffers, Scalars) = nullptr;
  size_t num_buffers = 0, num_scalars = 0;
};

template <class Cartridge>
HostKernel named(const std::string& name) {
  if (name == "scanline_play") return {play<Cartridge>, 9, 3};
  if (name == "scanline_observe") return {observe<Cartridge>, 8, 3};
  if (name == "scanline_restart") return {restart<Cartridge>, 8, 4};
  return {};
}

}  // namespace

std::string gpu::run_on_host(const std::string& kernel, CartridgeType type, Buffers buffers,
                             Scalars scalars, const std::vector<u32>& order) {
  HostKernel found;
  visit_cartridge(type, [&](auto cartridge) { found = named<decltype(cartridge)>(kernel); });
  if (found.run == nullptr) return "there is no kernel " + kernel + " for this cartridge type";
  if (buffers.size() != found.num_buffers || scalars.size() != found.num_scalars)
    return kernel + " takes " + std::to_string(found.num_buffers) + " buffers and " +
           std::to_string(found.num_scalars) + " scalars";
  for (u32 index : order) found.run(index, buffers, scalars);
  return {};
}

}  // namespace scanline
