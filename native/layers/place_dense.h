// place_dense.h -- the dense layer behind the convolutions, with a rectifier.
//
// Takes pictures as numbers of the last convolution's outputs, the outputs themselves and weights
// [places * filters, units]; gives rows [num, units], and on the way back gradients of the weights
// and of what stands at every place. Knows no convolution, no loss and no Python.
//
// What a place adds to a row depends on the place and on the output that stands there: it is
// computed once for all pictures in which the two are the same, and a row is the sum of its places.
// Backwards the gradients of all rows with the same pair are summed first. Every sum is made by one
// job in one order, and a row depends on its own picture alone.
#pragma once

#include <vector>

#include "../core/types.h"
#include "pairs.h"
#include "present.h"

namespace scanline {

// Weights [places * filters, units]: those of a place lie together.
struct DenseWeights {
  const float *weights, *biases;
  i32 units;
};

struct DenseGradients {
  float *weights, *biases;
};

struct PlacePairs;  // of one place, on their way back

class PlaceDense {
 public:
  PlaceDense(i32 num_places, i32 filters)
      : pairs_(num_places), filters_(filters), num_multiplied_(static_cast<size_t>(num_places)) {}

  // Forgets pictures and weights, and keeps the memory.
  void clear();

  // Rows of pictures first .. first + num; the weights are those of the earlier ones. `numbers` are
  // theirs, `most_number` the largest, and `outputs` rows of `filters` floats by number.
  void forward(const i32* numbers, i32 first, i32 num, i32 most_number, const MarkedRows& outputs,
               const DenseWeights& dense, float* rows);
  // All pictures so far will be gone back from.
  void keep() { num_kept_ = pairs_.num(); }

  // Everything that the way back reads, and where it goes.
  struct Way {
    i32 num_pictures;
    MarkedRows outputs;
    DenseWeights dense;
    bool marks_all;  // gradients that are zero are not left out
    bool adds;       // to what is there
    DenseGradients gradients;
  };
  // Gradients of the weights from those of the rows.
  void backward(const Way& way, const float* rows, const float* row_gradients);
  // The way back of what stands somewhere: rows of `filters` floats, each to be added to the
  // gradient of its number.
  i32 num_kept() const { return num_kept_; }
  const i32* numbers() const { return pairs_.numbers(); }
  const float* pair_gradients() const { return pair_gradients_.data(); }

 private:
  using Floats = std::vector<float>;

  MarkedRow output_of(i32 id, const MarkedRows& outputs) const {
    return outputs.row(pairs_.numbers()[id]);
  }
  // Where the weights of a place begin.
  i64 weights_at(i32 place, i32 units) const { return static_cast<i64>(place) * filters_ * units; }
  void list_new(const MarkedRows& outputs, i32 place, std::vector<MarkedRow>& rows) const;
  void multiply(const MarkedRows& outputs, const DenseWeights& dense, i32 place, i32 next);
  void pass_rectifier(const Way& way, const float* rows, const float* gradients);
  void go_back(const Way& way, i32 place);
  void sum_gradients(const Way& way, i32 place, std::vector<MarkedRow>& gradients) const;
  void weight_gradients(const Way& way, i32 place, const PlacePairs& pairs) const;
  void clear_absent(const std::vector<i32>& inputs, i32 units, float* gradients) const;
  void pair_gradients(const Way& way, i32 place, const PlacePairs& pairs) const;

  Pairs pairs_;
  const i32 filters_;
  std::vector<i32> num_multiplied_;  // per place: pairs that have their products
  Floats products_;                  // per pair: what it adds to every unit
  i32 num_kept_ = 0;                 // pairs of pictures that are kept
  Floats passed_;                    // gradients behind the rectifier, by picture
  std::vector<u64> passed_present_;  // and which of them are not zero
  Floats pair_gradients_;
};

}  // namespace scanline
