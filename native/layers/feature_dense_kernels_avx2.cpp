// feature_dense_kernels_avx2.cpp -- the dense layer behind convolutions, one position at a time;
// see kernels.h.
#include "tiles_avx2.h"

namespace scanline {
namespace {

SCANLINE_INLINE i32 ceil_div(i32 a, i32 b) { return (a + b - 1) / b; }

// Prefetches rows of a matrix, some cache lines at a time, in the order of memory: the hardware
// prefetcher does not follow columns that are far apart.
class Prefetcher {
 public:
  Prefetcher(const float* const* rows, i64 num_rows, i32 floats)
      : rows_(rows), num_rows_(num_rows), lines_(floats / kTileColumns) {}

  void fetch(i64 num_lines) {
    for (; num_lines > 0 && row_ < num_rows_; --num_lines) {
      _mm_prefetch(reinterpret_cast<const char*>(rows_[row_] + line_ * kTileColumns), _MM_HINT_T1);
      if (++line_ < lines_) continue;
      line_ = 0;
      ++row_;
    }
  }

 private:
  const float* const* const rows_;
  const i64 num_rows_;
  const i32 lines_;
  i64 row_ = 0;
  i32 line_ = 0;
};

// Sixteen sums of kRows rows: `num` values of each, times columns that are `stride` apart.
template <i32 kRows>
__attribute__((noinline)) void put_products(const SparseRow* rows, i32 num, const float* columns,
                                            i64 stride, float* const* to) {
  Tile<kRows> tile;
  tile.clear();
  add_products(tile, rows, num, columns, stride);
#pragma GCC unroll 6
  for (i32 i = 0; i < kRows; ++i) {
    _mm256_storeu_ps(to[i], tile.low[i]);
    _mm256_storeu_ps(to[i] + 8, tile.high[i]);
  }
}

// Calls visit(first, num) for tiles of nearly equal size.
template <class Visit>
void for_each_tile(i32 end, const Visit& visit) {
  i32 first = 0;
  for (i32 tiles = ceil_div(end, kTileRows); tiles > 0; --tiles) {
    const i32 some = ceil_div(end - first, tiles);
    visit(first, some);
    first += some;
  }
}

// 8 * kEights units of one image: biases plus products of all positions, behind the ReLU.
template <i32 kEights>
void sum_units(const i32* pairs, i32 num_positions, const float* products, i64 stride,
               const float* biases, float* row) {
  __m256 sums[kEights];
#pragma GCC unroll 8
  for (i32 i = 0; i < kEights; ++i) sums[i] = _mm256_loadu_ps(biases + 8 * i);
  for (i32 position = 0; position < num_positions; ++position) {
    const float* const from = products + pairs[position] * stride;
#pragma GCC unroll 8
    for (i32 i = 0; i < kEights; ++i)
      sums[i] = _mm256_add_ps(sums[i], _mm256_loadu_ps(from + 8 * i));
  }
#pragma GCC unroll 8
  for (i32 i = 0; i < kEights; ++i) _mm256_storeu_ps(row + 8 * i, relu(sums[i]));
}

// Weight gradients of kInputs inputs and sixteen units.
template <i32 kInputs>
__attribute__((noinline)) void weight_tile(const PositionGradients& job, const i32* inputs,
                                           i32 unit, bool accumulate, float* weights) {
  Tile<kInputs> tile;
  tile.clear();
  i64 at[kInputs];
#pragma GCC unroll 6
  for (i32 i = 0; i < kInputs; ++i) at[i] = inputs[i];
  const SparseRow *output = job.outputs, *gradient = job.gradients;
  for (const SparseRow* const end = output + job.num; output < end; ++output, ++gradient) {
    const __m256 low = _mm256_loadu_ps(gradient->values + unit);
    const __m256 high = _mm256_loadu_ps(gradient->values + unit + 8);
    const float* const values = output->values;
#pragma GCC unroll 6
    for (i32 i = 0; i < kInputs; ++i) tile.add(i, _mm256_broadcast_ss(values + at[i]), low, high);
  }
#pragma GCC unroll 6
  for (i32 i = 0; i < kInputs; ++i) {
    float* const to = weights + at[i] * job.units + unit;
    if (accumulate) {
      add_to(to, tile.low[i]);
      add_to(to + 8, tile.high[i]);
    } else {
      _mm256_storeu_ps(to, tile.low[i]);
      _mm256_storeu_ps(to + 8, tile.high[i]);
    }
  }
}

// Gradients of kRows pairs at up to sixteen `inputs`.
template <i32 kRows>
void pair_tile(const SparseRow* gradients, i32 units, const float* panel, const i32* inputs,
               i32 num_inputs, float* const* to) {
  alignas(32) float sums[kRows * kTileColumns];
  row_products<kRows>(gradients, units, panel, sums);
  for (i32 i = 0; i < kRows; ++i)
    for (i32 k = 0; k < num_inputs; ++k) to[i][inputs[k]] = sums[i * kTileColumns + k];
}

}  // namespace

void multiply_position(const PositionProducts& job, float* products, i64 stride) {
  Prefetcher prefetcher(job.next_rows, job.num_next_rows, job.units);
  for (i32 unit = 0; unit < job.units; unit += kTileColumns) {
    prefetcher.fetch(job.num_next_rows);
    for_each_tile(job.num, [&](i32 first, i32 some) {
      float* to[kTileRows];
      for (i32 i = 0; i < some; ++i) to[i] = products + job.pairs[first + i] * stride + unit;
      with_rows(some, [&](auto num) {
        put_products<num>(job.rows + first, job.filters, job.weights + unit, job.units, to);
      });
    });
  }
}

void sum_positions(const i32* pairs, i32 num_positions, const float* products, i64 stride,
                   const float* biases, i32 units, float* row) {
  const auto sum = [&](auto kernel, i32 unit) {
    kernel(pairs, num_positions, products + unit, stride, biases + unit, row + unit);
  };
  i32 unit = 0;
  for (; unit + 64 <= units; unit += 64) sum(sum_units<8>, unit);
  for (; unit < units; unit += 16) sum(sum_units<2>, unit);
}

void relu_backward_row(i32 floats, const float* outputs, const float* gradients, float* to,
                       u64* nonzero) {
  for (i32 k = 0; k < floats; k += 8) {
    const __m256 gradient = relu_gradient(_mm256_loadu_ps(gradients + k), outputs + k);
    _mm256_storeu_ps(to + k, gradient);
    if (k % kMaskBits == 0) nonzero[k / kMaskBits] = 0;
    nonzero[k / kMaskBits] |= nonzero_bits(gradient) << k % kMaskBits;
  }
}

void position_weight_gradients(const PositionGradients& job, bool accumulate, float* weights) {
  for (i32 unit = 0; unit < job.units; unit += kTileColumns) {
    for (i32 i = 0; i < job.num_inputs; ++i)  // cache lines of the next columns
      _mm_prefetch(
          reinterpret_cast<const char*>(weights + job.inputs[i] * job.units + unit + kTileColumns),
          _MM_HINT_T0);
    for_each_tile(job.num_inputs, [&](i32 first, i32 some) {
      with_rows(some, [&](auto num_inputs) {
        weight_tile<num_inputs>(job, job.inputs + first, unit, accumulate, weights);
      });
    });
  }
}

void position_pair_gradients(const PositionGradients& job, const float* panels, float* const* to) {
  for (i32 k = 0; k < job.num_inputs; k += kTileColumns, panels += kTileColumns * job.units)
    for_each_tile(job.num, [&](i32 first, i32 some) {
      with_rows(some, [&](auto num_rows) {
        pair_tile<num_rows>(job.gradients + first, job.units, panels, job.inputs + k,
                            min_of(kTileColumns, job.num_inputs - k), to + first);
      });
    });
}

}  // namespace scanline
