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
  std::vector<MarkedRow> outputs;    // what stands there
  std::vector<MarkedRow> gradients;  // by unit
  std::vector<i32> inputs;           // floats that one of the outputs at least has

  i32 num() const { return static_cast<i32>(outputs.size()); }
};

namespace {

constexpr i32 kPicturesPerJob = 4;
constexpr i32 kPlacesPerJob = 5;

// Rows a power of two apart would share few places of the caches: a line is left between them.
i32 padded(i32 floats) { return floats + 16; }

// Floats that one of the rows at least has.
void list_present(const std::vector<MarkedRow>& rows, i32 num_floats, std::vector<i32>& list) {
  list.clear();
  for (i32 first = 0; first < num_floats; first += kMarksPerWord) {
    u64 present = 0;
    for (const MarkedRow& row : rows) present |= row.present[first / kMarksPerWord];
    for_each_bit(present, [&](i64 k) { list.push_back(first + static_cast<i32>(k)); });
  }
}

// Brings rows of a matrix nearer, some lines at a time and in the order of memory: columns that lie
// far apart are not seen coming by the processor.
class Fetcher {
 public:
  Fetcher(const std::vector<const float*>& rows, i32 floats)
      : rows_(rows), lines_(floats / kTileColumns) {}

  void fetch(size_t num_lines) {
    for (; num_lines > 0 && row_ < rows_.size(); --num_lines) {
      _mm_prefetch(reinterpret_cast<const char*>(rows_[row_] + line_ * kTileColumns), _MM_HINT_T1);
      if (++line_ < lines_) continue;
      line_ = 0;
      ++row_;
    }
  }

 private:
  const std::vector<const float*>& rows_;
  const i32 lines_;
  size_t row_ = 0;
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
  for (i32 tiles = num_parts(end, kTileRows); tiles > 0; --tiles) {
    const i32 some = num_parts(end - first, tiles);
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
  for (i32 i = 0; i < kEights; ++i)
    _mm256_storeu_ps(row + 8 * i, _mm256_max_ps(sums[i], _mm256_setzero_ps()));
}

// Gradients of sixteen units for kInputs floats of a place's outputs, to rows of the weights.
template <i32 kInputs>
__attribute__((noinline)) void weight_tile(const PlacePairs& pairs, const i32* inputs, i32 unit,
                                           i64 stride, bool adds, float* weights) {
  Tile<kInputs> tile;
  tile.clear();
  i64 at[kInputs];
#pragma GCC unroll 6
  for (i32 i = 0; i < kInputs; ++i) at[i] = inputs[i];
  const MarkedRow *output = pairs.outputs.data(), *gradient = pairs.gradients.data();
  for (const MarkedRow* const end = output + pairs.num(); output < end; ++output, ++gradient) {
    const __m256 low = _mm256_loadu_ps(gradient->floats + unit);
    const __m256 high = _mm256_loadu_ps(gradient->floats + unit + 8);
    const float* const values = output->floats;
#pragma GCC unroll 6
    for (i32 i = 0; i < kInputs; ++i) tile.add(i, _mm256_broadcast_ss(values + at[i]), low, high);
  }
#pragma GCC unroll 6
  for (i32 i = 0; i < kInputs; ++i) {
    float* const to = weights + at[i] * stride + unit;
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

// What a thread keeps from one place to the next.
struct Scratch {
  PlacePairs pairs;
  std::vector<float*> places;       // where products go
  std::vector<const float*> lines;  // rows of the weights
  std::vector<float> sums;          // gradients of pairs that several pictures have
  std::vector<u64> marks;           // and which of them are not zero
  std::vector<float> panels;        // the place's weights
};

thread_local Scratch scratch;

}  // namespace

struct PlaceDense::Way {
  i32 num_pictures;
  MarkedRows outputs;
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
                         const MarkedRows& outputs, const DenseWeights& dense, float* rows) {
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
  for (i32 place = 0; place < pairs_.num_places(); ++place)
    num_multiplied_[static_cast<size_t>(place)] = static_cast<i32>(pairs_.at(place).size());
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

// Outputs of all pairs of a place that have no products yet.
void PlaceDense::list_new(const MarkedRows& outputs, i32 place,
                          std::vector<MarkedRow>& rows) const {
  const std::vector<i32>& ids = pairs_.at(place);
  rows.clear();
  for (size_t i = static_cast<size_t>(num_multiplied_[static_cast<size_t>(place)]); i < ids.size();
       ++i)
    rows.push_back(output_of(ids[i], outputs));
}

// Products of a place's weights with all pairs that are new. `next` is the place after this one.
void PlaceDense::multiply(const MarkedRows& outputs, const DenseWeights& dense, i32 place,
                          i32 next) {
  std::vector<MarkedRow>& rows = scratch.pairs.outputs;
  const i32 units = dense.units;
  scratch.lines.clear();
  if (next < pairs_.num_places()) {
    list_new(outputs, next, rows);
    list_present(rows, filters_, scratch.pairs.inputs);
    const float* const ahead = dense.weights + weights_at(next, units);
    for (const i32 k : scratch.pairs.inputs) scratch.lines.push_back(ahead + k * units);
  }
  Fetcher fetcher(scratch.lines, units);
  list_new(outputs, place, rows);
  const i32* const ids = pairs_.at(place).data() + num_multiplied_[static_cast<size_t>(place)];
  const float* const weights = dense.weights + weights_at(place, units);
  for (i32 unit = 0; unit < units; unit += kTileColumns) {
    fetcher.fetch(scratch.lines.size());
    for_each_tile(static_cast<i32>(rows.size()), [&](i32 first, i32 some) {
      float* to[kTileRows];
      for (i32 i = 0; i < some; ++i)
        to[i] = products_.data() + static_cast<i64>(ids[first + i]) * padded(units) + unit;
      with_rows(some, [&](auto num) {
        put_products<num>(rows.data() + first, filters_, weights + unit, units, to);
      });
    });
  }
}

void PlaceDense::backward(i32 num, const MarkedRows& outputs, const DenseWeights& dense,
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
  const i32 words = words_for(units);
  make_room(passed_, num, padded(units));
  passed_present_.assign(static_cast<size_t>(num) * static_cast<size_t>(words), 0);
  for (i32 i = 0; i < num; ++i) {
    const i64 from = static_cast<i64>(i) * units, to = static_cast<i64>(i) * padded(units);
    u64* const present = passed_present_.data() + static_cast<i64>(i) * words;
    for (i32 u = 0; u < units; u += 8) {
      const __m256 gradient = passed(_mm256_loadu_ps(gradients + from + u), rows + from + u);
      _mm256_storeu_ps(passed_.data() + to + u, gradient);
      present[u / kMarksPerWord] |= marks_of(gradient) << u % kMarksPerWord;
    }
  }
}

// Everything that belongs to one place.
void PlaceDense::go_back(const Way& way, i32 place) {
  PlacePairs& pairs = scratch.pairs;
  const std::vector<i32>& ids = pairs_.at(place);
  const i32 num =
      static_cast<i32>(std::lower_bound(ids.begin(), ids.end(), num_kept_) - ids.begin());
  pairs.outputs.clear();
  scratch.places.clear();
  for (i32 i = 0; i < num; ++i) {
    const i32 id = ids[static_cast<size_t>(i)];
    pairs.outputs.push_back(output_of(id, way.outputs));
    scratch.places.push_back(pair_gradients_.data() + static_cast<i64>(id) * filters_);
    std::fill_n(scratch.places.back(), filters_, 0.0F);
  }
  list_present(pairs.outputs, filters_, pairs.inputs);
  sum_gradients(way, place, pairs.gradients);
  weight_gradients(way, place, pairs);
  pair_gradients(way, place, pairs);
}

void PlaceDense::weight_gradients(const Way& way, i32 place, const PlacePairs& pairs) const {
  const i32 units = way.dense.units, num = static_cast<i32>(pairs.inputs.size());
  const i32* const inputs = pairs.inputs.data();
  float* const to = way.gradients.weights + weights_at(place, units);
  if (!way.adds) clear_absent(pairs.inputs, units, to);
  for (i32 unit = 0; unit < units; unit += kTileColumns) {
    for (const i32 k : pairs.inputs)  // the next columns' lines, which lie far apart
      _mm_prefetch(reinterpret_cast<const char*>(to + k * units + unit + kTileColumns),
                   _MM_HINT_T0);
    for_each_tile(num, [&](i32 first, i32 some) {
      with_rows(some, [&](auto num_inputs) {
        weight_tile<num_inputs>(pairs, inputs + first, unit, units, way.adds, to);
      });
    });
  }
}

// Rows of a place's gradient that no pair has anything for.
void PlaceDense::clear_absent(const std::vector<i32>& inputs, i32 units, float* gradients) const {
  size_t listed = 0;
  for (i32 k = 0; k < filters_; ++k) {
    if (listed < inputs.size() && inputs[listed] == k) {
      ++listed;
    } else {
      std::fill_n(gradients + static_cast<i64>(k) * units, units, 0.0F);
    }
  }
}

// Gradients of what stands at a place; where it is zero nobody asks for them.
void PlaceDense::pair_gradients(const Way& way, i32 place, const PlacePairs& pairs) const {
  const i32 units = way.dense.units, num = static_cast<i32>(pairs.inputs.size());
  const float* const weights = way.dense.weights + weights_at(place, units);
  scratch.lines.clear();
  for (const i32 k : pairs.inputs) scratch.lines.push_back(weights + k * units);
  while (scratch.lines.size() % kTileColumns != 0) scratch.lines.push_back(weights);
  make_room(scratch.panels, static_cast<i32>(scratch.lines.size()), units);
  pack_lines(scratch.lines, units, scratch.panels.data());
  const float* panel = scratch.panels.data();
  for (i32 k = 0; k < num; k += kTileColumns, panel += kTileColumns * units)
    for_each_tile(pairs.num(), [&](i32 first, i32 some) {
      with_rows(some, [&](auto num_rows) {
        pair_tile<num_rows>(pairs.gradients.data() + first, units, panel, pairs.inputs.data() + k,
                            std::min(kTileColumns, num - k), scratch.places.data() + first);
      });
    });
}

// The gradients of a place's pairs: a picture's own, or the sum of all that have the pair.
void PlaceDense::sum_gradients(const Way& way, i32 place, std::vector<MarkedRow>& gradients) const {
  const i32 units = way.dense.units, stride = padded(units), words = words_for(units);
  const i32 num = static_cast<i32>(scratch.pairs.outputs.size());
  make_room(scratch.sums, num + 1, stride);
  make_room(scratch.marks, num + 1, words);
  const auto sum_at = [&](i32 slot) {
    return scratch.sums.data() + static_cast<i64>(slot) * stride;
  };
  const auto marks_at = [&](i32 slot) {
    return scratch.marks.data() + static_cast<i64>(slot) * words;
  };
  const MarkedRow nothing{sum_at(num), marks_at(num)};  // of pairs that only passing pictures had
  std::fill_n(sum_at(num), units, 0.0F);
  std::fill_n(marks_at(num), words, 0);
  gradients.assign(static_cast<size_t>(num), nothing);
  for (i32 i = 0; i < way.num_pictures; ++i) {
    const i32 slot = pairs_.slot(pairs_.of_picture(i)[place]);
    const MarkedRow mine{passed_.data() + static_cast<i64>(i) * stride,
                         passed_present_.data() + static_cast<i64>(i) * words};
    MarkedRow& known = gradients[static_cast<size_t>(slot)];
    if (known.floats == nothing.floats) {
      known = mine;
      continue;
    }
    float* const sum = sum_at(slot);
    for (i32 u = 0; u < units; u += 8)
      _mm256_storeu_ps(sum + u, _mm256_add_ps(_mm256_loadu_ps(known.floats + u),
                                              _mm256_loadu_ps(mine.floats + u)));
    for (i32 w = 0; w < words; ++w) marks_at(slot)[w] = known.present[w] | mine.present[w];
    known = {sum, marks_at(slot)};
  }
}

}  // namespace scanline
