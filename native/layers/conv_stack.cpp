// conv_stack.cpp -- see conv_stack.h.
#include "conv_stack.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "filter_tiles.h"
#include "grow_rows.h"
#include "input_gradients.h"
#include "inverse_taps.h"
#include "kernels.h"
#include "optimise.h"
#include "parallel_for.h"
#include "patch_table.h"

namespace scanline {

namespace {

constexpr i32 kImagesPerSegment = 128;  // bounds memory; more would share little more
constexpr i32 kOutputsPerJob = 24;
constexpr i32 kInputsPerJob = 48;
constexpr i32 kImagesPerJob = 4;
constexpr i32 kMinImagesToWake = 8;

using Floats = std::vector<float>;

}  // namespace

// Up to 128 images that share one table of outputs, and their activations.
class ConvPass::Segment {
 public:
  explicit Segment(const std::vector<ConvShape>& shapes)
      : shapes_(shapes),
        table_(shapes),
        layers_(shapes.size()),
        inverse_taps_(shapes.size()),
        tiles_(shapes.size()),
        dense_(shapes.back().out_pixels(), shapes.back().filters) {}

  // `full_masks`: sums skip no zeros, because some weight is not finite.
  void clear(bool full_masks) {
    full_masks_ = full_masks;
    is_finite_ = true;
    table_.clear(full_masks);
    dense_.clear();
    for (Layer& layer : layers_) layer.num = layer.num_computed = 0;
  }

  bool accepts(const Frames& frames) const { return table_.accepts(frames); }
  i32 num_images() const { return table_.num_images(); }

  // Without `keep` the images are removed again, but their outputs stay in the table.
  void forward(const Frames& frames, i32 first, i32 num, const std::vector<Floats>& panels,
               const Weights& weights, const DenseWeights* dense, bool keep, float* rows) {
    const i32 before = num_images();
    if (num >= kMinImagesToWake) wake_threads();
    table_.add(frames, first, num);
    for (size_t l = 0; l < shapes_.size(); ++l) compute(l, panels[l], weights.biases[l], num);
    if (dense) {
      dense_.forward(table_.output_ids(before), before, num, layers_.back().num_computed,
                     outputs(shapes_.size() - 1), *dense, rows);
    } else {
      copy_features(before, num, rows);
    }
    if (!keep) return table_.remove_last(num);
    dense_.keep();
    for (Layer& layer : layers_) layer.num = layer.num_computed;
  }

  // Adds to the gradients; `panels` are the weights packed for the backward pass.
  void backward(const std::vector<Floats>& panels, const float* feature_gradients,
                const Gradients& gradients) {
    if (!is_finite_) fill_output_masks();
    scatter_add(table_.output_ids(0), static_cast<i64>(num_images()) * shapes_.back().out_pixels(),
                feature_gradients);
    backward_layers(panels, gradients);
  }

  void backward(const std::vector<Floats>& panels, const DenseBackward& dense, bool accumulate,
                const Gradients& gradients) {
    const i64 num_gradients = static_cast<i64>(num_images()) * dense.weights.units;
    if (!is_finite_ || !are_finite({num_gradients, dense.row_gradients})) fill_output_masks();
    dense_.backward({num_images(), outputs(shapes_.size() - 1), dense.weights, full_masks_,
                     accumulate, dense.gradients},
                    dense.rows, dense.row_gradients);
    scatter_add(dense_.output_ids(), dense_.num_kept_pairs(), dense_.pair_gradients());
    backward_layers(panels, gradients);
  }

 private:
  // The distinct outputs of one layer: rows of `filters` floats by id, from 0 on.
  struct Layer {
    i32 num = 0;           // outputs of kept images have ids 1 .. num
    i32 num_computed = 0;  // outputs 1 .. num_computed have their values
    Floats outputs, gradients;
    std::vector<u64> masks;  // of the outputs
  };

  SparseRows outputs(size_t l) const {
    const i32 filters = shapes_[l].filters;
    return {layers_[l].outputs.data(), layers_[l].masks.data(), filters, num_mask_words(filters)};
  }

  // A gradient is zero where its output is, so both have the same masks.
  SparseRows gradients(size_t l) const {
    SparseRows rows = outputs(l);
    rows.values = layers_[l].gradients.data();
    return rows;
  }

  Taps taps(size_t l) const {
    return {table_.taps(l), table_.taps_stride(l), table_.grid(l).num_taps(),
            l == 0 ? table_.strips() : outputs(l - 1)};
  }

  void fill_output_masks() {
    for (size_t l = 0; l < shapes_.size(); ++l)
      for (i32 output = 0; output <= layers_[l].num; ++output) fill_output_mask(l, output);
  }

  void fill_output_mask(size_t l, i32 output) {
    const i32 filters = shapes_[l].filters;
    set_all_bits(filters,
                 layers_[l].masks.data() + static_cast<i64>(output) * num_mask_words(filters));
  }

  // Computes the outputs that are new since the last call.
  void compute(size_t l, const Floats& panels, const float* biases, i32 num_images) {
    Layer& layer = layers_[l];
    const i32 filters = shapes_[l].filters, first = layer.num_computed + 1,
              num = table_.num_outputs(l);
    grow_rows(layer.outputs, num + 1, filters);
    grow_rows(layer.masks, num + 1, num_mask_words(filters));
    if (first == 1) {
      std::fill_n(layer.outputs.begin(), filters, 0.0F);
      std::fill_n(layer.masks.begin(), num_mask_words(filters), 0);
      if (full_masks_) fill_output_mask(l, 0);
    }
    layer.num_computed = num;
    const Taps sources = taps(l);
    const Outputs to{layer.outputs.data(), layer.masks.data(), filters};
    std::atomic<bool> is_finite{true};
    parallel_for(
        ceil_div(num + 1 - first, kOutputsPerJob),
        [&](i32 job) {
          const i32 from = first + job * kOutputsPerJob;
          const i32 end = std::min(from + kOutputsPerJob, num + 1);
          if (!compute_outputs(sources, from, end, panels.data(), biases, to)) is_finite = false;
          for (i32 output = from; full_masks_ && output < end; ++output)
            fill_output_mask(l, output);
        },
        call_size(num_images));
    is_finite_ = is_finite_ && is_finite;
  }

  void copy_features(i32 first, i32 num, float* features) const {
    const size_t floats = static_cast<size_t>(shapes_.back().filters);
    const i32 pixels = shapes_.back().out_pixels();
    const float* const outputs = layers_.back().outputs.data();
    parallel_for(
        ceil_div(num, kImagesPerJob),
        [&](i32 job) {
          for (i32 i = job * kImagesPerJob; i < std::min(num, (job + 1) * kImagesPerJob); ++i) {
            const i32* const ids = table_.output_ids(first + i);
            float* to = features + static_cast<size_t>(i * pixels) * floats;
            for (i32 p = 0; p < pixels; ++p, to += floats)
              std::memcpy(to, outputs + static_cast<size_t>(ids[p]) * floats,
                          floats * sizeof(float));
          }
        },
        call_size(num));
  }

  // Filter tiles of all layers, and inverse taps of all but the first.
  void build_backward_tables() {
    const i32 num_layers = static_cast<i32>(shapes_.size());
    parallel_for(
        2 * num_layers - 1,
        [&](i32 job) {
          if (job >= num_layers - 1) {
            const size_t l = static_cast<size_t>(job - (num_layers - 1));
            tiles_[l].build(outputs(l), layers_[l].num);
            return;
          }
          const size_t l = static_cast<size_t>(job) + 1;
          inverse_taps_[l].build(table_.taps(l), table_.taps_stride(l), layers_[l].num,
                                 table_.grid(l).num_taps(), layers_[l - 1].num);
        },
        CallSize::kLarge);
  }

  Floats& grow_gradients(size_t l) {
    grow_rows(layers_[l].gradients, layers_[l].num + 1, shapes_[l].filters);
    return layers_[l].gradients;
  }

  // Gradients of the last layer's distinct outputs: adds row i to output ids[i], then applies the
  // ReLU's gradient. Sixteen filters per job.
  void scatter_add(const i32* ids, i64 num_rows, const float* rows) {
    const size_t top = shapes_.size() - 1;
    const i32 filters = shapes_[top].filters;
    Floats& gradients = grow_gradients(top);
    parallel_for(
        filters / kTileColumns,
        [&](i32 job) {
          const i32 f = job * kTileColumns;
          scatter_add_columns(ids, num_rows, rows + f, layers_[top].num, filters,
                              layers_[top].outputs.data() + f, gradients.data() + f);
        },
        CallSize::kLarge);
  }

  // From the gradients of the last layer down.
  void backward_layers(const std::vector<Floats>& panels, const Gradients& gradients) {
    build_backward_tables();
    for (size_t l = shapes_.size(); l-- > 0;)
      backward_layer(l, panels[l], gradients.filters[l], gradients.biases[l]);
  }

  // Adds to the gradients of a layer's weights, and computes those of the outputs below.
  void backward_layer(size_t l, const Floats& panels, float* filter_sums, float* bias_sums) {
    const ConvShape& conv = shapes_[l];
    const Taps sources = taps(l);
    const i32 num = layers_[l].num, num_below = l == 0 ? 0 : layers_[l - 1].num;
    const SparseRows from = gradients(l);
    float* const below = l == 0 ? nullptr : grow_gradients(l - 1).data();
    const i32 num_taps = sources.num;
    parallel_for(
        num_taps + 1 + ceil_div(num_below, kInputsPerJob),
        [&](i32 job) {
          if (job < num_taps) {
            add_filter_gradients(sources, num, job, tiles_[l].lists(), from, filter_sums);
          } else if (job == num_taps) {
            accumulate_rows(num, conv.filters, conv.filters, from.row(1).values, bias_sums);
          } else {
            const i32 first = 1 + (job - num_taps - 1) * kInputsPerJob;
            input_gradients(
                inverse_taps_[l], first, std::min(first + kInputsPerJob, num_below + 1),
                {from, conv.channels, panels.data(), layers_[l - 1].outputs.data(), below});
          }
        },
        CallSize::kLarge);
  }

  const std::vector<ConvShape>& shapes_;
  PatchTable table_;
  std::vector<Layer> layers_;
  std::vector<InverseTaps> inverse_taps_;
  std::vector<FilterTiles> tiles_;
  FeatureDense dense_;
  bool full_masks_ = false;
  bool is_finite_ = true;  // of all outputs
};

const char* convolutions_refusal(const std::vector<ConvShape>& shapes) {
  if (const char* reason = kernels_refusal()) return reason;
  if (shapes.empty()) return "there must be a convolution";
  if (shapes.front().width < 8) return "images must be at least 8 pixels wide";
  for (const ConvShape& conv : shapes) {
    if (conv.filters % kTileColumns != 0) return "filters must be a multiple of 16";
    if (conv.strip_floats() % 8 != 0) return "kernel times channels must be a multiple of 8";
    if (conv.kernel > 8) return "kernels must be at most 8 wide";
    if (conv.out_height() < 1 || conv.out_width() < 1) return "the images are too small";
  }
  return nullptr;
}

ConvPass::ConvPass(std::vector<ConvShape> shapes)
    : shapes_(std::move(shapes)), panels_(shapes_.size()) {}
ConvPass::~ConvPass() = default;

void ConvPass::clear() {
  num_segments_ = 0;
  num_images_ = num_dense_images_ = 0;
}

// The last segment if it has room for these images, else a new one.
ConvPass::Segment& ConvPass::segment_for(const Frames& frames, bool is_finite) {
  if (num_segments_ > 0) {
    Segment& last = *segments_[num_segments_ - 1];
    if (last.num_images() < kImagesPerSegment && last.accepts(frames)) return last;
  }
  if (num_segments_ == segments_.size()) segments_.push_back(std::make_unique<Segment>(shapes_));
  segments_[num_segments_]->clear(/*full_masks=*/!is_finite);
  return *segments_[num_segments_++];
}

void ConvPass::pack_weights(const Weights& weights) {
  for (size_t l = 0; l < shapes_.size(); ++l) {
    const i32 depth = shapes_[l].depth();
    std::vector<const float*> filters;
    for (i32 f = 0; f < shapes_[l].filters; ++f)
      filters.push_back(weights.filters[l] + static_cast<i64>(f) * depth);
    panels_[l].resize(static_cast<size_t>(shapes_[l].num_weights()));
    pack_rows(filters.data(), static_cast<i64>(filters.size()), depth, panels_[l].data());
  }
}

// An exception (out of memory) may leave a segment incomplete, so the pass is cleared.
void ConvPass::forward(const Frames& frames, i32 num, const Weights& weights,
                       const DenseWeights* dense, float* rows) {
  try {
    add_images(frames, num, weights, dense, rows);
  } catch (...) {
    clear();
    throw;
  }
}

void ConvPass::add_images(const Frames& frames, i32 num, const Weights& weights,
                          const DenseWeights* dense, float* rows) {
  if (num_images_ == 0) pack_weights(weights);
  for (i32 first = 0; first < num;) {
    Segment& segment = segment_for(frames, weights.are_finite);
    const i32 some = std::min(num - first, kImagesPerSegment - segment.num_images());
    segment.forward(frames, first, some, panels_, weights, dense, true, rows);
    rows += static_cast<i64>(some) * (dense ? dense->units : feature_floats(shapes_));
    first += some;
    num_images_ += some;
    if (dense) num_dense_images_ += some;
  }
}

void ConvPass::infer(const Frames& frames, i32 num, const Weights& weights,
                     const DenseWeights* dense, float* rows) {
  if (num_segments_ == 0 || !segments_[num_segments_ - 1]->accepts(frames)) {
    ConvPass alone(shapes_);
    return alone.forward(frames, num, weights, dense, rows);
  }
  try {
    segments_[num_segments_ - 1]->forward(frames, 0, num, panels_, weights, dense, false, rows);
  } catch (...) {
    clear();
    throw;
  }
}

void ConvPass::backward(const Weights& weights, const float* feature_gradients,
                        const Gradients& gradients) {
  const std::vector<Floats> panels = begin_backward(weights, gradients);
  for (size_t s = 0; s < num_segments_; ++s) {
    segments_[s]->backward(panels, feature_gradients, gradients);
    feature_gradients += static_cast<i64>(segments_[s]->num_images()) * feature_floats(shapes_);
  }
}

void ConvPass::backward(const Weights& weights, DenseBackward dense, const Gradients& gradients) {
  const std::vector<Floats> panels = begin_backward(weights, gradients);
  for (size_t s = 0; s < num_segments_; ++s) {
    segments_[s]->backward(panels, dense, s > 0, gradients);
    const i64 num_values = static_cast<i64>(segments_[s]->num_images()) * dense.weights.units;
    dense.rows += num_values;
    dense.row_gradients += num_values;
  }
}

// Packs the weights for the backward pass, and clears the gradients.
std::vector<std::vector<float>> ConvPass::begin_backward(const Weights& weights,
                                                         const Gradients& gradients) const {
  std::vector<Floats> panels(shapes_.size());
  for (size_t l = 0; l < shapes_.size(); ++l) {
    if (l > 0) {
      panels[l].resize(static_cast<size_t>(shapes_[l].num_weights()));
      pack_columns(weights.filters[l], shapes_[l].filters, shapes_[l].depth(),
                   shapes_[l].depth() / kTileColumns, panels[l].data());
    }
    std::fill_n(gradients.filters[l], shapes_[l].num_weights(), 0.0F);
    std::fill_n(gradients.biases[l], shapes_[l].filters, 0.0F);
  }
  return panels;
}

}  // namespace scanline
