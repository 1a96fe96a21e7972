// place_dense_avx2.cpp -- see place_dense.h. Compiled for AVX2 and FMA; entered only where they
// are.
#include <algorithm>
#include <cstring>

#include "outputs_avx2.h"
#include "pack_avx2.h"
#include "place_dense.h"
#include "tiles_avx2.h"
#include "workers.h"

namespace scanline {

// Pairs of one place on their way back.
struct PlacePairs {
  i32 num;
  const float* const* outputs;    // what stands there
  const float* const* gradients;  // by unit
};

namespace {

constexpr i32 kPicturesPerJob = 4;
constexpr i32 kPlacesPerJob = 5;

// Rows a power of two apart would share few places of the caches: a line is left between them.
i32 padded(i32 floats) { return floats + 16; }

// Sixteen sums of kRows rows: `num` floats of each, times columns that lie `stride` apart.
template <i32 kRows>
__attribute__((noinline)) void put_products(const float* const* from, i32 num, const float* columns,
                                            i64 stride, float* const* to) {
  Tile<kRows> tile;
  tile.clear();
  const float* rows[kRows];
  std::copy_n(from, kRows, rows);
  add_products(tile, rows, num, columns, stride);
#pragma GCC unroll 6
  for (i32 i = 0; i < kRows; ++i) {
    _mm256_storeu_ps(to[i], tile.low[i]);
    _mm256_storeu_ps(to[i] + 8, tile.high[i]);
  }
}

void put_products(i32 num_rows, const float* const* rows, i32 num, const float* columns, i64 stride,
                  float* const* to) {
  switch (num_rows) {
    case 6:
      return put_products<6>(rows, num, columns, stride, to);
    case 5:
      return put_products<5>(rows, num, columns, stride, to);
    case 4:
      return put_products<4>(rows, num, columns, stride, to);
    case 3:
      return put_products<3>(rows, num, columns, stride, to);
    case 2:
      return put_products<2>(rows, num, columns, stride, to);
    default:
      return put_products<1>(rows, num, columns, stride, to);
  }
}

// A matrix by sixteen columns: its rows lie `row_stride` apart, the next columns `next_columns`.
struct Columns {
  const float* first;
  i32 num_rows;
  i64 row_stride;
  i32 num_columns;
  i64 next_columns;
  const float* ahead = nullptr;  // a matrix of the same size that will be needed next
};

// As much of the matrix ahead as has sixteen columns is on its way, in the order of memory: columns
// that lie far apart are not seen coming by the processor.
void fetch_ahead(const Columns& columns, i32 column) {
  if (columns.ahead == nullptr) return;
  const float* const from = columns.ahead + static_cast<i64>(column) * columns.num_rows;
  for (i32 i = 0; i < columns.num_rows; ++i)
    _mm_prefetch(reinterpret_cast<const char*>(from + i * kTileColumns), _MM_HINT_T1);
}

// Rows times a matrix, in tiles of nearly equal size, to the places to[i].
void multiply_rows(const std::vector<const float*>& rows, const std::vector<float*>& to,
                   const Columns& columns) {
  const i32 end = static_cast<i32>(rows.size());
  const float* from = columns.first;
  for (i32 c = 0; c < columns.num_columns; c += kTileColumns, from += columns.next_columns) {
    fetch_ahead(columns, c);
    i32 first = 0;
    for (i32 tiles = num_parts(end, kTileRows); tiles > 0; --tiles) {
      const i32 some = num_parts(end - first, tiles);
      float* places[kTileRows];
      for (i32 i = 0; i < some; ++i) places[i] = to[static_cast<size_t>(first + i)] + c;
      put_products(some, rows.data() + first, columns.num_rows, from, columns.row_stride, places);
      first += some;
    }
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
  for (i32 i = 0; i < kEights; ++i)
    _mm256_storeu_ps(row + 8 * i, _mm256_max_ps(sums[i], _mm256_setzero_ps()));
}

// Gradients of sixteen units for kInputs floats of a place's outputs.
template <i32 kInputs>
__attribute__((noinline)) void weight_tile(const PlacePairs& pairs, i32 input, i32 unit, i64 stride,
                                           bool adds, float* to) {
  Tile<kInputs> tile;
  tile.clear();
  tile = outer_products(
      tile, pairs.num, [=](i32 pair) { return pairs.outputs[pair] + input; },
      [=](i32 pair) { return pairs.gradients[pair] + unit; });
#pragma GCC unroll 6
  for (i32 i = 0; i < kInputs; ++i, to += stride) {
    if (adds) {
      add_to(to, tile.low[i]);
      add_to(to + 8, tile.high[i]);
    } else {
      _mm256_storeu_ps(to, tile.low[i]);
      _mm256_storeu_ps(to + 8, tile.high[i]);
    }
  }
}

// What a thread keeps from one place to the next.
struct Scratch {
  std::vector<const float*> outputs, gradients;
  std::vector<float*> places;  // where products go
  std::vector<float> sums;     // gradients of pairs that several pictures have
  std::vector<float> panels;   // the place's weights
};

thread_local Scratch scratch;

}  // namespace

struct PlaceDense::Way {
  i32 num_pictures;
  const float* outputs;
  DenseWeights dense;
  bool adds;
  DenseGradients gradients;
};

void PlaceDense::clear() {
  pairs_.clear();
  num_kept_ = 0;
  std::fill(num_multiplied_.begin(), num_multiplied_.end(), 0);
}

void PlaceDense::forward(const i32* numbers, i32 first, i32 num, i32 most_number,
                         const float* outputs, const DenseWeights& dense, float* rows) {
  pairs_.add(numbers, first, num, most_number);
  make_room(products_, pairs_.num(), padded(dense.units));
  run_jobs(
      num_parts(pairs_.num_places(), kPlacesPerJob),
      [&](i32 job) {
        const i32 end = std::min(pairs_.num_places(), (job + 1) * kPlacesPerJob);
        const i32 then = end + (layer_threads() - 1) * kPlacesPerJob;  // this thread's, probably
        for (i32 place = job * kPlacesPerJob; place < end; ++place)
          multiply(outputs, dense, place, place + 1 < end ? place + 1 : then);
      },
      size_of(num));
  run_jobs(
      num_parts(num, kPicturesPerJob),
      [&](i32 job) {
        const i32 end = std::min(num, (job + 1) * kPicturesPerJob);
        for (i32 i = job * kPicturesPerJob; i < end; ++i)
          sum_places(first + i, dense, rows + static_cast<i64>(i) * dense.units);
      },
      size_of(num));
}

// The row of one picture.
void PlaceDense::sum_places(i32 picture, const DenseWeights& dense, float* row) const {
  const auto sum = [&](auto kernel, i32 unit) {
    kernel(pairs_.of_picture(picture), pairs_.num_places(), products_.data() + unit,
           padded(dense.units), dense.biases + unit, row + unit);
  };
  i32 unit = 0;
  for (; unit + 64 <= dense.units; unit += 64) sum(sum_units<8>, unit);
  for (; unit < dense.units; unit += 16) sum(sum_units<2>, unit);
}

// Products of a place's weights with all pairs that are new. `next` is the place after this one.
void PlaceDense::multiply(const float* outputs, const DenseWeights& dense, i32 place, i32 next) {
  const std::vector<i32>& ids = pairs_.at(place);
  i32& num_done = num_multiplied_[static_cast<size_t>(place)];
  scratch.outputs.clear();
  scratch.places.clear();
  for (size_t i = static_cast<size_t>(num_done); i < ids.size(); ++i) {
    scratch.outputs.push_back(output_of(ids[i], outputs));
    scratch.places.push_back(products_.data() + static_cast<i64>(ids[i]) * padded(dense.units));
  }
  const auto weights = [&](i32 at) { return dense.weights + weights_at(at, dense.units); };
  multiply_rows(scratch.outputs, scratch.places,
                {weights(place), filters_, dense.units, dense.units, kTileColumns,
                 next < pairs_.num_places() ? weights(next) : nullptr});
  num_done = static_cast<i32>(ids.size());
}

void PlaceDense::backward(i32 num, const float* outputs, const DenseWeights& dense,
                          const float* rows, const float* row_gradients, bool adds,
                          const DenseGradients& gradients) {
  pass_rectifier(num, dense.units, rows, row_gradients);
  make_room(pair_gradients_, num_kept_, filters_);
  const Way way{num, outputs, dense, adds, gradients};
  run_jobs(
      pairs_.num_places() + 1,
      [&](i32 job) {
        if (job < pairs_.num_places()) return go_back(way, job);
        if (!adds) std::fill_n(gradients.biases, dense.units, 0.0F);
        add_rows(num, padded(dense.units), dense.units, passed_.data(), gradients.biases);
      },
      Size::kLarge);
}

void PlaceDense::pass_rectifier(i32 num, i32 units, const float* rows, const float* gradients) {
  make_room(passed_, num, padded(units));
  for (i32 i = 0; i < num; ++i) {
    const i64 from = static_cast<i64>(i) * units, to = static_cast<i64>(i) * padded(units);
    for (i32 u = 0; u < units; u += 8)
      _mm256_storeu_ps(passed_.data() + to + u,
                       passed(_mm256_loadu_ps(gradients + from + u), rows + from + u));
  }
}

// Everything that belongs to one place.
void PlaceDense::go_back(const Way& way, i32 place) {
  const std::vector<i32>& ids = pairs_.at(place);
  const i32 num =
      static_cast<i32>(std::lower_bound(ids.begin(), ids.end(), num_kept_) - ids.begin());
  scratch.outputs.clear();
  scratch.places.clear();
  for (i32 i = 0; i < num; ++i) {
    const i32 id = ids[static_cast<size_t>(i)];
    scratch.outputs.push_back(output_of(id, way.outputs));
    scratch.places.push_back(pair_gradients_.data() + static_cast<i64>(id) * filters_);
  }
  sum_gradients(way, place, num, scratch.gradients, scratch.sums);
  weight_gradients(way, place, {num, scratch.outputs.data(), scratch.gradients.data()});

  const i32 units = way.dense.units;
  make_room(scratch.panels, filters_, units);
  pack_rows(way.dense.weights + weights_at(place, units), filters_, units, scratch.panels.data());
  multiply_rows(scratch.gradients, scratch.places,
                {scratch.panels.data(), units, kTileColumns, filters_, units * kTileColumns});
}

void PlaceDense::weight_gradients(const Way& way, i32 place, const PlacePairs& pairs) const {
  const i32 units = way.dense.units, sixes = num_sixes(filters_);
  float* const to = way.gradients.weights + weights_at(place, units);
  for (i32 unit = 0; unit < units; unit += kTileColumns) {
    for (i32 k = 0; k < filters_; ++k)  // the next columns' lines, which lie far apart
      _mm_prefetch(reinterpret_cast<const char*>(to + k * units + unit + kTileColumns),
                   _MM_HINT_T0);
    i32 k = 0;
    for (; k < 6 * sixes; k += 6)
      weight_tile<6>(pairs, k, unit, units, way.adds, to + k * units + unit);
    for (; k < filters_; k += 4)
      weight_tile<4>(pairs, k, unit, units, way.adds, to + k * units + unit);
  }
}

// The gradients of a place's pairs: a picture's own, or the sum of all that have the pair.
void PlaceDense::sum_gradients(const Way& way, i32 place, i32 num,
                               std::vector<const float*>& gradients, Floats& sums) const {
  const i32 units = way.dense.units, stride = padded(units);
  make_room(sums, num + 1, stride);
  float* const nothing = sums.data() + static_cast<i64>(num) * stride;
  std::fill_n(nothing, units, 0.0F);
  gradients.assign(static_cast<size_t>(num), nothing);  // of pairs that only passing pictures had
  for (i32 i = 0; i < way.num_pictures; ++i) {
    const i32 slot = pairs_.slot(pairs_.of_picture(i)[place]);
    const float* const mine = passed_.data() + static_cast<i64>(i) * stride;
    const float*& known = gradients[static_cast<size_t>(slot)];
    if (known == nothing) {
      known = mine;
      continue;
    }
    float* const sum = sums.data() + static_cast<i64>(slot) * stride;
    for (i32 u = 0; u < units; u += 8)
      _mm256_storeu_ps(sum + u,
                       _mm256_add_ps(_mm256_loadu_ps(known + u), _mm256_loadu_ps(mine + u)));
    known = sum;
  }
}

}  // namespace scanline
