// conv_shape.h -- the geometry of one convolution, and of the grid of taps that it reads.
//
// Takes sizes as a network states them; gives sizes and strides. Knows no weights, no pictures and
// no instructions.
//
// A convolution sums over taps: stretches of floats that lie together. Above the first layer a tap
// is one pixel of the layer below. In the first layer it is one row of the kernel, all channels of
// `kernel` neighbouring pixels: the same picture cut into strips that overlap.
#pragma once

#include "../core/types.h"

namespace scanline {

// Sizes of one convolution, in pixels, channels and filters.
struct ConvShape {
  i32 height, width, channels;  // of the input, without its border
  i32 filters, kernel, stride;
  i32 top, bottom, left, right;  // the border of zeros

  i32 out_height() const { return (top + height + bottom - kernel) / stride + 1; }
  i32 out_width() const { return (left + width + right - kernel) / stride + 1; }
  i32 out_pixels() const { return out_height() * out_width(); }
  i32 run() const { return kernel * channels; }  // floats of one row of the kernel
  i32 depth() const { return kernel * run(); }   // products per output
  i32 weights() const { return filters * depth(); }
};

// The taps of every output: `rows` times `columns` places of a grid below, in the order of the
// weights. Places outside of the grid are border.
struct TapGrid {
  i32 height, width;  // of the grid below
  i32 rows, columns, row_stride, column_stride, top, left;
  i32 tap_floats;
  i32 out_height, out_width;

  i32 num_taps() const { return rows * columns; }
  i32 out_pixels() const { return out_height * out_width; }
};

inline TapGrid strips_of(const ConvShape& conv) {
  return {conv.height, conv.out_width(),  conv.kernel,     1, conv.stride, 1, conv.top, 0,
          conv.run(),  conv.out_height(), conv.out_width()};
}

inline TapGrid pixels_of(const ConvShape& conv) {
  return {conv.height, conv.width, conv.kernel,   conv.kernel,       conv.stride,     conv.stride,
          conv.top,    conv.left,  conv.channels, conv.out_height(), conv.out_width()};
}

}  // namespace scanline
