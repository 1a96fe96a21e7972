// kernels.h -- the inner loops of all layers, as functions of plain memory.
//
// Takes pointers; gives sums. Knows no picture, no thread and no container.
//
// They are defined in files that are compiled for AVX2 and FMA, and may be called only where
// `kernels_refusal` is null. Such a file must not define anything that a file for any processor
// could share, or the linker may take its version for both: templates and helpers are its own
// (an unnamed namespace), what it includes is inlined always, and of the standard library it uses
// memcpy and memset alone (tests/native/test_objects.py).
#pragma once

#include "present.h"

namespace scanline {

constexpr i32 kTileRows = 6;
constexpr i32 kTileColumns = 16;

// Why kernels cannot run here, or nullptr.
const char* kernels_refusal();

// -- Matrices in the order in which the tiles read them.

// Neighbouring columns of a matrix as panels of sixteen, each one row after the other.
void pack_columns(const float* matrix, i32 num_rows, i64 stride, i32 num_panels, float* panels);
// Rows of `num` floats by sixteen: [rows / 16][num][16].
void pack_lines(const float* const* rows, i64 num_rows, i32 num, float* panels);

// to = a + b
void sum_rows(const float* a, const float* b, i32 num, float* to);
// Adds all rows of `floats` floats, `stride` apart, to one.
void add_rows(i32 num, i32 stride, i32 floats, const float* rows, float* sums);

// -- Convolutions: rows of floats by number; row 0 is border, zeros.

// What outputs read: `num` rows per output, by number.
struct Taps {
  const i32* numbers;
  i32 stride, num;
  MarkedRows rows;

  SCANLINE_INLINE const i32* of(i32 output) const {
    return numbers + static_cast<i64>(output) * stride;
  }
  SCANLINE_INLINE MarkedRow row(i32 output, i32 tap) const { return rows.row(of(output)[tap]); }
  SCANLINE_INLINE i32 depth() const { return num * rows.num_floats; }
};

// Where outputs go, by number: rows of floats and their marks.
struct Outputs {
  float* floats;
  u64* present;
  i32 filters;

  SCANLINE_INLINE float* at(i32 output) const {
    return floats + static_cast<i64>(output) * filters;
  }
  SCANLINE_INLINE u64* marks(i32 output) const {
    return present + static_cast<i64>(output) * words_for(filters);
  }
};

// Rectified outputs first .. end; gives whether all are finite.
bool compute_outputs(const Taps& taps, i32 first, i32 end, const float* panels, const float* biases,
                     const Outputs& outputs);

// Filters by tile, and per stretch and tile the outputs that one of them has (filter_tiles.h).
struct FilterTileLists {
  static constexpr i32 kStretch = 96;
  static constexpr i32 kMostFilters = kTileRows;

  const i32* order;
  i32 num_filters;
  const i32* ends;
  const u8* steps;

  SCANLINE_INLINE i32 num_tiles() const { return (num_filters + kMostFilters - 1) / kMostFilters; }
  SCANLINE_INLINE const i32* filters(i32 tile) const { return order + tile * kMostFilters; }
  SCANLINE_INLINE i32 filters_of(i32 tile) const {
    const i32 left = num_filters - tile * kMostFilters;
    return left < kMostFilters ? left : kMostFilters;
  }
  // Rising places in a stretch, counted from its first output.
  SCANLINE_INLINE const u8* begin(i32 stretch, i32 tile) const {
    const i64 at = place(stretch, tile);
    return steps + (at == 0 ? 0 : ends[at - 1]);
  }
  SCANLINE_INLINE const u8* end(i32 stretch, i32 tile) const {
    return steps + ends[place(stretch, tile)];
  }

 private:
  SCANLINE_INLINE i64 place(i32 stretch, i32 tile) const {
    return static_cast<i64>(stretch) * num_tiles() + tile;
  }
};

// Adds to the weights' gradient for one tap, of outputs 1 .. num.
void add_filter_gradients(const Taps& taps, i32 num, i32 tap, const FilterTileLists& tiles,
                          const MarkedRows& gradients, float* sums);

// Sixteen columns, from `columns` on, of the gradients of outputs 0 .. num: sums of all rows that
// belong to the same output, as far as its rectifier lets them pass.
void gather_columns(const i32* numbers, i64 num_rows, const float* rows, i32 num, i32 filters,
                    const float* outputs, float* columns);

// Gradients of inputs, each added to `below` at its number, for one tap and all channels: the sums
// over `num` rows of gradients times a panel per sixteen channels.
void add_input_gradients(const i32* inputs, const MarkedRow* rows, i64 num, i32 filters,
                         i32 channels, const float* panels, float* below);

// Gradients [num, floats] pass where the outputs were positive or no numbers.
void pass_rows(i32 num, i32 floats, const float* outputs, float* gradients);

// -- Dense layers.

// Units of a job: rows [num, inputs] times weights, from `first` on, with their biases.
struct DenseUnits {
  i32 num, inputs, units;
  bool rectified;
  i32 first, num_units;
  const float* next;  // weights that this thread will probably need then, or null
};
void dense_units(const DenseUnits& job, const float* rows, const float* weights,
                 const float* biases, float* out);

// How many tiles of six leave a rest that tiles of four can take; as many as fit where none do.
SCANLINE_INLINE i32 num_sixes(i32 num) {
  for (i32 sixes = num / 6; sixes >= 0; --sixes)
    if ((num - 6 * sixes) % 4 == 0) return sixes;
  return num / 6;
}
// Units of the tile that begins with this one: sixes, then fours, then ones.
SCANLINE_INLINE i32 tile_units(i32 unit, i32 num_units) {
  return unit < 6 * num_sixes(num_units) ? 6 : num_units - unit >= 4 ? 4 : 1;
}

// Gradients of rows [num, inputs] for panels of sixteen inputs, from gradients [num, units].
void row_gradient_panels(i32 num, i32 units, i64 inputs, const float* gradients,
                         const float* panels, i32 num_panels, bool adds, float* to);
// Gradients of weights [units, inputs] for panels of sixteen inputs of the rows; gradients lie by
// tile of units: [units / size][num][size].
void weight_gradient_panels(i32 num, i32 units, i64 inputs, const float* tiles, const float* panels,
                            i32 num_panels, float* to);

// -- The dense layer behind convolutions, place by place.

// Products of rows with a place's weights [filters, units], each to row ids[i] of `products`.
// Meanwhile lines of `units` floats that are needed next are on their way.
struct PlaceProducts {
  const MarkedRow* rows;
  const i32* ids;
  i32 num, filters, units;
  const float* weights;
  const float* const* next_lines;
  i64 num_lines;
};
void multiply_place(const PlaceProducts& job, float* products, i64 stride);

// Rectified sums of one picture over all places, from the biases on.
void sum_places(const i32* ids, i32 num_places, const float* products, i64 stride,
                const float* biases, i32 units, float* row);

// One row of gradients behind the rectifier, and its marks.
void pass_row(i32 floats, const float* outputs, const float* gradients, float* passed,
              u64* present);

// What stood at a place, and the gradients of what it added, pair by pair.
struct PlaceGradients {
  const MarkedRow *outputs, *gradients;
  i32 num, units;
  const i32* inputs;  // floats that one of the outputs at least has
  i32 num_inputs;
};
// Gradients of the weights [filters, units] at `inputs`.
void place_weight_gradients(const PlaceGradients& job, bool adds, float* weights);
// Gradients of the outputs at `inputs`, from the place's weights by sixteen inputs.
void place_pair_gradients(const PlaceGradients& job, const float* panels, float* const* to);

}  // namespace scanline
