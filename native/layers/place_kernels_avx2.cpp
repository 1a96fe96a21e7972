// place_kernels_avx2.cpp -- the dense layer behind convolutions, place by place; see kernels.h.
#include "tiles_avx2.h"

namespace scanline {
namespace {

SCANLINE_INLINE i32 parts(i32 whole, i32 part) { return (whole + part - 1) / part; }

// Brings rows of a matrix nearer, some lines at a time and in the order of memory: columns that lie
// far apart are not seen coming by the processor.
class Fetcher {
 public:
  Fetcher(const float* const* rows, i64 num_rows, i32 floats)
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

// Sixteen sums of kRows rows: `num` floats of each, times columns that lie `stride` apart.
template <i32 kRows>
__attribute__((noinline)) void put_products(const MarkedRow* rows, i32 num, const float* columns,
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
  for (i32 tiles = parts(end, kTileRows); tiles > 0; --tiles) {
    const i32 some = parts(end - first, tiles);
    visit(first, some);
    first += some;
  }
}

// 8 * kEights rectified sums of one picture over all places, from the biases on.
template <i32 kEights>
void sum_units(const i32* ids, i32 num_places, const float* products, i64 stride,
               const float* biases, float* row) {
  __m256 sums[kEights];
#pragma GCC unroll 8
  for (i32 i = 0; i < kEights; ++i) sums[i] = _mm256_loadu_ps(biases + 8 * i);
  for (i32 place = 0; place < num_places; ++place) {
    const float* const from = products + ids[place] * stride;
#pragma GCC unroll 8
    for (i32 i = 0; i < kEights; ++i)
      sums[i] = _mm256_add_ps(sums[i], _mm256_loadu_ps(from + 8 * i));
  }
#pragma GCC unroll 8
  for (i32 i = 0; i < kEights; ++i) _mm256_storeu_ps(row + 8 * i, rectified(sums[i]));
}

// Gradients of sixteen units for kInputs floats of a place's outputs, to rows of the weights.
template <i32 kInputs>
__attribute__((noinline)) void weight_tile(const PlaceGradients& pairs, const i32* inputs, i32 unit,
                                           bool adds, float* weights) {
  Tile<kInputs> tile;
  tile.clear();
  i64 at[kInputs];
#pragma GCC unroll 6
  for (i32 i = 0; i < kInputs; ++i) at[i] = inputs[i];
  const MarkedRow *output = pairs.outputs, *gradient = pairs.gradients;
  for (const MarkedRow* const end = output + pairs.num; output < end; ++output, ++gradient) {
    const __m256 low = _mm256_loadu_ps(gradient->floats + unit);
    const __m256 high = _mm256_loadu_ps(gradient->floats + unit + 8);
    const float* const values = output->floats;
#pragma GCC unroll 6
    for (i32 i = 0; i < kInputs; ++i) tile.add(i, _mm256_broadcast_ss(values + at[i]), low, high);
  }
#pragma GCC unroll 6
  for (i32 i = 0; i < kInputs; ++i) {
    float* const to = weights + at[i] * pairs.units + unit;
    if (adds) {
      add_to(to, tile.low[i]);
      add_to(to + 8, tile.high[i]);
    } else {
      _mm256_storeu_ps(to, tile.low[i]);
      _mm256_storeu_ps(to + 8, tile.high[i]);
    }
  }
}

// Sixteen gradients of kRows pairs, to those of their floats that `inputs` names.
template <i32 kRows>
void pair_tile(const MarkedRow* gradients, i32 units, const float* panel, const i32* inputs,
               i32 num_inputs, float* const* to) {
  alignas(32) float sums[kRows * kTileColumns];
  row_products<kRows>(gradients, units, panel, sums);
  for (i32 i = 0; i < kRows; ++i)
    for (i32 k = 0; k < num_inputs; ++k) to[i][inputs[k]] = sums[i * kTileColumns + k];
}

}  // namespace

void multiply_place(const PlaceProducts& job, float* products, i64 stride) {
  Fetcher fetcher(job.next_lines, job.num_lines, job.units);
  for (i32 unit = 0; unit < job.units; unit += kTileColumns) {
    fetcher.fetch(job.num_lines);
    for_each_tile(job.num, [&](i32 first, i32 some) {
      float* to[kTileRows];
      for (i32 i = 0; i < some; ++i) to[i] = products + job.ids[first + i] * stride + unit;
      with_rows(some, [&](auto num) {
        put_products<num>(job.rows + first, job.filters, job.weights + unit, job.units, to);
      });
    });
  }
}

void sum_places(const i32* ids, i32 num_places, const float* products, i64 stride,
                const float* biases, i32 units, float* row) {
  const auto sum = [&](auto kernel, i32 unit) {
    kernel(ids, num_places, products + unit, stride, biases + unit, row + unit);
  };
  i32 unit = 0;
  for (; unit + 64 <= units; unit += 64) sum(sum_units<8>, unit);
  for (; unit < units; unit += 16) sum(sum_units<2>, unit);
}

void pass_row(i32 floats, const float* outputs, const float* gradients, float* passed_row,
              u64* present) {
  for (i32 k = 0; k < floats; k += 8) {
    const __m256 gradient = passed(_mm256_loadu_ps(gradients + k), outputs + k);
    _mm256_storeu_ps(passed_row + k, gradient);
    if (k % kMarksPerWord == 0) present[k / kMarksPerWord] = 0;
    present[k / kMarksPerWord] |= marks_of(gradient) << k % kMarksPerWord;
  }
}

void place_weight_gradients(const PlaceGradients& job, bool adds, float* weights) {
  for (i32 unit = 0; unit < job.units; unit += kTileColumns) {
    for (i32 i = 0; i < job.num_inputs; ++i)  // the next columns' lines, which lie far apart
      _mm_prefetch(
          reinterpret_cast<const char*>(weights + job.inputs[i] * job.units + unit + kTileColumns),
          _MM_HINT_T0);
    for_each_tile(job.num_inputs, [&](i32 first, i32 some) {
      with_rows(some, [&](auto num_inputs) {
        weight_tile<num_inputs>(job, job.inputs + first, unit, adds, weights);
      });
    });
  }
}

void place_pair_gradients(const PlaceGradients& job, const float* panels, float* const* to) {
  for (i32 k = 0; k < job.num_inputs; k += kTileColumns, panels += kTileColumns * job.units)
    for_each_tile(job.num, [&](i32 first, i32 some) {
      with_rows(some, [&](auto num_rows) {
        pair_tile<num_rows>(job.gradients + first, job.units, panels, job.inputs + k,
                            least(kTileColumns, job.num_inputs - k), to + first);
      });
    });
}

}  // namespace scanline
