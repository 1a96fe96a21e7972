// dense_avx2.cpp -- see dense.h. Compiled for AVX2 and FMA; entered only where they are.
//
// Forwards a tile is four rows times three units, summed along the inputs, so that weights are
// read as they lie. Backwards sixteen inputs at a time are packed into panels: one tile kernel then
// serves the gradient of the rows, another that of the weights.
#include <algorithm>
#include <cstring>
#include <vector>

#include "dense.h"
#include "pack_avx2.h"
#include "tiles_avx2.h"
#include "workers.h"

namespace scanline {

namespace {

constexpr i32 kUnitsPerJob = 12;
constexpr i32 kRowsAtOnce = 64;  // rows and inputs of a block: half of the second-level cache
constexpr i32 kInputsAtOnce = 392;
constexpr i32 kPanelsPerJob = 4;

using Floats = std::vector<float>;

float sum_of(__m256 v) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

// sums[r * 3 + u] of kRows rows and kUnits units along `num` inputs. Meanwhile as many weights that
// will be needed soon are on their way, unless `ahead` is null: their rows are too short for the
// processor to see them coming.
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

// Units of a job, and the stretch of their inputs that is being summed.
struct Block {
  const float* weights;
  i32 num_units, num;
  const float* next;  // weights of the stretch that comes after this one, or null
  i32 num_ahead = 0;  // units whose next stretch is on its way

  // The next stretch of one more unit, or null.
  const float* ahead(i64 inputs) {
    return next && num_ahead < num_units ? next + num_ahead++ * inputs : nullptr;
  }
};

template <i32 kRows, i32 kUnits>
void add_dots(const DenseShape& shape, const float* rows, Block& block, i32 unit, float* out) {
  float sums[kRows * kUnits];
  const float* const weights = block.weights + static_cast<i64>(unit) * shape.inputs;
  dot_products<kRows, kUnits>(rows, weights, shape.inputs, block.num, block.ahead(shape.inputs),
                              sums);
  for (i32 r = 0; r < kRows; ++r)
    for (i32 u = 0; u < kUnits; ++u) out[r * shape.units + unit + u] += sums[r * kUnits + u];
}

template <i32 kRows>
void add_units(const DenseShape& shape, const float* rows, Block& block, float* out) {
  i32 u = 0;
  for (; u + 3 <= block.num_units; u += 3) add_dots<kRows, 3>(shape, rows, block, u, out);
  for (; u < block.num_units; ++u) add_dots<kRows, 1>(shape, rows, block, u, out);
}

// Units first .. first + num_units of all rows. `next` is where this thread will probably go on.
void forward_units(const DenseShape& shape, const float* rows, const float* weights,
                   const float* biases, i32 first, i32 num_units, const float* next, float* out) {
  for (i32 r = 0; r < shape.num; ++r)
    std::copy_n(biases + first, num_units, out + static_cast<i64>(r) * shape.units + first);
  for (i32 r_first = 0; r_first < shape.num; r_first += kRowsAtOnce) {
    const i32 end = std::min(shape.num, r_first + kRowsAtOnce);
    for (i32 k = 0; k < shape.inputs; k += kInputsAtOnce) {
      const i32 num = std::min(kInputsAtOnce, shape.inputs - k);
      const float* const mine = weights + static_cast<i64>(first) * shape.inputs;
      const bool ends = k + num == shape.inputs;
      Block block{mine + k, num_units, num,
                  ends ? (end < shape.num ? mine : next) : mine + k + num};
      i32 r = r_first;
      const auto row = [&](i32 at) { return rows + static_cast<i64>(at) * shape.inputs + k; };
      const auto to = [&](i32 at) { return out + static_cast<i64>(at) * shape.units + first; };
      for (; r + 4 <= end; r += 4) add_units<4>(shape, row(r), block, to(r));
      for (; r < end; ++r) add_units<1>(shape, row(r), block, to(r));
    }
  }
  if (!shape.rectified) return;
  for (i32 r = 0; r < shape.num; ++r) {
    float* mine = out + static_cast<i64>(r) * shape.units + first;
    for (i32 u = 0; u < num_units; ++u) mine[u] = std::max(mine[u], 0.0F);
  }
}

// The gradient behind the rectifier, by rows and by tiles of units.
struct Gradient {
  Floats rows;   // [num, units]
  Floats tiles;  // [units / size][num][size], sizes six, then four, then one
  i32 num_units, sixes;

  Gradient(const DenseShape& shape, const float* out, const float* gradients)
      : rows(static_cast<size_t>(shape.num) * static_cast<size_t>(shape.units)),
        tiles(rows.size()),
        num_units(shape.units),
        sixes(num_sixes(shape.units)) {
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = !shape.rectified || out[i] > 0.0F ? gradients[i] : 0.0F;
    for (i32 u = 0; u < shape.units; u += size_at(u))
      for (i32 r = 0; r < shape.num; ++r)
        std::copy_n(rows.data() + static_cast<i64>(r) * shape.units + u, size_at(u),
                    tiles.data() + static_cast<i64>(u) * shape.num + r * size_at(u));
  }

  i32 size_at(i32 unit) const { return unit < 6 * sixes ? 6 : num_units - unit >= 4 ? 4 : 1; }
};

template <i32 kRows>
void row_gradient_tile(const DenseShape& shape, const float* gradients, const float* panel,
                       bool adds, float* to) {
  alignas(32) float sums[kRows * kTileColumns];
  const float* rows[kRows];
  for (i32 i = 0; i < kRows; ++i) rows[i] = gradients + static_cast<i64>(i) * shape.units;
  row_products<kRows>(rows, shape.units, panel, sums);
  for (i32 i = 0; i < kRows; ++i, to += shape.inputs)
    for (i32 k = 0; k < kTileColumns; ++k)
      to[k] = (adds ? to[k] : 0.0F) + sums[i * kTileColumns + k];
}

void row_gradient_panels(const DenseShape& shape, const Gradient& gradient, const float* panels,
                         i32 num_panels, RowGradients wanted) {
  const auto panel = [&](i32 p) { return panels + p * shape.units * kTileColumns; };
  const auto from = [&](i32 at) {
    return gradient.rows.data() + static_cast<i64>(at) * shape.units;
  };
  const auto into = [&](i32 at, i32 p) {
    return wanted.rows + static_cast<i64>(at) * shape.inputs + p * kTileColumns;
  };
  const auto put = [&](auto kernel, i32 r, i32 p) {
    kernel(shape, from(r), panel(p), wanted.adds, into(r, p));
  };
  const i32 sixes = num_sixes(shape.num);
  for (i32 p = 0; p < num_panels; ++p) {
    i32 r = 0;
    for (; r < 6 * sixes; r += 6) put(row_gradient_tile<6>, r, p);
    for (; r + 4 <= shape.num; r += 4) put(row_gradient_tile<4>, r, p);
    for (; r < shape.num; ++r) put(row_gradient_tile<1>, r, p);
  }
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

void weight_gradient_panels(const DenseShape& shape, const Gradient& gradient, const float* panels,
                            i32 num_panels, float* to) {
  for (i32 u = 0; u < shape.units; u += gradient.size_at(u)) {
    const float* const values = gradient.tiles.data() + static_cast<i64>(u) * shape.num;
    for (i32 p = 0; p < num_panels; ++p) {
      const float* const panel = panels + p * shape.num * kTileColumns;
      float* const mine = to + static_cast<i64>(u) * shape.inputs + p * kTileColumns;
      switch (gradient.size_at(u)) {
        case 6:
          weight_gradient_tile<6>(values, panel, shape.num, shape.inputs, mine);
          break;
        case 4:
          weight_gradient_tile<4>(values, panel, shape.num, shape.inputs, mine);
          break;
        default:
          weight_gradient_tile<1>(values, panel, shape.num, shape.inputs, mine);
      }
    }
  }
}

void bias_gradients_of(const DenseShape& shape, const Gradient& gradient, float* to) {
  std::fill_n(to, shape.units, 0.0F);
  for (i32 r = 0; r < shape.num; ++r)
    for (i32 u = 0; u < shape.units; ++u)
      to[u] += gradient.rows[static_cast<size_t>(r) * static_cast<size_t>(shape.units) +
                             static_cast<size_t>(u)];
}

}  // namespace

const char* dense_refusal(i32 inputs) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return "the processor has no AVX2 or FMA";
  if (inputs % kTileColumns != 0) return "inputs must be a multiple of 16";
  return nullptr;
}

void dense_forward(const DenseShape& shape, const float* rows, const float* weights,
                   const float* biases, float* out) {
  run_jobs(
      num_parts(shape.units, kUnitsPerJob),
      [&](i32 job) {
        const i32 first = job * kUnitsPerJob, then = first + layer_threads() * kUnitsPerJob;
        const bool goes_on = then + kUnitsPerJob <= shape.units;
        forward_units(shape, rows, weights, biases, first,
                      std::min(kUnitsPerJob, shape.units - first),
                      goes_on ? weights + static_cast<i64>(then) * shape.inputs : nullptr, out);
      },
      size_of(shape.num));
}

void dense_backward(const DenseShape& shape, const float* rows, const float* weights,
                    const float* out, const float* out_gradients, RowGradients row_gradients,
                    float* weight_gradients, float* bias_gradients) {
  const Gradient gradient(shape, out, out_gradients);
  bias_gradients_of(shape, gradient, bias_gradients);
  const i32 columns = kPanelsPerJob * kTileColumns;
  run_jobs(
      num_parts(shape.inputs, columns),
      [&](i32 job) {
        static thread_local Floats panels;
        const i32 k = job * columns;
        const i32 num_panels = std::min(kPanelsPerJob, (shape.inputs - k) / kTileColumns);
        panels.resize(static_cast<size_t>(std::max(shape.num, shape.units) * columns));
        pack_columns(rows + k, shape.num, shape.inputs, num_panels, panels.data());
        weight_gradient_panels(shape, gradient, panels.data(), num_panels, weight_gradients + k);
        if (!row_gradients.rows) return;
        pack_columns(weights + k, shape.units, shape.inputs, num_panels, panels.data());
        row_gradient_panels(shape, gradient, panels.data(), num_panels,
                            {row_gradients.rows + k, row_gradients.adds});
      },
      size_of(shape.num));
}

}  // namespace scanline
