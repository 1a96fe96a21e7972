// conv_stack.cpp -- see conv_stack.h.
#include "conv_stack.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "filter_tiles.h"
#include "kernels.h"
#include "optimise.h"
#include "patches.h"
#include "place_dense.h"
#include "readers.h"
#include "room.h"
#include "senders.h"
#include "workers.h"

namespace scanline {

namespace {

constexpr i32 kPicturesPerSegment = 128;  // bounds tables and memory; few pictures look alike twice
constexpr i32 kOutputsPerJob = 24;
constexpr i32 kInputsPerJob = 48;
constexpr i32 kPicturesPerJob = 4;
constexpr i32 kPicturesWorthWaking = 8;

using Floats = std::vector<float>;

}  // namespace

// Pictures that share their outputs, and what was computed from them.
class ConvPass::Segment {
 public:
  explicit Segment(const std::vector<ConvShape>& shapes)
      : shapes_(shapes),
        patches_(shapes),
        layers_(shapes.size()),
        readers_(shapes.size()),
        tiles_(shapes.size()),
        dense_(shapes.back().out_pixels(), shapes.back().filters) {}

  // With `marks_all` nothing is left out of a sum: some weight is not finite.
  void clear(bool marks_all) {
    marks_all_ = marks_all;
    is_finite_ = true;
    patches_.clear(marks_all);
    dense_.clear();
    for (Layer& layer : layers_) layer.num = layer.num_computed = 0;
  }

  bool takes(const Frames& frames) const { return patches_.takes(frames); }
  i32 num_pictures() const { return patches_.num_pictures(); }

  // Pictures that are not kept leave nothing but known outputs.
  void forward(const Frames& frames, i32 first, i32 num, const std::vector<Floats>& panels,
               const Weights& weights, const DenseWeights* dense, bool keeps, float* rows) {
    const i32 before = num_pictures();
    if (num >= kPicturesWorthWaking) expect_jobs();
    patches_.look(frames, first, num);
    for (size_t l = 0; l < shapes_.size(); ++l) compute(l, panels[l], weights.biases[l], num);
    if (dense) {
      dense_.forward(patches_.outputs_of(before), before, num, layers_.back().num_computed,
                     outputs(shapes_.size() - 1), *dense, rows);
    } else {
      copy_features(before, num, rows);
    }
    if (!keeps) return patches_.forget_last(num);
    dense_.keep();
    for (Layer& layer : layers_) layer.num = layer.num_computed;
  }

  // Adds to the gradients; `panels` are for the way back.
  void backward(const std::vector<Floats>& panels, const float* feature_gradients,
                const Gradients& gradients) {
    if (!is_finite_) mark_all_outputs();
    gather(patches_.outputs_of(0), static_cast<i64>(num_pictures()) * shapes_.back().out_pixels(),
           feature_gradients);
    go_back(panels, gradients);
  }

  void backward(const std::vector<Floats>& panels, const DenseWay& way, bool adds,
                const Gradients& gradients) {
    const i64 num_gradients = static_cast<i64>(num_pictures()) * way.weights.units;
    if (!is_finite_ || !are_finite({num_gradients, way.row_gradients})) mark_all_outputs();
    dense_.backward(
        {num_pictures(), outputs(shapes_.size() - 1), way.weights, marks_all_, adds, way.gradients},
        way.rows, way.row_gradients);
    gather(dense_.numbers(), dense_.num_kept(), dense_.pair_gradients());
    go_back(panels, gradients);
  }

 private:
  // The different outputs of one layer, in rows from 0 on of as many floats as there are filters.
  struct Layer {
    i32 num = 0;           // 1 .. num are those of the pictures that are kept
    i32 num_computed = 0;  // those of pictures that were only looked at follow
    Floats outputs, gradients;
    std::vector<u64> present;  // which floats of the outputs are not zero
  };

  MarkedRows outputs(size_t l) const {
    const i32 filters = shapes_[l].filters;
    return {layers_[l].outputs.data(), layers_[l].present.data(), filters, words_for(filters)};
  }

  // A gradient is zero where its output is.
  MarkedRows gradients(size_t l) const {
    MarkedRows rows = outputs(l);
    rows.floats = layers_[l].gradients.data();
    return rows;
  }

  Taps taps(size_t l) const {
    return {patches_.taps(l), patches_.taps_stride(l), patches_.grid(l).num_taps(),
            l == 0 ? patches_.strips() : outputs(l - 1)};
  }

  void mark_all_outputs() {
    for (size_t l = 0; l < shapes_.size(); ++l)
      for (i32 output = 0; output <= layers_[l].num; ++output) mark_all_of(l, output);
  }

  void mark_all_of(size_t l, i32 output) {
    const i32 filters = shapes_[l].filters;
    mark_all(filters, layers_[l].present.data() + static_cast<i64>(output) * words_for(filters));
  }

  // Outputs that are new since the last call.
  void compute(size_t l, const Floats& panels, const float* biases, i32 num_pictures) {
    Layer& layer = layers_[l];
    const i32 filters = shapes_[l].filters, first = layer.num_computed + 1, num = patches_.num(l);
    make_room(layer.outputs, num + 1, filters);
    make_room(layer.present, num + 1, words_for(filters));
    if (first == 1) {
      std::fill_n(layer.outputs.begin(), filters, 0.0F);
      std::fill_n(layer.present.begin(), words_for(filters), 0);
      if (marks_all_) mark_all_of(l, 0);
    }
    layer.num_computed = num;
    const Taps sources = taps(l);
    const Outputs to{layer.outputs.data(), layer.present.data(), filters};
    std::atomic<bool> is_finite{true};
    run_jobs(
        num_parts(num + 1 - first, kOutputsPerJob),
        [&](i32 job) {
          const i32 from = first + job * kOutputsPerJob;
          const i32 end = std::min(from + kOutputsPerJob, num + 1);
          if (!compute_outputs(sources, from, end, panels.data(), biases, to)) is_finite = false;
          for (i32 output = from; marks_all_ && output < end; ++output) mark_all_of(l, output);
        },
        size_of(num_pictures));
    is_finite_ = is_finite_ && is_finite;
  }

  void copy_features(i32 first, i32 num, float* features) const {
    const size_t floats = static_cast<size_t>(shapes_.back().filters);
    const i32 pixels = shapes_.back().out_pixels();
    const float* const outputs = layers_.back().outputs.data();
    run_jobs(
        num_parts(num, kPicturesPerJob),
        [&](i32 job) {
          for (i32 i = job * kPicturesPerJob; i < std::min(num, (job + 1) * kPicturesPerJob); ++i) {
            const i32* const numbers = patches_.outputs_of(first + i);
            float* to = features + static_cast<size_t>(i * pixels) * floats;
            for (i32 p = 0; p < pixels; ++p, to += floats)
              std::memcpy(to, outputs + static_cast<size_t>(numbers[p]) * floats,
                          floats * sizeof(float));
          }
        },
        size_of(num));
  }

  // Which filters have gradients from which outputs; and which outputs read an input, for all
  // layers but the first.
  void list_ways() {
    const i32 num_layers = static_cast<i32>(shapes_.size());
    run_jobs(
        2 * num_layers - 1,
        [&](i32 job) {
          if (job >= num_layers - 1) {
            const size_t l = static_cast<size_t>(job - (num_layers - 1));
            tiles_[l].list(outputs(l), layers_[l].num);
            return;
          }
          const size_t l = static_cast<size_t>(job) + 1;
          readers_[l].list(patches_.taps(l), patches_.taps_stride(l), layers_[l].num,
                           patches_.grid(l).num_taps(), layers_[l - 1].num);
        },
        Size::kLarge);
  }

  Floats& room_for_gradients(size_t l) {
    make_room(layers_[l].gradients, layers_[l].num + 1, shapes_[l].filters);
    return layers_[l].gradients;
  }

  // The gradient of the last layer: sums of all rows that belong to the same output, sixteen
  // filters per job.
  void gather(const i32* numbers, i64 num_rows, const float* rows) {
    const size_t top = shapes_.size() - 1;
    const i32 filters = shapes_[top].filters;
    Floats& gradients = room_for_gradients(top);
    run_jobs(
        filters / kTileColumns,
        [&](i32 job) {
          const i32 f = job * kTileColumns;
          gather_columns(numbers, num_rows, rows + f, layers_[top].num, filters,
                         layers_[top].outputs.data() + f, gradients.data() + f);
        },
        Size::kLarge);
  }

  // From the gradient of the last layer down.
  void go_back(const std::vector<Floats>& panels, const Gradients& gradients) {
    list_ways();
    for (size_t l = shapes_.size(); l-- > 0;)
      go_back(l, panels[l], gradients.filters[l], gradients.biases[l]);
  }

  // Gradients of a layer's weights, and of the outputs below.
  void go_back(size_t l, const Floats& panels, float* filter_sums, float* bias_sums) {
    const ConvShape& conv = shapes_[l];
    const Taps sources = taps(l);
    const i32 num = layers_[l].num, num_below = l == 0 ? 0 : layers_[l - 1].num;
    const MarkedRows from = gradients(l);
    float* const below = l == 0 ? nullptr : room_for_gradients(l - 1).data();
    const i32 num_taps = sources.num;
    run_jobs(
        num_taps + 1 + num_parts(num_below, kInputsPerJob),
        [&](i32 job) {
          if (job < num_taps) {
            add_filter_gradients(sources, num, job, tiles_[l].lists(), from, filter_sums);
          } else if (job == num_taps) {
            add_rows(num, conv.filters, conv.filters, from.row(1).floats, bias_sums);
          } else {
            const i32 first = 1 + (job - num_taps - 1) * kInputsPerJob;
            input_gradients(
                readers_[l], first, std::min(first + kInputsPerJob, num_below + 1),
                {from, conv.channels, panels.data(), layers_[l - 1].outputs.data(), below});
          }
        },
        Size::kLarge);
  }

  const std::vector<ConvShape>& shapes_;
  Patches patches_;
  std::vector<Layer> layers_;
  std::vector<Readers> readers_;
  std::vector<FilterTiles> tiles_;
  PlaceDense dense_;
  bool marks_all_ = false;
  bool is_finite_ = true;  // all outputs are
};

const char* ConvStack::refusal(const std::vector<ConvShape>& shapes) {
  if (const char* reason = kernels_refusal()) return reason;
  if (shapes.empty()) return "there must be a convolution";
  if (shapes.front().width < 8) return "pictures must be at least 8 pixels wide";
  for (const ConvShape& conv : shapes) {
    if (conv.filters % kTileColumns != 0) return "filters must be a multiple of 16";
    if (conv.run() % kTileColumns != 0) return "kernel times channels must be a multiple of 16";
    if (conv.kernel > 8) return "kernels must be at most 8 wide";
    if (conv.out_height() < 1 || conv.out_width() < 1) return "the pictures are too small";
  }
  return nullptr;
}

ConvPass::ConvPass(std::vector<ConvShape> shapes)
    : shapes_(std::move(shapes)), panels_(shapes_.size()) {}
ConvPass::~ConvPass() = default;

void ConvPass::clear() {
  num_segments_ = 0;
  num_pictures_ = num_dense_ = 0;
}

// The segment that the next picture belongs to.
ConvPass::Segment& ConvPass::segment_for(const Frames& frames, bool is_finite) {
  if (num_segments_ > 0) {
    Segment& last = *segments_[num_segments_ - 1];
    if (last.num_pictures() < kPicturesPerSegment && last.takes(frames)) return last;
  }
  if (num_segments_ == segments_.size()) segments_.push_back(std::make_unique<Segment>(shapes_));
  segments_[num_segments_]->clear(/*marks_all=*/!is_finite);
  return *segments_[num_segments_++];
}

void ConvPass::pack_weights(const Weights& weights) {
  for (size_t l = 0; l < shapes_.size(); ++l) {
    const i32 depth = shapes_[l].depth();
    std::vector<const float*> filters;
    for (i32 f = 0; f < shapes_[l].filters; ++f)
      filters.push_back(weights.filters[l] + static_cast<i64>(f) * depth);
    panels_[l].resize(static_cast<size_t>(shapes_[l].weights()));
    pack_lines(filters.data(), static_cast<i64>(filters.size()), depth, panels_[l].data());
  }
}

// What was half done when memory ran out is not gone on with.
void ConvPass::forward(const Frames& frames, i32 num, const Weights& weights,
                       const DenseWeights* dense, float* rows) {
  try {
    add_pictures(frames, num, weights, dense, rows);
  } catch (...) {
    clear();
    throw;
  }
}

void ConvPass::add_pictures(const Frames& frames, i32 num, const Weights& weights,
                            const DenseWeights* dense, float* rows) {
  if (num_pictures_ == 0) pack_weights(weights);
  for (i32 first = 0; first < num;) {
    Segment& segment = segment_for(frames, weights.are_finite);
    const i32 some = std::min(num - first, kPicturesPerSegment - segment.num_pictures());
    segment.forward(frames, first, some, panels_, weights, dense, true, rows);
    rows += static_cast<i64>(some) * (dense ? dense->units : feature_floats(shapes_));
    first += some;
    num_pictures_ += some;
    if (dense) num_dense_ += some;
  }
}

void ConvPass::peek(const Frames& frames, i32 num, const Weights& weights,
                    const DenseWeights* dense, float* rows) {
  if (num_segments_ == 0 || !segments_[num_segments_ - 1]->takes(frames)) {
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
    feature_gradients += static_cast<i64>(segments_[s]->num_pictures()) * feature_floats(shapes_);
  }
}

void ConvPass::backward(const Weights& weights, DenseWay way, const Gradients& gradients) {
  const std::vector<Floats> panels = begin_backward(weights, gradients);
  for (size_t s = 0; s < num_segments_; ++s) {
    segments_[s]->backward(panels, way, s > 0, gradients);
    const i64 num_floats = static_cast<i64>(segments_[s]->num_pictures()) * way.weights.units;
    way.rows += num_floats;
    way.row_gradients += num_floats;
  }
}

// Packs the weights for the way back, and clears the gradients.
std::vector<std::vector<float>> ConvPass::begin_backward(const Weights& weights,
                                                         const Gradients& gradients) const {
  std::vector<Floats> panels(shapes_.size());
  for (size_t l = 0; l < shapes_.size(); ++l) {
    if (l > 0) {
      panels[l].resize(static_cast<size_t>(shapes_[l].weights()));
      pack_columns(weights.filters[l], shapes_[l].filters, shapes_[l].depth(),
                   shapes_[l].depth() / kTileColumns, panels[l].data());
    }
    std::fill_n(gradients.filters[l], shapes_[l].weights(), 0.0F);
    std::fill_n(gradients.biases[l], shapes_[l].filters, 0.0F);
  }
  return panels;
}

}  // namespace scanline
