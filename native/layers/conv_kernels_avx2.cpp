// conv_kernels_avx2.cpp -- convolutions over distinct outputs, forward and backward, and the
// packing of matrices; see kernels.h.
#include <cstring>

#include "tiles_avx2.h"

namespace scanline {
namespace {

// Transposes eight floats, from `first` on, of eight rows: out[k * 16 + f] = rows[f][first + k].
void transpose_8x8(const float* const* rows, i32 first, float* out) {
  __m256 row[8], pair[8], four[8];
  for (i32 f = 0; f < 8; ++f) row[f] = _mm256_loadu_ps(rows[f] + first);
  for (i32 f = 0; f < 8; f += 2) {
    pair[f] = _mm256_unpacklo_ps(row[f], row[f + 1]);
    pair[f + 1] = _mm256_unpackhi_ps(row[f], row[f + 1]);
  }
  for (i32 f = 0; f < 8; f += 4) {
    four[f] = _mm256_shuffle_ps(pair[f], pair[f + 2], 0x44);
    four[f + 1] = _mm256_shuffle_ps(pair[f], pair[f + 2], 0xEE);
    four[f + 2] = _mm256_shuffle_ps(pair[f + 1], pair[f + 3], 0x44);
    four[f + 3] = _mm256_shuffle_ps(pair[f + 1], pair[f + 3], 0xEE);
  }
  for (i32 k = 0; k < 4; ++k) {
    _mm256_storeu_ps(out + k * kTileColumns, _mm256_permute2f128_ps(four[k], four[k + 4], 0x20));
    _mm256_storeu_ps(out + (k + 4) * kTileColumns,
                     _mm256_permute2f128_ps(four[k], four[k + 4], 0x31));
  }
}

// Sixteen filters, from `filter` on, of kRows outputs. The result is all zero bits if all are
// finite.
template <i32 kRows>
__m256 compute_tile(const Taps& taps, i32 first, i32 filter, const float* panel, const float* bias,
                    const Outputs& outputs) {
  alignas(32) float sums[kRows * kTileColumns];
  tap_products<kRows>([taps, first](i32 i, i32 tap) { return taps.row(first + i, tap); }, taps.num,
                      taps.rows.num_values, panel, sums);
  __m256 not_finite = _mm256_setzero_ps();
  for (i32 i = 0; i < kRows; ++i) {
    u64 bits = 0;
    for (i32 k = 0; k < kTileColumns; k += 8) {
      const __m256 sum =
          _mm256_add_ps(_mm256_load_ps(sums + i * kTileColumns + k), _mm256_loadu_ps(bias + k));
      const __m256 output = relu(sum);
      _mm256_storeu_ps(outputs.row(first + i) + filter + k, output);
      bits |= nonzero_bits(output) << k;
      not_finite = _mm256_or_ps(not_finite, zero_if_finite(output));
    }
    u64& word = outputs.mask(first + i)[filter / kMaskBits];
    if (filter % kMaskBits == 0) word = 0;
    word |= bits << filter % kMaskBits;
  }
  return not_finite;
}

// Adds to sums[f][from + k], for sixteen k or half as many: gradient of filter f times value from +
// k of a tap, summed over the outputs of a block that `index` .. `end` list.
template <i32 kFilters, bool kIsHalf>
__attribute__((noinline)) void filter_tile(const u8* index, const u8* end, const float* gradients,
                                           i64 stride, const i32* filters,
                                           const float* const* columns, i32 from, i64 depth,
                                           float* sums) {
  Tile<kFilters> tile;
  tile.clear();
  i64 at[kFilters];
#pragma GCC unroll 6
  for (i32 i = 0; i < kFilters; ++i) at[i] = filters[i];
  for (; index < end; ++index) {
    const float* const values = gradients + *index * stride;
    const float* const column = columns[*index] + from;
    const __m256 low = _mm256_loadu_ps(column);
    const __m256 high = kIsHalf ? low : _mm256_loadu_ps(column + 8);  // not stored where it is low
#pragma GCC unroll 6
    for (i32 i = 0; i < kFilters; ++i) tile.add(i, _mm256_broadcast_ss(values + at[i]), low, high);
  }
#pragma GCC unroll 6
  for (i32 i = 0; i < kFilters; ++i) {
    add_to(sums + at[i] * depth + from, tile.low[i]);
    if (!kIsHalf) add_to(sums + at[i] * depth + from + 8, tile.high[i]);
  }
}

// Sixteen channels of kRows inputs.
template <i32 kRows>
void input_tile(const i32* inputs, const SparseRow* rows, i32 filters, i32 channels,
                const float* panel, float* input_gradients) {
  alignas(32) float sums[kRows * kTileColumns];
  row_products<kRows>(rows, filters, panel, sums);
  for (i32 i = 0; i < kRows; ++i) {
    float* const to = input_gradients + static_cast<i64>(inputs[i]) * channels;
    add_to(to, _mm256_load_ps(sums + i * kTileColumns));
    add_to(to + 8, _mm256_load_ps(sums + i * kTileColumns + 8));
  }
}

void relu_backward_columns(i32 num, i32 stride, i32 columns, const float* outputs,
                           float* gradients) {
  for (i32 i = 0; i < num; ++i, outputs += stride, gradients += stride)
    for (i32 k = 0; k < columns; k += 8)
      _mm256_storeu_ps(gradients + k, relu_gradient(_mm256_loadu_ps(gradients + k), outputs + k));
}

}  // namespace

// Reads all columns of a row before the next row, which may be on another page.
void pack_columns(const float* matrix, i32 num_rows, i64 stride, i32 num_panels, float* panels) {
  constexpr i32 kAhead = 8;
  for (i32 r = 0; r < num_rows; ++r)
    for (i32 p = 0; p < num_panels; ++p) {
      const float* const from = matrix + r * stride + p * kTileColumns;
      if (r + kAhead < num_rows)
        _mm_prefetch(reinterpret_cast<const char*>(from + kAhead * stride), _MM_HINT_T0);
      std::memcpy(panels + (p * num_rows + r) * kTileColumns, from, kTileColumns * sizeof(float));
    }
}

void pack_rows(const float* const* rows, i64 num_rows, i32 num, float* panels) {
  for (i64 r = 0; r < num_rows; r += kTileColumns)
    for (i32 k = 0; k < num; k += 8, panels += 8 * kTileColumns) {
      transpose_8x8(rows + r, k, panels);
      transpose_8x8(rows + r + 8, k, panels + 8);
    }
}

void sum_rows(const float* a, const float* b, i32 num, float* to) {
  for (i32 i = 0; i < num; i += 8)
    _mm256_storeu_ps(to + i, _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
}

void accumulate_rows(i32 num, i32 stride, i32 floats, const float* rows, float* sums) {
  for (i32 f = 0; f < floats; f += 8) {
    __m256 sum = _mm256_loadu_ps(sums + f);
    for (i32 i = 0; i < num; ++i)
      sum = _mm256_add_ps(sum, _mm256_loadu_ps(rows + static_cast<i64>(i) * stride + f));
    _mm256_storeu_ps(sums + f, sum);
  }
}

bool compute_outputs(const Taps& taps, i32 first, i32 end, const float* panels, const float* biases,
                     const Outputs& outputs) {
  __m256 not_finite = _mm256_setzero_ps();
  const auto note = [&](__m256 bits) { not_finite = _mm256_or_ps(not_finite, bits); };
  for (i32 f = 0; f < outputs.filters; f += kTileColumns, panels += kTileColumns * taps.depth()) {
    i32 i = first;
    for (; i + 6 <= end; i += 6) note(compute_tile<6>(taps, i, f, panels, biases + f, outputs));
    for (; i + 3 <= end; i += 3) note(compute_tile<3>(taps, i, f, panels, biases + f, outputs));
    for (; i < end; ++i) note(compute_tile<1>(taps, i, f, panels, biases + f, outputs));
  }
  return is_zero(not_finite);
}

void add_filter_gradients(const Taps& taps, i32 num, i32 tap, const FilterTileLists& tiles,
                          const SparseRows& gradients, float* sums) {
  const i32 depth = taps.depth(), floats = taps.rows.num_values;
  const float* columns[FilterTileLists::kBlockOutputs];
  for (i32 block = 0; block * FilterTileLists::kBlockOutputs < num; ++block) {
    const i32 first = 1 + block * FilterTileLists::kBlockOutputs;
    const i32 some = min_of(FilterTileLists::kBlockOutputs, num + 1 - first);
    for (i32 i = 0; i < some; ++i) columns[i] = taps.row(first + i, tap).values;
    for (i32 at = 0; at < floats; at += kTileColumns)
      for (i32 tile = 0; tile < tiles.num_tiles(); ++tile)
        with_rows(tiles.num_filters_of(tile), [&](auto filters) {
          const auto add =
              at + kTileColumns > floats ? filter_tile<filters, true> : filter_tile<filters, false>;
          add(tiles.begin(block, tile), tiles.end(block, tile), gradients.row(first).values,
              gradients.num_values, tiles.filters(tile), columns, at, depth, sums + tap * floats);
        });
  }
}

void scatter_add_columns(const i32* ids, i64 num_rows, const float* rows, i32 num, i32 filters,
                         const float* outputs, float* columns) {
  for (i32 i = 0; i <= num; ++i)
    std::memset(columns + static_cast<i64>(i) * filters, 0, kTileColumns * sizeof(float));
  for (i64 i = 0; i < num_rows; ++i) {
    float* const to = columns + static_cast<i64>(ids[i]) * filters;
    const float* const from = rows + i * filters;
    add_to(to, _mm256_loadu_ps(from));
    add_to(to + 8, _mm256_loadu_ps(from + 8));
  }
  relu_backward_columns(num + 1, filters, kTileColumns, outputs, columns);
}

void add_input_gradients(const i32* inputs, const SparseRow* rows, i64 num, i32 filters,
                         i32 channels, const float* panels, float* input_gradients) {
  const i64 panel_floats = static_cast<i64>(kTileColumns) * filters;
  for (i32 c = 0; c < channels; c += kTileColumns, panels += panel_floats) {
    const auto put = [&](auto kernel, i64 i) {
      kernel(inputs + i, rows + i, filters, channels, panels, input_gradients + c);
    };
    i64 i = 0;
    for (; i + 6 <= num; i += 6) put(input_tile<6>, i);
    for (; i + 3 <= num; i += 3) put(input_tile<3>, i);
    for (; i < num; ++i) put(input_tile<1>, i);
  }
}

void relu_backward_rows(i32 num, i32 floats, const float* outputs, float* gradients) {
  relu_backward_columns(num, floats, floats, outputs, gradients);
}

}  // namespace scanline
