// kernels.h -- what the entry points of kernels.inc are made of, wherever they run.
#pragma once

#include "observe.h"
#include "play.h"

namespace scanline::gpu {

// An entry of a buffer that was given as bytes.
template <class T>
SCANLINE_HD inline T& at(u8* buffer, u32 index) {
  return reinterpret_cast<T*>(buffer)[index];
}

}  // namespace scanline::gpu
