// dense_kernels_avx2.cpp -- dense layers; see kernels.h.
//
// Forward, a tile is four rows times three units, summed along the inputs, so that weights need no
// packing. Backward, sixteen inputs at a time are packed into panels; one tile kernel computes the
// gradients of the rows, another those of the weights.
#include <cstring>

#include "tiles_avx2.h"

namespace scanline {
namespace {

constexpr i32 kRowsAtOnce = 64;  // rows and inputs of a block: half of the L2 cache
constexpr i32 kInputsAtOnce = 392;

float sum_of(__m256 v) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

// sums[r * kUnits + u] of kRows rows and kUnits units along `num` inputs. Prefetches as many
// weights from `ahead`, unless it is null: their rows are too short for the hardware prefetcher.
template <i32 kRows, i32 kUnits>
__attribute__((noinline)) void dot_products(const float* rows, const float* weights, i32 stride,
                                            i32 num, const float* ahead, float* sums) {
  __m256 tile[kRows * kUnits];
#pragma GCC unroll 12
  for (i32 i = 0; i < kRows * kUnits; ++i) tile[i] = _mm256_setzero_ps();
  for (i32 k = 0; k < num; k += 8) {
    if (ahead) _mm_prefetch(reinterpret_cast<const char*>(ahead + k), _MM_HINT_T1);
    __m256 weight[kUnits];
#pragma GCC unroll 3
    for (i32 u = 0; u < kUnits; ++u) weight[u] = _mm256_loadu_ps(weights + u * stride + k);
#pragma GCC unroll 4
    for (i32 r = 0; r < kRows; ++r) {
      const __m256 row = _mm256_loadu_ps(rows + r * stride + k);
#pragma GCC unroll 3
      for (i32 u = 0; u < kUnits; ++u)
        tile[r * kUnits + u] = _mm256_fmadd_ps(row, weight[u], tile[r * kUnits + u]);
    }
  }
#pragma GCC unroll 12
  for (i32 i = 0; i < kRows * kUnits; ++i) sums[i] = sum_of(tile[i]);
}

// The units of a job and a block of `num` of their inputs.
struct Block {
  const float* weights;
  i32 num_units, num;
  const float* next;  // weights of the next block, or null
  i32 num_ahead = 0;  // units whose weights of the next block are prefetched

  // The weights of the next block of one more unit, or null.
  const float* ahead(i64 inputs) {
    return next && num_ahead < num_units ? next + num_ahead++ * inputs : nullptr;
  }
};

template <i32 kRows, i32 kUnits>
void add_dots(const DenseUnits& shape, const float* rows, Block& block, i32 unit, float* out) {
  float sums[kRows * kUnits];
  const float* const weights = block.weights + static_cast<i64>(unit) * shape.inputs;
  dot_products<kRows, kUnits>(rows, weights, shape.inputs, block.num, block.ahead(shape.inputs),
                              sums);
  for (i32 r = 0; r < kRows; ++r)
    for (i32 u = 0; u < kUnits; ++u) out[r * shape.units + unit + u] += sums[r * kUnits + u];
}

template <i32 kRows>
void add_units(const DenseUnits& shape, const float* rows, Block& block, float* out) {
  i32 u = 0;
  for (; u + 3 <= block.num_units; u += 3) add_dots<kRows, 3>(shape, rows, block, u, out);
  for (; u < block.num_units; ++u) add_dots<kRows, 1>(shape, rows, block, u, out);
}

template <i32 kRows>
void row_gradient_tile(i32 units, i64 inputs, const float* gradients, const float* panel,
                       bool accumulate, float* to) {
  alignas(32) float sums[kRows * kTileColumns];
  const float* rows[kRows];
  for (i32 i = 0; i < kRows; ++i) rows[i] = gradients + static_cast<i64>(i) * units;
  row_products<kRows>(rows, units, panel, sums);
  for (i32 i = 0; i < kRows; ++i, to += inputs)
    for (i32 k = 0; k < kTileColumns; ++k)
      to[k] = (accumulate ? to[k] : 0.0F) + sums[i * kTileColumns + k];
}

template <i32 kUnits>
__attribute__((noinline)) void weight_gradient_tile(const float* values, const float* panel,
                                                    i32 num, i64 stride, float* to) {
  Tile<kUnits> tile;
  tile.clear();
  tile = outer_products(
      tile, num, [=](i32 row) { return values + row * kUnits; },
      [=](i32 row) { return panel + row * kTileColumns; });
#pragma GCC unroll 6
  for (i32 i = 0; i < kUnits; ++i) {
    _mm256_storeu_ps(to + i * stride, tile.low[i]);
    _mm256_storeu_ps(to + i * stride + 8, tile.high[i]);
  }
}

}  // namespace

void dense_units(const DenseUnits& job, const float* rows, const float* weights,
                 const float* biases, float* out) {
  const float* const mine = weights + static_cast<i64>(job.first) * job.inputs;
  const auto to = [&](i32 at) { return out + static_cast<i64>(at) * job.units + job.first; };
  for (i32 r = 0; r < job.num; ++r)
    std::memcpy(to(r), biases + job.first,
                static_cast<unsigned long>(job.num_units) * sizeof(float));
  for (i32 r_first = 0; r_first < job.num; r_first += kRowsAtOnce) {
    const i32 end = min_of(job.num, r_first + kRowsAtOnce);
    for (i32 k = 0; k < job.inputs; k += kInputsAtOnce) {
      const i32 num = min_of(kInputsAtOnce, job.inputs - k);
      const bool ends = k + num == job.inputs;
      Block block{mine + k, job.num_units, num,
                  ends ? (end < job.num ? mine : job.next) : mine + k + num};
      i32 r = r_first;
      const auto row = [&](i32 at) { return rows + static_cast<i64>(at) * job.inputs + k; };
      for (; r + 4 <= end; r += 4) add_units<4>(job, row(r), block, to(r));
      for (; r < end; ++r) add_units<1>(job, row(r), block, to(r));
    }
  }
  if (!job.relu) return;
  for (i32 r = 0; r < job.num; ++r) {
    float* const sums = to(r);
    for (i32 u = 0; u < job.num_units; ++u) sums[u] = sums[u] < 0.0F ? 0.0F : sums[u];
  }
}

void row_gradient_panels(i32 num, i32 units, i64 inputs, const float* gradients,
                         const float* panels, i32 num_panels, bool accumulate, float* to) {
  const auto put = [&](auto kernel, i32 r, i32 p) {
    kernel(units, inputs, gradients + static_cast<i64>(r) * units,
           panels + p * units * kTileColumns, accumulate, to + r * inputs + p * kTileColumns);
  };
  const i32 sixes = num_sixes(num);
  for (i32 p = 0; p < num_panels; ++p) {
    i32 r = 0;
    for (; r < 6 * sixes; r += 6) put(row_gradient_tile<6>, r, p);
    for (; r + 4 <= num; r += 4) put(row_gradient_tile<4>, r, p);
    for (; r < num; ++r) put(row_gradient_tile<1>, r, p);
  }
}

void weight_gradient_panels(i32 num, i32 units, i64 inputs, const float* tiles, const float* panels,
                            i32 num_panels, float* to) {
  for (i32 u = 0; u < units; u += tile_units(u, units)) {
    const float* const values = tiles + static_cast<i64>(u) * num;
    for (i32 p = 0; p < num_panels; ++p) {
      const float* const panel = panels + p * num * kTileColumns;
      float* const mine = to + u * inputs + p * kTileColumns;
      switch (tile_units(u, units)) {
        case 6:
          weight_gradient_tile<6>(values, panel, num, inputs, mine);
          break;
        case 4:
          weight_gradient_tile<4>(values, panel, num, inputs, mine);
          break;
        default:
          weight_gradient_tile<1>(values, panel, num, inputs, mine);
      }
    }
  }
}

}  // namespace scanline
