// place_dense.cpp -- see place_dense.h.
#include "place_dense.h"

#include <algorithm>

#include "kernels.h"
#include "room.h"
#include "workers.h"

namespace scanline {

// Pairs of one place on their way back.
struct PlacePairs {
  std::vector<MarkedRow> outputs;    // what stands there
  std::vector<MarkedRow> gradients;  // by unit
  std::vector<i32> inputs;           // floats that one of the outputs at least has

  PlaceGradients view(i32 units) const {
    return {outputs.data(), gradients.data(), static_cast<i32>(outputs.size()),
            units,          inputs.data(),    static_cast<i32>(inputs.size())};
  }
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
          sum_places(pairs_.of_picture(first + i), pairs_.num_places(), products_.data(),
                     padded(dense.units), dense.biases, dense.units,
                     rows + static_cast<i64>(i) * dense.units);
      },
      size_of(num));
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
  list_new(outputs, place, rows);
  const i32* const ids = pairs_.at(place).data() + num_multiplied_[static_cast<size_t>(place)];
  multiply_place({rows.data(), ids, static_cast<i32>(rows.size()), filters_, units,
                  dense.weights + weights_at(place, units), scratch.lines.data(),
                  static_cast<i64>(scratch.lines.size())},
                 products_.data(), padded(units));
}

void PlaceDense::backward(const Way& way, const float* rows, const float* row_gradients) {
  const i32 num = way.num_pictures, units = way.dense.units;
  pass_rectifier(way, rows, row_gradients);
  make_room(pair_gradients_, num_kept_, filters_);
  run_jobs(
      pairs_.num_places() + 1,
      [&](i32 job) {
        if (job < pairs_.num_places()) return go_back(way, job);
        if (!way.adds) std::fill_n(way.gradients.biases, units, 0.0F);
        add_rows(num, padded(units), units, passed_.data(), way.gradients.biases);
      },
      Size::kLarge);
}

void PlaceDense::pass_rectifier(const Way& way, const float* rows, const float* gradients) {
  const i32 units = way.dense.units, words = words_for(units);
  make_room(passed_, way.num_pictures, padded(units));
  make_room(passed_present_, way.num_pictures, words);
  for (i32 i = 0; i < way.num_pictures; ++i) {
    const i64 from = static_cast<i64>(i) * units;
    u64* const present = passed_present_.data() + static_cast<i64>(i) * words;
    pass_row(units, rows + from, gradients + from,
             passed_.data() + static_cast<i64>(i) * padded(units), present);
    if (way.marks_all) mark_all(units, present);
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
  const i32 units = way.dense.units;
  float* const to = way.gradients.weights + weights_at(place, units);
  if (!way.adds) clear_absent(pairs.inputs, units, to);
  place_weight_gradients(pairs.view(units), way.adds, to);
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
  const i32 units = way.dense.units;
  const float* const weights = way.dense.weights + weights_at(place, units);
  scratch.lines.clear();
  for (const i32 k : pairs.inputs) scratch.lines.push_back(weights + k * units);
  while (scratch.lines.size() % kTileColumns != 0) scratch.lines.push_back(weights);
  const i64 num_lines = static_cast<i64>(scratch.lines.size());
  make_room(scratch.panels, static_cast<i32>(num_lines), units);
  pack_lines(scratch.lines.data(), num_lines, units, scratch.panels.data());
  place_pair_gradients(pairs.view(units), scratch.panels.data(), scratch.places.data());
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
    sum_rows(known.floats, mine.floats, units, sum);
    for (i32 w = 0; w < words; ++w) marks_at(slot)[w] = known.present[w] | mine.present[w];
    known = {sum, marks_at(slot)};
  }
}

}  // namespace scanline
