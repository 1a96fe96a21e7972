// conv_shape.h -- the geometry of one convolution, and of the grid of taps that it reads.
//
// Takes sizes as a network states them; gives derived sizes and strides. Knows no weights, no
// images and no instructions.
//
// A convolution sums over taps: contiguous runs of floats. Above the first layer a tap is one pixel
// of the layer below (all channels). In the first layer a tap is a strip: one row of the kernel,
// all channels of `kernel` neighbouring pixels. Strips of neighbouring outputs overlap.
#pragma once

#include "../core/types.h"

namespace scanline {

// Sizes of one convolution, in pixels, channels and filters.
struct ConvShape {
  i32 height, width, channels;  // of the input, without padding
  i32 filters, kernel, stride;
  i32 top, bottom, left, right;  // zero padding

  i32 out_height() const { return (top + height + bottom - kernel) / stride + 1; }
  i32 out_width() const { return (left + width + right - kernel) / stride + 1; }
  i32 out_pixels() const { return out_height() * out_width(); }
  i32 strip_floats() const { return kernel * channels; }  // one row of the kernel
  i32 depth() const { return kernel * strip_floats(); }   // products per output value
  i32 num_weights() const { return filters * depth(); }
};

// The taps of every output: `rows` x `columns` cells of the grid below, in the order of the
// weights. Cells outside of the grid are zero padding.
struct TapGrid {
  i32 height, width;  // of the grid below
  i32 rows, columns, row_stride, column_stride, top, left;
  i32 out_height, out_width;

  i32 num_taps() const { return rows * columns; }
  i32 out_pixels() const { return out_height * out_width; }
};

// The grid of the first layer, whose taps are strips.
inline TapGrid strip_grid(const ConvShape& conv) {
  return {conv.height, conv.out_width(),  conv.kernel,     1, conv.stride, 1, conv.top,
          0,           conv.out_height(), conv.out_width()};
}

// The grid of a later layer, whose taps are pixels.
inline TapGrid pixel_grid(const ConvShape& conv) {
  return {conv.height, conv.width, conv.kernel, conv.kernel,       conv.stride,
          conv.stride, conv.top,   conv.left,   conv.out_height(), conv.out_width()};
}

}  // namespace scanline
