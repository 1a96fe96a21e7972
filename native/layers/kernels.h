// kernels.h -- the inner loops of all layers, as functions of plain memory.
//
// Takes pointers; gives sums. Knows no image, no thread and no container.
//
// They are defined in files that are compiled for AVX2 and FMA, and may be called only where
// `kernels_refusal` is null. Such a file must not define anything that a file for any processor
// could share, or the linker may take its version for both: templates and helpers are in an
// unnamed namespace, what it includes is inlined always, and of the standard library it uses
// memcpy and memset alone (tests/native/test_objects.py).
//
// Sizes are multiples of 16 where a panel or a tile of sixteen columns reads them.
#pragma once

#include "sparse_rows.h"

namespace scanline {

constexpr i32 kTileRows = 6;
constexpr i32 kTileColumns = 16;

// Why kernels cannot run here, or nullptr.
const char* kernels_refusal();

// -- Matrices packed in the order in which tiles read them.

// Columns of a matrix [num_rows, stride] as panels [num_panels][num_rows][16].
void pack_columns(const float* matrix, i32 num_rows, i64 stride, i32 num_panels, float* panels);
// Rows of `num` floats, transposed in groups of sixteen: [num_rows / 16][num][16].
void pack_rows(const float* const* rows, i64 num_rows, i32 num, float* panels);

// to = a + b
void sum_rows(const float* a, const float* b, i32 num, float* to);
// Adds all rows of `floats` floats, `stride` apart, to `sums`.
void accumulate_rows(i32 num, i32 stride, i32 floats, const float* rows, float* sums);

// -- Convolutions over distinct outputs; id 0 is zero padding.

// What outputs read: `num` rows of the layer below per output, by id.
struct Taps {
  const i32* ids;
  i32 stride, num;
  SparseRows rows;

  SCANLINE_INLINE SparseRow row(i32 output, i32 tap) const {
    return rows.row((ids + static_cast<i64>(output) * stride)[tap]);
  }
  SCANLINE_INLINE i32 depth() const { return num * rows.num_values; }
};

// Where outputs are written, by id: rows of values and their masks.
struct Outputs {
  float* values;
  u64* nonzero;
  i32 filters;

  SCANLINE_INLINE float* row(i32 output) const {
    return values + static_cast<i64>(output) * filters;
  }
  SCANLINE_INLINE u64* mask(i32 output) const {
    return nonzero + static_cast<i64>(output) * num_mask_words(filters);
  }
};

// Outputs first .. end - 1 behind the ReLU; gives whether all are finite.
bool compute_outputs(const Taps& taps, i32 first, i32 end, const float* panels, const float* biases,
                     const Outputs& outputs);

// Tiles of filters, and per block of outputs and tile a list of outputs (filter_tiles.h).
struct FilterTileLists {
  static constexpr i32 kBlockOutputs = 96;  // taps and gradients of a block fit the L1 cache
  static constexpr i32 kMaxFilters = kTileRows;

  const i32* all_filters;
  i32 num_filters;
  const i32* ends;
  const u8* indices;

  SCANLINE_INLINE i32 num_tiles() const { return (num_filters + kMaxFilters - 1) / kMaxFilters; }
  SCANLINE_INLINE const i32* filters(i32 tile) const { return all_filters + tile * kMaxFilters; }
  SCANLINE_INLINE i32 num_filters_of(i32 tile) const {
    const i32 left = num_filters - tile * kMaxFilters;
    return left < kMaxFilters ? left : kMaxFilters;
  }
  // Indices of outputs in their block, rising.
  SCANLINE_INLINE const u8* begin(i32 block, i32 tile) const {
    const i64 at = list_of(block, tile);
    return indices + (at == 0 ? 0 : ends[at - 1]);
  }
  SCANLINE_INLINE const u8* end(i32 block, i32 tile) const {
    return indices + ends[list_of(block, tile)];
  }

 private:
  SCANLINE_INLINE i64 list_of(i32 block, i32 tile) const {
    return static_cast<i64>(block) * num_tiles() + tile;
  }
};

// Adds to the weight gradients `sums` [filters, depth] of one tap, over outputs 1 .. num.
void add_filter_gradients(const Taps& taps, i32 num, i32 tap, const FilterTileLists& tiles,
                          const SparseRows& gradients, float* sums);

// Sixteen columns of the gradients of outputs 0 .. num, from `columns` on: row i is added to the
// gradient of output ids[i]; then the ReLU's gradient by `outputs`. Rows have `filters` floats.
void scatter_add_columns(const i32* ids, i64 num_rows, const float* rows, i32 num, i32 filters,
                         const float* outputs, float* columns);

// Adds to the gradients of inputs for one tap: row i (gradients of filters) times the weight panels
// of all channels, to input inputs[i] of `input_gradients`.
void add_input_gradients(const i32* inputs, const SparseRow* rows, i64 num, i32 filters,
                         i32 channels, const float* panels, float* input_gradients);

// Sets gradients [num, floats] to zero where the ReLU's output was zero; a NaN output passes.
void relu_backward_rows(i32 num, i32 floats, const float* outputs, float* gradients);

// -- Dense layers.

// Units first .. first + num_units - 1 of rows [num, inputs] times weights, with their biases.
struct DenseUnits {
  i32 num, inputs, units;
  bool relu;
  i32 first, num_units;
  const float* next;  // weights that this thread probably needs next, to prefetch, or null
};
void dense_units(const DenseUnits& job, const float* rows, const float* weights,
                 const float* biases, float* out);

// The number of six-row tiles that leaves a multiple of four; as many as fit if none does.
SCANLINE_INLINE i32 num_sixes(i32 num) {
  for (i32 sixes = num / 6; sixes >= 0; --sixes)
    if ((num - 6 * sixes) % 4 == 0) return sixes;
  return num / 6;
}
// Units of the tile that starts at `unit`: first sixes, then fours, then ones.
SCANLINE_INLINE i32 tile_units(i32 unit, i32 num_units) {
  return unit < 6 * num_sixes(num_units) ? 6 : num_units - unit >= 4 ? 4 : 1;
}

// Gradients of rows [num, inputs] for panels of sixteen inputs, from gradients [num, units].
void row_gradient_panels(i32 num, i32 units, i64 inputs, const float* gradients,
                         const float* panels, i32 num_panels, bool accumulate, float* to);
// Gradients of weights [units, inputs] for panels of sixteen inputs of the rows; gradients are laid
// out by tile of units: [units / size][num][size].
void weight_gradient_panels(i32 num, i32 units, i64 inputs, const float* tiles, const float* panels,
                            i32 num_panels, float* to);

// -- The dense layer behind convolutions, one position at a time (feature_dense.h).

// Products of rows with the weights [filters, units] of a position, each to row pairs[i] of
// `products`. Meanwhile `next_rows` (of `units` floats) are prefetched.
struct PositionProducts {
  const SparseRow* rows;
  const i32* pairs;
  i32 num, filters, units;
  const float* weights;
  const float* const* next_rows;
  i64 num_next_rows;
};
void multiply_position(const PositionProducts& job, float* products, i64 stride);

// One image's row: biases plus the products of its pairs, behind the ReLU.
void sum_positions(const i32* pairs, i32 num_positions, const float* products, i64 stride,
                   const float* biases, i32 units, float* row);

// The ReLU's gradient of one row, and its mask.
void relu_backward_row(i32 floats, const float* outputs, const float* gradients, float* to,
                       u64* nonzero);

// The pairs of one position: convolution outputs, and gradients of their products.
struct PositionGradients {
  const SparseRow *outputs, *gradients;
  i32 num, units;
  const i32* inputs;  // values that are not zero in at least one output
  i32 num_inputs;
};
// Gradients of the weights [filters, units], in the rows `inputs`.
void position_weight_gradients(const PositionGradients& job, bool accumulate, float* weights);
// Gradients of the outputs, at the values `inputs`, from the position's weights packed by sixteen
// inputs.
void position_pair_gradients(const PositionGradients& job, const float* panels, float* const* to);

}  // namespace scanline
