// images.h -- images as an argument from Python: address, shape and strides.
#pragma once

#include <array>

#include "../layers/frames.h"
#include "spans.h"

namespace scanline {

// Images [num, planes, height, width] of bytes or floats; strides are in elements, and a plane is
// contiguous.
struct Images {
  using Four = std::array<i64, 4>;

  Images(uintptr_t address, bool bytes, Four shape, Four strides, float scale, float offset)
      : frames{
            reinterpret_cast<const void*>(address), bytes, strides[0], strides[1], scale, offset},
        shape(shape) {
    if (strides[3] != 1 || strides[2] != shape[3])
      throw_value_error("a plane of an image must be contiguous.");
  }

  Frames frames;
  Four shape;
};

}  // namespace scanline
