// pack_avx2.h -- matrices in the order in which the tiles read them.
//
// Takes rows of floats; gives panels of sixteen columns, or of sixteen rows turned into columns.
// Included by files that are compiled for AVX2 and FMA only.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "tiles_avx2.h"

namespace scanline {

// Room for `num` rows: what is there stays, what is new holds anything.
template <class T>
void make_room(std::vector<T>& rows, i32 num, i32 row_size) {
  const size_t needed = static_cast<size_t>(num) * static_cast<size_t>(row_size);
  if (rows.size() < needed) rows.resize(needed + needed / 2);
}

// Neighbouring columns of a matrix as panels of sixteen, each one row after the other. A row's
// columns are read at one go: the next row may be pages away.
inline void pack_columns(const float* matrix, i32 num_rows, i64 stride, i32 num_panels,
                         float* panels) {
  constexpr i32 kAhead = 8;
  for (i32 r = 0; r < num_rows; ++r)
    for (i32 p = 0; p < num_panels; ++p) {
      const float* const from = matrix + r * stride + p * kTileColumns;
      if (r + kAhead < num_rows)
        _mm_prefetch(reinterpret_cast<const char*>(from + kAhead * stride), _MM_HINT_T0);
      std::memcpy(panels + (p * num_rows + r) * kTileColumns, from, kTileColumns * sizeof(float));
    }
}

// Eight rows of eight floats, from `first` on, to eight columns: out[k * 16 + f] = rows[f][k].
inline void turn_eight(const float* const* rows, i32 first, float* out) {
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

// Rows of `num` floats by sixteen: [rows / 16][num][16].
inline void pack_lines(const std::vector<const float*>& rows, i32 num, float* panels) {
  for (size_t r = 0; r < rows.size(); r += kTileColumns)
    for (i32 k = 0; k < num; k += 8, panels += 8 * kTileColumns) {
      turn_eight(rows.data() + r, k, panels);
      turn_eight(rows.data() + r + 8, k, panels + 8);
    }
}

}  // namespace scanline
