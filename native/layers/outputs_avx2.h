// outputs_avx2.h -- the sums over a layer's different outputs, forwards and backwards.
//
// Takes rows of floats by number (row 0 is border, zeros) and packed weights; gives rows, or adds
// to gradients of weights. Knows no picture and no thread.
// Included by files that are compiled for AVX2 and FMA only.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "filter_tiles.h"
#include "readers.h"
#include "tiles_avx2.h"

namespace scanline {

// What outputs read: `num` rows per output, by number.
struct Taps {
  const i32* numbers;
  i32 stride, num;
  MarkedRows rows;

  const i32* of(i32 output) const { return numbers + static_cast<i64>(output) * stride; }
  MarkedRow row(i32 output, i32 tap) const { return rows.row(of(output)[tap]); }
  i32 depth() const { return num * rows.num_floats; }
};

// Where outputs go, by number: rows of floats and their marks.
struct Outputs {
  float* floats;
  u64* present;
  i32 filters;

  float* at(i32 output) const { return floats + static_cast<i64>(output) * filters; }
  u64* marks(i32 output) const { return present + static_cast<i64>(output) * words_for(filters); }
};

inline void add_to(float* sum, __m256 more) {
  _mm256_storeu_ps(sum, _mm256_add_ps(_mm256_loadu_ps(sum), more));
}

// A gradient passes where the output was positive.
inline __m256 passed(__m256 gradient, const float* output) {
  const __m256 open = _mm256_cmp_ps(_mm256_loadu_ps(output), _mm256_setzero_ps(), _CMP_GT_OQ);
  return _mm256_and_ps(gradient, open);
}

// Sixteen columns of `num` rows.
inline void clear_columns(i32 num, i32 stride, float* columns) {
  for (i32 i = 0; i < num; ++i)
    std::memset(columns + static_cast<i64>(i) * stride, 0, kTileColumns * sizeof(float));
}

inline void pass_columns(i32 num, i32 stride, const float* outputs, float* gradients) {
  for (i32 i = 0; i < num; ++i, outputs += stride, gradients += stride)
    for (i32 k = 0; k < kTileColumns; k += 8)
      _mm256_storeu_ps(gradients + k, passed(_mm256_loadu_ps(gradients + k), outputs + k));
}

inline u64 marks_of(__m256 floats) {
  return static_cast<u64>(
      _mm256_movemask_ps(_mm256_cmp_ps(floats, _mm256_setzero_ps(), _CMP_NEQ_UQ)));
}

// Sixteen filters, from `filter` on, of kRows outputs.
template <i32 kRows>
void compute_tile(const Taps& taps, i32 first, i32 filter, const float* panel, const float* bias,
                  const Outputs& outputs) {
  alignas(32) float sums[kRows * kTileColumns];
  tap_products<kRows>([taps, first](i32 i, i32 tap) { return taps.row(first + i, tap); }, taps.num,
                      taps.rows.num_floats, panel, sums);
  for (i32 i = 0; i < kRows; ++i) {
    u64 marks = 0;
    for (i32 k = 0; k < kTileColumns; k += 8) {
      const __m256 sum =
          _mm256_add_ps(_mm256_load_ps(sums + i * kTileColumns + k), _mm256_loadu_ps(bias + k));
      const __m256 rectified = _mm256_max_ps(sum, _mm256_setzero_ps());
      _mm256_storeu_ps(outputs.at(first + i) + filter + k, rectified);
      marks |= marks_of(rectified) << k;
    }
    u64& word = outputs.marks(first + i)[filter / kMarksPerWord];
    if (filter % kMarksPerWord == 0) word = 0;
    word |= marks << filter % kMarksPerWord;
  }
}

// Rectified outputs first .. end.
inline void compute_outputs(const Taps& taps, i32 first, i32 end, const float* panels,
                            const float* biases, const Outputs& outputs) {
  for (i32 f = 0; f < outputs.filters; f += kTileColumns, panels += kTileColumns * taps.depth()) {
    i32 i = first;
    for (; i + 6 <= end; i += 6) compute_tile<6>(taps, i, f, panels, biases + f, outputs);
    for (; i + 3 <= end; i += 3) compute_tile<3>(taps, i, f, panels, biases + f, outputs);
    for (; i < end; ++i) compute_tile<1>(taps, i, f, panels, biases + f, outputs);
  }
}

// Adds to sums[f][from + k]: gradient of filter f times float from + k of a tap, over the outputs
// at `steps`, for sixteen k.
template <i32 kFilters>
__attribute__((noinline)) void filter_tile(const u8* steps, const u8* end, const float* gradients,
                                           i64 stride, const i32* filters,
                                           const float* const* columns, i32 from, i64 depth,
                                           float* sums) {
  Tile<kFilters> tile;
  tile.clear();
  i64 at[kFilters];
#pragma GCC unroll 6
  for (i32 i = 0; i < kFilters; ++i) at[i] = filters[i];
  for (; steps < end; ++steps) {
    const float* const values = gradients + *steps * stride;
    const float* const column = columns[*steps] + from;
    const __m256 low = _mm256_loadu_ps(column), high = _mm256_loadu_ps(column + 8);
#pragma GCC unroll 6
    for (i32 i = 0; i < kFilters; ++i) tile.add(i, _mm256_broadcast_ss(values + at[i]), low, high);
  }
#pragma GCC unroll 6
  for (i32 i = 0; i < kFilters; ++i) {
    add_to(sums + at[i] * depth + from, tile.low[i]);
    add_to(sums + at[i] * depth + from + 8, tile.high[i]);
  }
}

// The weights' gradient for one tap, of outputs 1 .. num.
inline void add_filter_gradients(const Taps& taps, i32 num, i32 tap, const FilterTiles& tiles,
                                 const MarkedRows& gradients, float* sums) {
  const i32 depth = taps.depth(), floats = taps.rows.num_floats;
  const float* columns[FilterTiles::kStretch];
  for (i32 stretch = 0; stretch * FilterTiles::kStretch < num; ++stretch) {
    const i32 first = 1 + stretch * FilterTiles::kStretch;
    const i32 some = std::min(FilterTiles::kStretch, num + 1 - first);
    for (i32 i = 0; i < some; ++i) columns[i] = taps.row(first + i, tap).floats;
    for (i32 at = 0; at < floats; at += kTileColumns)
      for (i32 tile = 0; tile < tiles.num_tiles(); ++tile)
        with_rows(tiles.num_filters(tile), [&](auto filters) {
          filter_tile<filters>(tiles.begin(stretch, tile), tiles.end(stretch, tile),
                               gradients.row(first).floats, gradients.num_floats,
                               tiles.filters(tile), columns, at, depth, sums + tap * floats);
        });
  }
}

// Adds all rows of `floats` floats, `stride` apart, to one.
inline void add_rows(i32 num, i32 stride, i32 floats, const float* rows, float* sums) {
  for (i32 f = 0; f < floats; f += 8) {
    __m256 sum = _mm256_loadu_ps(sums + f);
    for (i32 i = 0; i < num; ++i)
      sum = _mm256_add_ps(sum, _mm256_loadu_ps(rows + static_cast<i64>(i) * stride + f));
    _mm256_storeu_ps(sums + f, sum);
  }
}

// A layer on the way back: gradients of its outputs to those of its inputs.
struct WayBack {
  MarkedRows gradients;  // of the outputs
  i32 channels;
  const float* panels;  // per tap and sixteen channels: [filters][16]
  const float* inputs;  // what the rectifier below let through
  float* below;         // gradients of the inputs
};

// Inputs that one tap of some output reads, and the gradients that come from there.
struct Senders {
  std::vector<i32> inputs;
  std::vector<MarkedRow> rows;
  std::vector<float> sums;  // where several outputs read one input with the same tap
  std::vector<u64> marks;

  void find(const Readers& readers, i32 tap, i32 first, i32 end, const MarkedRows& gradients) {
    inputs.clear();
    rows.clear();
    const size_t num = static_cast<size_t>(end - first);
    sums.resize(num * static_cast<size_t>(gradients.num_floats));
    marks.resize(num * static_cast<size_t>(gradients.words));
    for (i32 input = first; input < end; ++input) {
      const i32 *const reader = readers.begin(input, tap), *const last = readers.end(input, tap);
      if (reader == last) continue;
      inputs.push_back(input);
      rows.push_back(last - reader == 1 ? gradients.row(*reader)
                                        : sum(reader, last, input - first, gradients));
    }
  }

 private:
  MarkedRow sum(const i32* reader, const i32* last, i32 place, const MarkedRows& gradients) {
    float* const to = sums.data() + static_cast<i64>(place) * gradients.num_floats;
    u64* const present = marks.data() + static_cast<i64>(place) * gradients.words;
    const MarkedRow start = gradients.row(*reader);
    std::copy_n(start.floats, gradients.num_floats, to);
    std::copy_n(start.present, gradients.words, present);
    while (++reader != last) {
      const MarkedRow more = gradients.row(*reader);
      for (i32 f = 0; f < gradients.num_floats; f += 8)
        add_to(to + f, _mm256_loadu_ps(more.floats + f));
      for (i32 w = 0; w < gradients.words; ++w) present[w] |= more.present[w];
    }
    return {to, present};
  }
};

template <i32 kRows>
void input_tile(const Senders& senders, size_t first, const WayBack& way, const float* panel,
                float* below) {
  alignas(32) float sums[kRows * kTileColumns];
  row_products<kRows>(senders.rows.data() + first, way.gradients.num_floats, panel, sums);
  for (size_t i = 0; i < kRows; ++i) {
    float* const to = below + static_cast<i64>(senders.inputs[first + i]) * way.channels;
    add_to(to, _mm256_load_ps(sums + i * kTileColumns));
    add_to(to + 8, _mm256_load_ps(sums + i * kTileColumns + 8));
  }
}

// Gradients of inputs first .. end.
inline void input_gradients(const Readers& readers, i32 first, i32 end, const WayBack& way) {
  static thread_local Senders senders;
  const i64 begin = static_cast<i64>(first) * way.channels;
  const i32 num = end - first, panel_floats = kTileColumns * way.gradients.num_floats;
  std::fill_n(way.below + begin, static_cast<i64>(num) * way.channels, 0.0F);
  const float* panel = way.panels;
  for (i32 tap = 0; tap < readers.num_taps(); ++tap) {
    senders.find(readers, tap, first, end, way.gradients);
    const size_t num_rows = senders.rows.size();
    for (i32 c = 0; c < way.channels; c += kTileColumns, panel += panel_floats) {
      size_t i = 0;
      for (; i + 6 <= num_rows; i += 6) input_tile<6>(senders, i, way, panel, way.below + c);
      for (; i + 3 <= num_rows; i += 3) input_tile<3>(senders, i, way, panel, way.below + c);
      for (; i < num_rows; ++i) input_tile<1>(senders, i, way, panel, way.below + c);
    }
  }
  for (i32 c = 0; c < way.channels; c += kTileColumns)
    pass_columns(num, way.channels, way.inputs + begin + c, way.below + begin + c);
}

}  // namespace scanline
