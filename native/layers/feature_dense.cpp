// feature_dense.cpp -- see feature_dense.h.
#include "feature_dense.h"

#include <algorithm>

#include "grow_rows.h"
#include "kernels.h"
#include "parallel_for.h"

namespace scanline {

// The pairs of one position in the backward pass.
struct PositionBatch {
  std::vector<SparseRow> outputs;    // of `filters` values
  std::vector<SparseRow> gradients;  // of the products, one value per unit
  std::vector<i32> inputs;           // values that are not zero in at least one output

  PositionGradients view(i32 units) const {
    return {outputs.data(), gradients.data(), static_cast<i32>(outputs.size()),
            units,          inputs.data(),    static_cast<i32>(inputs.size())};
  }
};

namespace {

constexpr i32 kImagesPerJob = 4;
constexpr i32 kPositionsPerJob = 5;

// A row's stride. Rows a power of two apart would map to few cache sets: a cache line is added.
i32 padded(i32 floats) { return floats + 16; }

// Values that are not zero in at least one of the rows.
void list_nonzero(const std::vector<SparseRow>& rows, i32 num_values, std::vector<i32>& list) {
  list.clear();
  for (i32 first = 0; first < num_values; first += kMaskBits) {
    u64 nonzero = 0;
    for (const SparseRow& row : rows) nonzero |= row.nonzero[first / kMaskBits];
    for_each_set_bit(nonzero, [&](i64 k) { list.push_back(first + static_cast<i32>(k)); });
  }
}

// Scratch buffers of one thread, reused from one position to the next.
struct Scratch {
  PositionBatch batch;
  std::vector<float*> pair_gradients;     // per pair: where its gradient is written
  std::vector<const float*> weight_rows;  // rows of the weights
  std::vector<float> sums;                // gradients of pairs that several images have
  std::vector<u64> masks;                 // of `sums`
  std::vector<float> panels;              // the position's weights, packed
};

thread_local Scratch scratch;

}  // namespace

void FeatureDense::clear() {
  pairs_.clear();
  num_kept_ = 0;
  std::fill(num_multiplied_.begin(), num_multiplied_.end(), 0);
}

void FeatureDense::forward(const i32* output_ids, i32 first, i32 num, i32 max_output_id,
                           const SparseRows& outputs, const DenseWeights& dense, float* rows) {
  pairs_.add(output_ids, first, num, max_output_id);
  grow_rows(products_, pairs_.size(), padded(dense.units));
  parallel_for(
      ceil_div(pairs_.num_positions(), kPositionsPerJob),
      [&](i32 job) {
        const i32 end = std::min(pairs_.num_positions(), (job + 1) * kPositionsPerJob);
        const i32 then =
            end + (layer_threads() - 1) * kPositionsPerJob;  // probably this thread's next
        for (i32 position = job * kPositionsPerJob; position < end; ++position)
          multiply(outputs, dense, position, position + 1 < end ? position + 1 : then);
      },
      call_size(num));
  for (i32 position = 0; position < pairs_.num_positions(); ++position)
    num_multiplied_[static_cast<size_t>(position)] = static_cast<i32>(pairs_.at(position).size());
  parallel_for(
      ceil_div(num, kImagesPerJob),
      [&](i32 job) {
        const i32 end = std::min(num, (job + 1) * kImagesPerJob);
        for (i32 i = job * kImagesPerJob; i < end; ++i)
          sum_positions(pairs_.of_image(first + i), pairs_.num_positions(), products_.data(),
                        padded(dense.units), dense.biases, dense.units,
                        rows + static_cast<i64>(i) * dense.units);
      },
      call_size(num));
}

// Outputs of the pairs of a position that have no products yet.
void FeatureDense::list_new_outputs(const SparseRows& outputs, i32 position,
                                    std::vector<SparseRow>& rows) const {
  const std::vector<i32>& pairs = pairs_.at(position);
  rows.clear();
  const size_t first = static_cast<size_t>(num_multiplied_[static_cast<size_t>(position)]);
  for (size_t i = first; i < pairs.size(); ++i) rows.push_back(output_of(pairs[i], outputs));
}

// Products of a position's weights with its new pairs. `next` is the position whose weights are
// prefetched.
void FeatureDense::multiply(const SparseRows& outputs, const DenseWeights& dense, i32 position,
                            i32 next) {
  std::vector<SparseRow>& rows = scratch.batch.outputs;
  const i32 units = dense.units;
  scratch.weight_rows.clear();
  if (next < pairs_.num_positions()) {
    list_new_outputs(outputs, next, rows);
    list_nonzero(rows, filters_, scratch.batch.inputs);
    const float* const ahead = dense.weights + weights_at(next, units);
    for (const i32 k : scratch.batch.inputs) scratch.weight_rows.push_back(ahead + k * units);
  }
  list_new_outputs(outputs, position, rows);
  const i32* const pairs =
      pairs_.at(position).data() + num_multiplied_[static_cast<size_t>(position)];
  multiply_position({rows.data(), pairs, static_cast<i32>(rows.size()), filters_, units,
                     dense.weights + weights_at(position, units), scratch.weight_rows.data(),
                     static_cast<i64>(scratch.weight_rows.size())},
                    products_.data(), padded(units));
}

void FeatureDense::backward(const BackwardArgs& args, const float* rows,
                            const float* row_gradients) {
  const i32 num = args.num_images, units = args.dense.units;
  relu_backward(args, rows, row_gradients);
  grow_rows(pair_gradients_, num_kept_, filters_);
  parallel_for(
      pairs_.num_positions() + 1,
      [&](i32 job) {
        if (job < pairs_.num_positions()) return backward_position(args, job);
        if (!args.accumulate) std::fill_n(args.gradients.biases, units, 0.0F);
        accumulate_rows(num, padded(units), units, relu_gradients_.data(), args.gradients.biases);
      },
      CallSize::kLarge);
}

void FeatureDense::relu_backward(const BackwardArgs& args, const float* rows,
                                 const float* gradients) {
  const i32 units = args.dense.units, words = num_mask_words(units);
  grow_rows(relu_gradients_, args.num_images, padded(units));
  grow_rows(relu_masks_, args.num_images, words);
  for (i32 i = 0; i < args.num_images; ++i) {
    const i64 from = static_cast<i64>(i) * units;
    u64* const nonzero = relu_masks_.data() + static_cast<i64>(i) * words;
    relu_backward_row(units, rows + from, gradients + from,
                      relu_gradients_.data() + static_cast<i64>(i) * padded(units), nonzero);
    if (args.full_masks) set_all_bits(units, nonzero);
  }
}

// Gradients of a position's weights and pairs.
void FeatureDense::backward_position(const BackwardArgs& args, i32 position) {
  PositionBatch& batch = scratch.batch;
  const std::vector<i32>& pairs = pairs_.at(position);
  const i32 num =
      static_cast<i32>(std::lower_bound(pairs.begin(), pairs.end(), num_kept_) - pairs.begin());
  batch.outputs.clear();
  scratch.pair_gradients.clear();
  for (i32 i = 0; i < num; ++i) {
    const i32 pair = pairs[static_cast<size_t>(i)];
    batch.outputs.push_back(output_of(pair, args.outputs));
    scratch.pair_gradients.push_back(pair_gradients_.data() + static_cast<i64>(pair) * filters_);
    std::fill_n(scratch.pair_gradients.back(), filters_, 0.0F);
  }
  list_nonzero(batch.outputs, filters_, batch.inputs);
  sum_gradients(args, position, batch.gradients);
  weight_gradients(args, position, batch);
  pair_gradients(args, position, batch);
}

void FeatureDense::weight_gradients(const BackwardArgs& args, i32 position,
                                    const PositionBatch& batch) const {
  const i32 units = args.dense.units;
  float* const to = args.gradients.weights + weights_at(position, units);
  if (!args.accumulate) clear_unused_rows(batch.inputs, units, to);
  position_weight_gradients(batch.view(units), args.accumulate, to);
}

// Rows of a position's weight gradient whose input is zero in all pairs.
void FeatureDense::clear_unused_rows(const std::vector<i32>& inputs, i32 units,
                                     float* gradients) const {
  size_t listed = 0;
  for (i32 k = 0; k < filters_; ++k) {
    if (listed < inputs.size() && inputs[listed] == k) {
      ++listed;
    } else {
      std::fill_n(gradients + static_cast<i64>(k) * units, units, 0.0F);
    }
  }
}

// Gradients of a position's outputs. Where an output is zero its ReLU drops the gradient, so only
// `batch.inputs` are computed.
void FeatureDense::pair_gradients(const BackwardArgs& args, i32 position,
                                  const PositionBatch& batch) const {
  const i32 units = args.dense.units;
  const float* const weights = args.dense.weights + weights_at(position, units);
  scratch.weight_rows.clear();
  for (const i32 k : batch.inputs) scratch.weight_rows.push_back(weights + k * units);
  while (scratch.weight_rows.size() % kTileColumns != 0) scratch.weight_rows.push_back(weights);
  const i64 num_rows = static_cast<i64>(scratch.weight_rows.size());
  grow_rows(scratch.panels, static_cast<i32>(num_rows), units);
  pack_rows(scratch.weight_rows.data(), num_rows, units, scratch.panels.data());
  position_pair_gradients(batch.view(units), scratch.panels.data(), scratch.pair_gradients.data());
}

// The gradients of a position's pairs: that of an image, or the sum over all images that have
// the pair.
void FeatureDense::sum_gradients(const BackwardArgs& args, i32 position,
                                 std::vector<SparseRow>& gradients) const {
  const i32 units = args.dense.units, stride = padded(units), words = num_mask_words(units);
  const i32 num = static_cast<i32>(scratch.batch.outputs.size());
  grow_rows(scratch.sums, num + 1, stride);
  grow_rows(scratch.masks, num + 1, words);
  const auto sum_at = [&](i32 index) {
    return scratch.sums.data() + static_cast<i64>(index) * stride;
  };
  const auto mask_at = [&](i32 index) {
    return scratch.masks.data() + static_cast<i64>(index) * words;
  };
  const SparseRow zero{sum_at(num), mask_at(num)};  // of pairs that no kept image has
  std::fill_n(sum_at(num), units, 0.0F);
  std::fill_n(mask_at(num), words, 0);
  gradients.assign(static_cast<size_t>(num), zero);
  for (i32 i = 0; i < args.num_images; ++i) {
    const i32 index = pairs_.index(pairs_.of_image(i)[position]);
    const SparseRow image{relu_gradients_.data() + static_cast<i64>(i) * stride,
                          relu_masks_.data() + static_cast<i64>(i) * words};
    SparseRow& total = gradients[static_cast<size_t>(index)];
    if (total.values == zero.values) {
      total = image;
      continue;
    }
    float* const sum = sum_at(index);
    sum_rows(total.values, image.values, units, sum);
    for (i32 w = 0; w < words; ++w) mask_at(index)[w] = total.nonzero[w] | image.nonzero[w];
    total = {sum, mask_at(index)};
  }
}

}  // namespace scanline
