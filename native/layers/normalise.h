// normalise.h -- bytes of images to floats, by the mean and scale of each pixel.
//
// Takes images in a store's memory and two floats per pixel; gives contiguous floats
// (x - mean) * scale, with the same mean and scale for every plane. Knows no statistics and no
// network.
#pragma once

#include "frames.h"

namespace scanline {

struct PixelMoments {
  const float *mean, *scale;  // [num_pixels]
};

// Writes out[num, num_planes, num_pixels]; the frames are bytes.
void normalise(const Frames& frames, i32 num, i32 num_planes, i32 num_pixels,
               const PixelMoments& moments, float* out);

}  // namespace scanline
