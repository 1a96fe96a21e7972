// rows_avx2.h -- lists of product sums over one packed panel, and what happens to them.
//
// Takes places in memory, in floats; makes the sums in tiles of six. Knows no layer.
// Included by files that are compiled for AVX2 and FMA only.
#pragma once

#include <vector>

#include "conv_shape.h"
#include "tiles_avx2.h"

namespace scanline {

// A gradient passes where the activation was positive.
inline __m256 passed(__m256 gradient, const float* activation) {
  const __m256 open = _mm256_cmp_ps(_mm256_loadu_ps(activation), _mm256_setzero_ps(), _CMP_GT_OQ);
  return _mm256_and_ps(gradient, open);
}

inline void add_to(float* sum, __m256 more) {
  _mm256_storeu_ps(sum, _mm256_add_ps(_mm256_loadu_ps(sum), more));
}

// Product sums to be made: where each reads from and where it goes, and on the way back the
// activation that lets it pass.
struct Rows {
  std::vector<i32> from, to, mask;

  void clear() {
    from.clear();
    to.clear();
    mask.clear();
  }

  void add(i32 from_float, i32 to_float, i32 mask_float) {
    from.push_back(from_float);
    to.push_back(to_float);
    mask.push_back(mask_float);
  }
};

// What happens to a finished sum of sixteen columns.
struct AddBiasRectify {
  float* to;
  __m256 low, high;
  void operator()(const Rows& rows, size_t row, __m256 a, __m256 b) const {
    float* const mine = to + rows.to[row];
    _mm256_storeu_ps(mine, _mm256_max_ps(_mm256_add_ps(a, low), _mm256_setzero_ps()));
    _mm256_storeu_ps(mine + 8, _mm256_max_ps(_mm256_add_ps(b, high), _mm256_setzero_ps()));
  }
};

struct AddPassed {
  float* to;
  const float* activations;
  void operator()(const Rows& rows, size_t row, __m256 a, __m256 b) const {
    const float* const mask = activations + rows.mask[row];
    add_to(to + rows.to[row], passed(a, mask));
    add_to(to + rows.to[row] + 8, passed(b, mask + 8));
  }
};

template <i32 kRows, class Finish>
void sum_rows(const Stretches& sum, const Rows& rows, size_t first, const float* from,
              const float* panel, const Finish& finish) {
  alignas(32) float sums[kRows * kTileColumns];
  const float* starts[kRows];
  for (i32 i = 0; i < kRows; ++i) starts[i] = from + rows.from[first + static_cast<size_t>(i)];
  row_products<kRows>(starts, sum.num_runs, sum.run, sum.stride, panel, sums);
  for (i32 i = 0; i < kRows; ++i)
    finish(rows, first + static_cast<size_t>(i), _mm256_load_ps(sums + i * kTileColumns),
           _mm256_load_ps(sums + i * kTileColumns + 8));
}

// All rows for one panel of sixteen columns.
template <class Finish>
void sum_panel(const Stretches& sum, const Rows& rows, const float* from, const float* panel,
               const Finish& finish) {
  const size_t num = rows.from.size();
  size_t i = 0;
  for (; i + 6 <= num; i += 6) sum_rows<6>(sum, rows, i, from, panel, finish);
  for (; i + 3 <= num; i += 3) sum_rows<3>(sum, rows, i, from, panel, finish);
  for (; i < num; ++i) sum_rows<1>(sum, rows, i, from, panel, finish);
}

}  // namespace scanline
