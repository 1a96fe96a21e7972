// frames.h -- a view of frame stacks in a store's memory.
#pragma once

#include "../core/types.h"

namespace scanline {

// Images [num, planes, height, width]: an image is a stack of frames, a plane one frame. A plane
// is contiguous.
struct Frames {
  const void* data;
  bool bytes;                      // u8, converted by x * scale + offset; else floats as they are
  i64 image_stride, plane_stride;  // in elements
  float scale, offset;
};

}  // namespace scanline
