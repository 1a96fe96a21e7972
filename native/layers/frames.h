// frames.h -- pictures where a store keeps them.
#pragma once

#include "../core/types.h"

namespace scanline {

// Pictures [num, planes, height, width]; a plane is contiguous.
struct Frames {
  const void* data;
  bool bytes;                        // u8, scaled by x * scale + offset; else floats as they come
  i64 picture_stride, plane_stride;  // in elements
  float scale, offset;
};

}  // namespace scanline
