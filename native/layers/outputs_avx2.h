// outputs_avx2.h -- the sums over a layer's different outputs, forwards and backwards.
//
// Takes rows of floats by number (row 0 is border, zeros) and packed weights; gives rows, or adds
// to gradients of weights. Knows no picture and no thread.
// Included by files that are compiled for AVX2 and FMA only.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "readers.h"
#include "tiles_avx2.h"

namespace scanline {

// What outputs read: `num` rows per output, by number, of `floats` floats each.
struct Taps {
  const i32* numbers;
  i32 stride, num, floats;
  const float* rows;

  const i32* of(i32 output) const { return numbers + static_cast<i64>(output) * stride; }
  const float* row(i32 output, i32 tap) const {
    return rows + static_cast<i64>(of(output)[tap]) * floats;
  }
  i32 depth() const { return num * floats; }
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

template <i32 kRows>
void compute_tile(const Taps& taps, i32 first, i32 filters, const float* panel, const float* bias,
                  float* to) {
  alignas(32) float sums[kRows * kTileColumns];
  tap_products<kRows>([taps, first](i32 i, i32 tap) { return taps.row(first + i, tap); }, taps.num,
                      taps.floats, panel, sums);
  for (i32 i = 0; i < kRows; ++i)
    for (i32 k = 0; k < kTileColumns; k += 8) {
      const __m256 sum =
          _mm256_add_ps(_mm256_load_ps(sums + i * kTileColumns + k), _mm256_loadu_ps(bias + k));
      _mm256_storeu_ps(to + i * filters + k, _mm256_max_ps(sum, _mm256_setzero_ps()));
    }
}

// Rectified outputs first .. end.
inline void compute_outputs(const Taps& taps, i32 first, i32 end, i32 filters, const float* panels,
                            const float* biases, float* outputs) {
  for (i32 f = 0; f < filters; f += kTileColumns, panels += kTileColumns * taps.depth()) {
    const auto to = [&](i32 i) { return outputs + static_cast<i64>(i) * filters + f; };
    i32 i = first;
    for (; i + 6 <= end; i += 6) compute_tile<6>(taps, i, filters, panels, biases + f, to(i));
    for (; i + 3 <= end; i += 3) compute_tile<3>(taps, i, filters, panels, biases + f, to(i));
    for (; i < end; ++i) compute_tile<1>(taps, i, filters, panels, biases + f, to(i));
  }
}

// Adds to sums[f][k]: gradient of filter f times float k of a tap, over `num` outputs.
template <i32 kFilters>
void filter_tile(i32 num, const float* gradients, i32 filters, const float* const* columns,
                 i32 depth, float* sums) {
  Tile<kFilters> tile;
  tile.clear();
  tile = outer_products(
      tile, num, [=](i32 step) { return gradients + step * filters; },
      [=](i32 step) { return columns[step]; });
#pragma GCC unroll 6
  for (i32 i = 0; i < kFilters; ++i) {
    add_to(sums + i * depth, tile.low[i]);
    add_to(sums + i * depth + 8, tile.high[i]);
  }
}

// Sixteen columns of the weights' gradient, from `column` on, of outputs 1 .. num.
inline void add_filter_gradients(const Taps& taps, i32 num, i32 filters, i32 column,
                                 const float* gradients, float* sums) {
  constexpr i32 kAtOnce = 96;  // outputs whose taps and gradients stay in the first-level cache
  const i32 depth = taps.depth(), tap = column / taps.floats, at = column % taps.floats;
  const i32 sixes = num_sixes(filters);
  const float* columns[kAtOnce];
  for (i32 first = 1; first <= num; first += kAtOnce) {
    const i32 some = std::min(kAtOnce, num + 1 - first);
    for (i32 i = 0; i < some; ++i) columns[i] = taps.row(first + i, tap) + at;
    const float* const from = gradients + static_cast<i64>(first) * filters;
    const auto to = [&](i32 f) { return sums + static_cast<i64>(f) * depth + column; };
    i32 f = 0;
    for (; f < 6 * sixes; f += 6) filter_tile<6>(some, from + f, filters, columns, depth, to(f));
    for (; f < filters; f += 4) filter_tile<4>(some, from + f, filters, columns, depth, to(f));
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
  i32 filters, channels;
  const float* gradients;  // of the outputs
  const float* panels;     // per tap and sixteen channels: [filters][16]
  const float* inputs;     // what the rectifier below let through
  float* below;            // gradients of the inputs
};

// Inputs that one tap of some output reads, and the gradients that come from there.
struct Senders {
  std::vector<i32> inputs;
  std::vector<const float*> rows;
  std::vector<float> sums;  // where several outputs read one input with the same tap

  void find(const Readers& readers, i32 tap, i32 first, i32 end, i32 filters,
            const float* gradients) {
    inputs.clear();
    rows.clear();
    sums.resize(static_cast<size_t>(end - first) * static_cast<size_t>(filters));
    for (i32 input = first; input < end; ++input) {
      const i32 *reader = readers.begin(input, tap), *const last = readers.end(input, tap);
      if (reader == last) continue;
      const auto row = [&](i32 output) { return gradients + static_cast<i64>(output) * filters; };
      inputs.push_back(input);
      rows.push_back(row(*reader));
      if (last - reader == 1) continue;
      float* const sum = sums.data() + static_cast<i64>(input - first) * filters;
      std::memcpy(sum, row(*reader), static_cast<size_t>(filters) * sizeof(float));
      while (++reader != last)
        for (i32 f = 0; f < filters; f += 8) add_to(sum + f, _mm256_loadu_ps(row(*reader) + f));
      rows.back() = sum;
    }
  }
};

template <i32 kRows>
void input_tile(const Senders& senders, size_t first, const WayBack& way, const float* panel,
                float* below) {
  alignas(32) float sums[kRows * kTileColumns];
  row_products<kRows>(senders.rows.data() + first, way.filters, panel, sums);
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
  const i32 num = end - first;
  std::fill_n(way.below + begin, static_cast<i64>(num) * way.channels, 0.0F);
  const float* panel = way.panels;
  for (i32 tap = 0; tap < readers.num_taps(); ++tap) {
    senders.find(readers, tap, first, end, way.filters, way.gradients);
    const size_t num_rows = senders.rows.size();
    for (i32 c = 0; c < way.channels; c += kTileColumns, panel += kTileColumns * way.filters) {
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
