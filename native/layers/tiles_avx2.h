// tiles_avx2.h -- register tiles: the inner loops of all layers.
//
// Takes pointers; adds products. A tile of six rows and sixteen columns is twelve registers of
// eight sums; with two registers of columns and one broadcast value they fill the sixteen AVX2
// registers. Six broadcasts feed twelve multiply-adds, so the multiply-adds and not the loads are
// the limit. Included only by files that are compiled for AVX2 and FMA; everything is in an unnamed
// namespace.
#pragma once

#include <immintrin.h>

#include "kernels.h"

namespace scanline {
namespace {

template <i32 kNumber>
struct Constant {
  constexpr operator i32() const { return kNumber; }
};

SCANLINE_INLINE i32 min_of(i32 a, i32 b) { return b < a ? b : a; }

// Calls call(rows) with the number of rows as a compile-time constant.
template <class Call>
inline void with_rows(i32 num, const Call& call) {
  switch (num) {
    case 6:
      return call(Constant<6>());
    case 5:
      return call(Constant<5>());
    case 4:
      return call(Constant<4>());
    case 3:
      return call(Constant<3>());
    case 2:
      return call(Constant<2>());
    default:
      return call(Constant<1>());
  }
}

template <i32 kRows>
struct Tile {
  __m256 low[kRows], high[kRows];

  void clear() {
#pragma GCC unroll 6
    for (i32 i = 0; i < kRows; ++i) low[i] = high[i] = _mm256_setzero_ps();
  }

  void store(float* sums) const {
#pragma GCC unroll 6
    for (i32 i = 0; i < kRows; ++i) {
      _mm256_store_ps(sums + i * kTileColumns, low[i]);
      _mm256_store_ps(sums + i * kTileColumns + 8, high[i]);
    }
  }

  // One product: row i gets value[i] times sixteen columns.
  void add(i32 i, __m256 value, __m256 low_columns, __m256 high_columns) {
    low[i] = _mm256_fmadd_ps(value, low_columns, low[i]);
    high[i] = _mm256_fmadd_ps(value, high_columns, high[i]);
  }
};

// Adds to a tile: `num` values of every row, value k times the sixteen columns at k * stride.
// Skips values that are zero in all rows.
template <i32 kRows>
inline void add_products(Tile<kRows>& tile, const SparseRow* rows, i32 num, const float* columns,
                         i64 stride) {
  for (i32 first = 0; first < num; first += kMaskBits, columns += kMaskBits * stride) {
    const float* from[kRows];
    u64 nonzero = 0;
#pragma GCC unroll 6
    for (i32 i = 0; i < kRows; ++i) {
      from[i] = rows[i].values + first;
      nonzero |= rows[i].nonzero[first / kMaskBits];
    }
    for_each_set_bit(nonzero, [&](i64 k) {
      const __m256 low = _mm256_loadu_ps(columns + k * stride);
      const __m256 high = _mm256_loadu_ps(columns + k * stride + 8);
#pragma GCC unroll 6
      for (i32 i = 0; i < kRows; ++i) tile.add(i, _mm256_broadcast_ss(from[i] + k), low, high);
    });
  }
}

// Sums of kRows rows over `num_taps` taps of `num` values, times a packed panel of sixteen columns,
// into sums[i * 16 ...]. `row_at(i, tap)` gives the tap of a row. Not inlined: next to other code
// the compiler would keep the tile in memory.
template <i32 kRows, class RowAt>
__attribute__((noinline)) void tap_products(const RowAt& row_at, i32 num_taps, i32 num,
                                            const float* panel, float* sums) {
  Tile<kRows> tile;
  tile.clear();
  for (i32 tap = 0; tap < num_taps; ++tap, panel += num * kTileColumns) {
    SparseRow row[kRows];
#pragma GCC unroll 6
    for (i32 i = 0; i < kRows; ++i) row[i] = row_at(i, tap);
    add_products(tile, row, num, panel, kTileColumns);
  }
  tile.store(sums);
}

// The same for rows of one tap.
template <i32 kRows>
void row_products(const SparseRow* rows, i32 num, const float* panel, float* sums) {
  tap_products<kRows>([rows](i32 i, i32) { return rows[i]; }, 1, num, panel, sums);
}

// The same for dense rows.
template <i32 kRows>
__attribute__((noinline)) void row_products(const float* const* from, i32 num, const float* panel,
                                            float* sums) {
  Tile<kRows> tile;
  tile.clear();
  const float* rows[kRows];
#pragma GCC unroll 6
  for (i32 i = 0; i < kRows; ++i) rows[i] = from[i];
#pragma GCC unroll 4
  for (i32 k = 0; k < num; ++k, panel += kTileColumns) {
    const __m256 low = _mm256_loadu_ps(panel), high = _mm256_loadu_ps(panel + 8);
#pragma GCC unroll 6
    for (i32 i = 0; i < kRows; ++i) tile.add(i, _mm256_broadcast_ss(rows[i] + k), low, high);
  }
  tile.store(sums);
}

// Adds over `num` steps: `kRows` neighbouring values times sixteen columns. `values` and `columns`
// give the addresses of a step.
template <i32 kRows, class Values, class Columns>
inline Tile<kRows> outer_products(Tile<kRows> tile, i32 num, const Values& values,
                                  const Columns& columns) {
  for (i32 step = 0; step < num; ++step) {
    const float* const value = values(step);
    const float* const column = columns(step);
    const __m256 low = _mm256_loadu_ps(column);
    const __m256 high = _mm256_loadu_ps(column + 8);
#pragma GCC unroll 6
    for (i32 i = 0; i < kRows; ++i) tile.add(i, _mm256_broadcast_ss(value + i), low, high);
  }
  return tile;
}

SCANLINE_INLINE void add_to(float* sum, __m256 more) {
  _mm256_storeu_ps(sum, _mm256_add_ps(_mm256_loadu_ps(sum), more));
}

// max(0, x), and NaN where x is NaN: of unordered operands the second one is taken.
SCANLINE_INLINE __m256 relu(__m256 x) { return _mm256_max_ps(_mm256_setzero_ps(), x); }

// The gradient where the output was positive or NaN, else zero.
SCANLINE_INLINE __m256 relu_gradient(__m256 gradient, const float* output) {
  const __m256 open = _mm256_cmp_ps(_mm256_loadu_ps(output), _mm256_setzero_ps(), _CMP_NLE_UQ);
  return _mm256_and_ps(gradient, open);
}

SCANLINE_INLINE u64 nonzero_bits(__m256 floats) {
  return static_cast<u64>(
      _mm256_movemask_ps(_mm256_cmp_ps(floats, _mm256_setzero_ps(), _CMP_NEQ_UQ)));
}

// All bits zero where a value is finite, not all zero elsewhere.
SCANLINE_INLINE __m256 zero_if_finite(__m256 floats) { return _mm256_sub_ps(floats, floats); }
SCANLINE_INLINE bool is_zero(__m256 bits) {
  const __m256i whole = _mm256_castps_si256(bits);
  return _mm256_testz_si256(whole, whole) != 0;
}

}  // namespace
}  // namespace scanline
