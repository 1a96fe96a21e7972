// conv_shape.h -- the geometry of one convolution, and the offsets that its loops walk.
//
// Takes sizes as a network states them; gives offsets, in floats, into pictures that lie channels
// last in memory. Knows no weights and no instructions.
//
// A picture is kept with the zero border that its convolution needs, so that no loop asks whether
// it is inside. Read backwards a convolution with stride s is s * s convolutions ("phases") with
// stride 1 over a bordered gradient; the phases share the forward loops.
#pragma once

#include <vector>

#include "../core/types.h"

namespace scanline {

// Sizes of one convolution, in pixels, channels and filters.
struct ConvShape {
  i32 height, width, channels;  // of the input, without its border
  i32 filters, kernel, stride;
  i32 top, bottom, left, right;  // the border

  i32 bordered_height() const { return top + height + bottom; }
  i32 bordered_width() const { return left + width + right; }
  i32 out_height() const { return (bordered_height() - kernel) / stride + 1; }
  i32 out_width() const { return (bordered_width() - kernel) / stride + 1; }
  i32 out_pixels() const { return out_height() * out_width(); }
  i32 run() const { return kernel * channels; }  // floats of one row of the kernel
  i32 depth() const { return kernel * run(); }   // products per output
  i32 input_floats() const { return bordered_height() * bordered_width() * channels; }
  i32 row_floats() const { return bordered_width() * channels; }
  i32 first_float() const { return top * row_floats() + left * channels; }  // behind the border
  i32 weights() const { return filters * depth(); }
};

// A gradient of the output with the border that reading backwards needs.
struct GradientShape {
  i32 before, height, width, filters;  // border above and left; sizes with all borders

  explicit GradientShape(const ConvShape& conv)
      : before((conv.kernel + conv.stride - 1) / conv.stride - 1),
        height(before + (conv.bordered_height() - 1) / conv.stride + 1),
        width(before + (conv.bordered_width() - 1) / conv.stride + 1),
        filters(conv.filters) {}

  i32 pixels() const { return height * width; }
  i32 row_floats() const { return width * filters; }
  // Of output pixel (y, x) among the pixels with all borders.
  i32 place(i32 y, i32 x) const { return (before + y) * width + before + x; }
};

// A product sum reads `num_runs` stretches of `run` floats, `stride` floats apart.
struct Stretches {
  i32 num_runs, run, stride;
};

// Every output pixel of a convolution: where its sum reads from and where it goes.
struct Walk {
  Stretches sum;
  std::vector<i32> from, to;
};

// `to` counts in a picture of rows `to_row` floats long.
inline Walk forward_walk(const ConvShape& conv, i32 to_first, i32 to_row) {
  Walk walk{{conv.kernel, conv.run(), conv.row_floats()}, {}, {}};
  for (i32 y = 0; y < conv.out_height(); ++y) {
    for (i32 x = 0; x < conv.out_width(); ++x) {
      walk.from.push_back(y * conv.stride * conv.row_floats() + x * conv.stride * conv.channels);
      walk.to.push_back(to_first + y * to_row + x * conv.filters);
    }
  }
  return walk;
}

// The phase (py, px) of the way back: kernel rows py, py + stride, ... meet these input pixels.
struct Phase {
  i32 py, px, rows, columns;  // first kernel row and column, and how many of them
  Stretches sum;
  std::vector<i32> pixels;  // of the layer below, row by row
  std::vector<i32> places;  // of the first pixel of the bordered gradient that each of them reads

  i32 depth() const { return sum.num_runs * sum.run; }  // products per output
};

inline Phase backward_phase(const ConvShape& conv, i32 py, i32 px) {
  const GradientShape gradient(conv);
  const i32 rows = (conv.kernel - py + conv.stride - 1) / conv.stride;
  const i32 columns = (conv.kernel - px + conv.stride - 1) / conv.stride;
  Phase phase{py, px, rows, columns, {rows, columns * conv.filters, gradient.row_floats()}, {}, {}};
  for (i32 y = conv.top; y < conv.top + conv.height; ++y) {
    if (y % conv.stride != py) continue;
    for (i32 x = conv.left; x < conv.left + conv.width; ++x) {
      if (x % conv.stride != px) continue;
      phase.pixels.push_back((y - conv.top) * conv.width + x - conv.left);
      phase.places.push_back(
          gradient.place(y / conv.stride - (rows - 1), x / conv.stride - (columns - 1)));
    }
  }
  return phase;
}

}  // namespace scanline
