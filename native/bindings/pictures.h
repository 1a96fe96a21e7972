// pictures.h -- pictures as Python hands them over: where they lie, and their sizes.
#pragma once

#include <array>

#include "../layers/frames.h"
#include "spans.h"

namespace scanline {

// Pictures [num, planes, height, width] of bytes or floats, wherever each plane lies.
struct Pictures {
  using Four = std::array<i64, 4>;

  Pictures(uintptr_t address, bool bytes, Four shape, Four strides, float scale, float offset)
      : frames{
            reinterpret_cast<const void*>(address), bytes, strides[0], strides[1], scale, offset},
        shape(shape) {
    if (strides[3] != 1 || strides[2] != shape[3])
      refuse_layers("a plane of a picture must be contiguous.");
  }

  Frames frames;
  Four shape;
};

}  // namespace scanline
