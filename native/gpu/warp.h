// warp.h -- what lanes that run together can ask each other.
//
// On CUDA a vote among the lanes of a warp that came here together; elsewhere a lane is alone with
// itself, and the same program gives the same results: votes only decide when work is done jointly.
#pragma once

#include "../core/types.h"

namespace scanline::gpu {

class Warp {
 public:
#if defined(__CUDA_ARCH__)
  SCANLINE_HD Warp() : lanes_(__activemask()) {}
  SCANLINE_HD SCANLINE_INLINE bool any(bool mine) const { return __any_sync(lanes_, mine); }

 private:
  u32 lanes_;
#else
  SCANLINE_HD SCANLINE_INLINE bool any(bool mine) const { return mine; }
#endif
};

// Bytes of a register word: `low` are bytes 0-3 and `high` bytes 4-7, `which` four numbers of
// bytes.
SCANLINE_HD SCANLINE_INLINE u32 pick_bytes(u32 low, u32 high, u32 which) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(low, high, which);
#else
  const u64 all = (static_cast<u64>(high) << 32) | low;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i)
    result |= (static_cast<u32>(all >> (8 * ((which >> (4 * i)) & 7))) & 0xFF) << (8 * i);
  return result;
#endif
}

// One of these bytes, by a number of three bits. Byte 5 of them must be 0.
SCANLINE_HD SCANLINE_INLINE u32 pick_byte(u32 low, u32 high, u32 which) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(low, high, which | 0x5550);
#else
  return static_cast<u32>(((static_cast<u64>(high) << 32) | low) >> (8 * which)) & 0xFF;
#endif
}

}  // namespace scanline::gpu
