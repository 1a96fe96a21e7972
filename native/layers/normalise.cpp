// normalise.cpp -- see normalise.h.
#include "normalise.h"

#include "parallel_for.h"

namespace scanline {

void normalise(const Frames& frames, i32 num, i32 num_planes, i32 num_pixels,
               const PixelMoments& moments, float* out) {
  const auto one_image = [&](i32 i) {
    const u8* const first = static_cast<const u8*>(frames.data) + i * frames.image_stride;
    float* to = out + static_cast<i64>(i) * num_planes * num_pixels;
    for (i32 s = 0; s < num_planes; ++s, to += num_pixels) {
      const u8* const plane = first + s * frames.plane_stride;
      for (i32 p = 0; p < num_pixels; ++p)
        to[p] = (static_cast<float>(plane[p]) - moments.mean[p]) * moments.scale[p];
    }
  };
  parallel_for(num, one_image, call_size(num));
}

}  // namespace scanline
