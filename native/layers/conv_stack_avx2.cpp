// conv_stack_avx2.cpp -- see conv_stack.h. Compiled for AVX2 and FMA; entered only where they are.
#include <algorithm>
#include <cstring>

#include "conv_stack.h"
#include "outputs_avx2.h"
#include "patches.h"
#include "readers.h"
#include "tiles_avx2.h"
#include "workers.h"

namespace scanline {

namespace {

constexpr i32 kPicturesPerSegment = 128;  // bounds tables and memory; few pictures look alike twice
constexpr i32 kOutputsPerJob = 24;
constexpr i32 kInputsPerJob = 48;
constexpr i32 kPicturesPerJob = 4;
constexpr i32 kPicturesWorthWaking = 8;

using Floats = std::vector<float>;

// What is there stays, what is new holds anything.
void make_room(Floats& rows, i32 num, i32 floats) {
  const size_t needed = static_cast<size_t>(num) * static_cast<size_t>(floats);
  if (rows.size() < needed) rows.resize(needed + needed / 2);
}

// Eight rows of eight floats to eight columns: out[k * 16 + f] = rows[f * stride + k].
void turn_eight(const float* rows, i32 stride, float* out) {
  __m256 row[8], pair[8], four[8];
  for (i32 f = 0; f < 8; ++f) row[f] = _mm256_loadu_ps(rows + f * stride);
  for (i32 f = 0; f < 8; f += 2) {
    pair[f] = _mm256_unpacklo_ps(row[f], row[f + 1]);
    pair[f + 1] = _mm256_unpackhi_ps(row[f], row[f + 1]);
  }
  for (i32 f = 0; f < 8; f += 4) {
    four[f] = _mm256_shuffle_ps(pair[f], pair[f + 2], 0x44);
    four[f + 1] = _mm256_shuffle_ps(pair[f], pair[f + 2], 0xEE);
    four[f + 2] = _mm256_shuffle_ps(pair[f + 1], pair[f + 3], 0x44);
    four[f + 3] = _mm256_shuffle_ps(pair[f + 1], pair[f + 3], 0xEE);
  }
  for (i32 k = 0; k < 4; ++k) {
    _mm256_storeu_ps(out + k * kTileColumns, _mm256_permute2f128_ps(four[k], four[k + 4], 0x20));
    _mm256_storeu_ps(out + (k + 4) * kTileColumns,
                     _mm256_permute2f128_ps(four[k], four[k + 4], 0x31));
  }
}

// Weights by sixteen filters: [filters / 16][depth][16].
void pack_forwards(const ConvShape& conv, const float* weights, Floats& panels) {
  const i32 depth = conv.depth();
  panels.resize(static_cast<size_t>(conv.weights()));
  for (i32 f = 0; f < conv.filters; f += 8)
    for (i32 k = 0; k < depth; k += 8)
      turn_eight(weights + f * depth + k, depth,
                 panels.data() + (f / 16 * depth + k) * kTileColumns + f % 16);
}

// Weights by sixteen floats of a tap: [depth / 16][filters][16].
void pack_backwards(const ConvShape& conv, const float* weights, Floats& panels) {
  panels.resize(static_cast<size_t>(conv.weights()));
  float* to = panels.data();
  for (i32 k = 0; k < conv.depth(); k += kTileColumns)
    for (i32 f = 0; f < conv.filters; ++f, to += kTileColumns)
      std::memcpy(to, weights + f * conv.depth() + k, kTileColumns * sizeof(float));
}

}  // namespace

// Pictures that share their outputs, and what was computed from them.
class ConvPass::Segment {
 public:
  explicit Segment(const std::vector<ConvShape>& shapes)
      : shapes_(shapes), patches_(shapes), layers_(shapes.size()), readers_(shapes.size()) {}

  void clear() {
    patches_.clear();
    for (Layer& layer : layers_) layer.num = layer.num_computed = 0;
  }

  bool takes(const Frames& frames) const { return patches_.takes(frames); }
  i32 num_pictures() const { return patches_.num_pictures(); }

  // Pictures that are not kept leave nothing but known outputs.
  void forward(const Frames& frames, i32 first, i32 num, const std::vector<Floats>& panels,
               const Weights& weights, bool keeps, float* features) {
    const i32 before = num_pictures();
    if (num >= kPicturesWorthWaking) expect_jobs();
    patches_.look(frames, first, num);
    for (size_t l = 0; l < shapes_.size(); ++l) compute(l, panels[l], weights.biases[l], num);
    copy_features(before, num, features);
    if (!keeps) return patches_.forget_last(num);
    for (Layer& layer : layers_) layer.num = layer.num_computed;
  }

  // Adds to the gradients; `panels` are for the way back.
  void backward(const std::vector<Floats>& panels, const float* feature_gradients,
                const Gradients& gradients) {
    const size_t top = shapes_.size() - 1;
    list_readers();
    gather_features(feature_gradients);
    for (size_t l = top + 1; l-- > 0;)
      go_back(l, panels[l], gradients.filters[l], gradients.biases[l]);
  }

 private:
  // The different outputs of one layer, in rows from 0 on of as many floats as there are filters.
  struct Layer {
    i32 num = 0;           // 1 .. num are those of the pictures that are kept
    i32 num_computed = 0;  // those of pictures that were only looked at follow
    Floats outputs, gradients;
  };

  Taps taps(size_t l) const {
    const bool first = l == 0;
    return {patches_.taps(l), patches_.taps_stride(l), patches_.grid(l).num_taps(),
            patches_.grid(l).tap_floats,
            first ? patches_.strip_floats() : layers_[l - 1].outputs.data()};
  }

  // Outputs that are new since the last call.
  void compute(size_t l, const Floats& panels, const float* biases, i32 num_pictures) {
    Layer& layer = layers_[l];
    const i32 filters = shapes_[l].filters, first = layer.num_computed + 1, num = patches_.num(l);
    make_room(layer.outputs, num + 1, filters);
    if (first == 1) std::fill_n(layer.outputs.begin(), filters, 0.0F);
    layer.num_computed = num;
    const Taps sources = taps(l);
    run_jobs(
        num_parts(num + 1 - first, kOutputsPerJob),
        [&](i32 job) {
          const i32 from = first + job * kOutputsPerJob;
          compute_outputs(sources, from, std::min(from + kOutputsPerJob, num + 1), filters,
                          panels.data(), biases, layer.outputs.data());
        },
        size_of(num_pictures));
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

  // Which outputs read an input, for all layers but the first.
  void list_readers() {
    run_jobs(
        static_cast<i32>(shapes_.size()) - 1,
        [&](i32 job) {
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

  // The gradient of the last layer: sums over all pictures, sixteen filters per job.
  void gather_features(const float* feature_gradients) {
    const size_t top = shapes_.size() - 1;
    const i32 filters = shapes_[top].filters;
    Floats& gradients = room_for_gradients(top);
    const i64 num_places = static_cast<i64>(patches_.num_pictures()) * shapes_[top].out_pixels();
    run_jobs(
        filters / kTileColumns,
        [&](i32 job) {
          const i32 f = job * kTileColumns;
          const i32* const numbers = patches_.outputs_of(0);
          clear_columns(layers_[top].num + 1, filters, gradients.data() + f);
          for (i64 p = 0; p < num_places; ++p) {
            float* const to = gradients.data() + static_cast<i64>(numbers[p]) * filters + f;
            const float* const from = feature_gradients + p * filters + f;
            add_to(to, _mm256_loadu_ps(from));
            add_to(to + 8, _mm256_loadu_ps(from + 8));
          }
          pass_columns(layers_[top].num + 1, filters, layers_[top].outputs.data() + f,
                       gradients.data() + f);
        },
        Size::kLarge);
  }

  // Gradients of a layer's weights, and of the outputs below.
  void go_back(size_t l, const Floats& panels, float* filter_sums, float* bias_sums) {
    const ConvShape& conv = shapes_[l];
    const Taps sources = taps(l);
    const i32 num = layers_[l].num, num_below = l == 0 ? 0 : layers_[l - 1].num;
    const float* const gradients = layers_[l].gradients.data();
    float* const below = l == 0 ? nullptr : room_for_gradients(l - 1).data();
    const i32 num_chunks = conv.depth() / kTileColumns;
    run_jobs(
        num_chunks + 1 + num_parts(num_below, kInputsPerJob),
        [&](i32 job) {
          if (job < num_chunks) {
            add_filter_gradients(sources, num, conv.filters, job * kTileColumns, gradients,
                                 filter_sums);
          } else if (job == num_chunks) {
            add_bias_gradients(num, conv.filters, gradients, bias_sums);
          } else {
            const i32 first = 1 + (job - num_chunks - 1) * kInputsPerJob;
            input_gradients(readers_[l], first, std::min(first + kInputsPerJob, num_below + 1),
                            {conv.filters, conv.channels, gradients, panels.data(),
                             layers_[l - 1].outputs.data(), below});
          }
        },
        Size::kLarge);
  }

  const std::vector<ConvShape>& shapes_;
  Patches patches_;
  std::vector<Layer> layers_;
  std::vector<Readers> readers_;
};

const char* ConvStack::refusal(const std::vector<ConvShape>& shapes) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return "the processor has no AVX2 or FMA";
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
  for (size_t s = 0; s < num_segments_; ++s) segments_[s]->clear();
  num_segments_ = 0;
  num_pictures_ = 0;
}

// The segment that the next picture belongs to.
ConvPass::Segment& ConvPass::segment_for(const Frames& frames) {
  if (num_segments_ > 0) {
    Segment& last = *segments_[num_segments_ - 1];
    if (last.num_pictures() < kPicturesPerSegment && last.takes(frames)) return last;
  }
  if (num_segments_ == segments_.size()) segments_.push_back(std::make_unique<Segment>(shapes_));
  return *segments_[num_segments_++];
}

void ConvPass::pack_weights(const Weights& weights) {
  for (size_t l = 0; l < shapes_.size(); ++l)
    pack_forwards(shapes_[l], weights.filters[l], panels_[l]);
}

void ConvPass::forward(const Frames& frames, i32 num, const Weights& weights, float* features) {
  if (num_pictures_ == 0) pack_weights(weights);
  const ConvShape& top = shapes_.back();
  for (i32 first = 0; first < num;) {
    Segment& segment = segment_for(frames);
    const i32 some = std::min(num - first, kPicturesPerSegment - segment.num_pictures());
    segment.forward(frames, first, some, panels_, weights, true,
                    features + static_cast<i64>(first) * top.out_pixels() * top.filters);
    first += some;
    num_pictures_ += some;
  }
}

void ConvPass::peek(const Frames& frames, i32 num, const Weights& weights, float* features) {
  if (num_segments_ > 0 && segments_[num_segments_ - 1]->takes(frames)) {
    segments_[num_segments_ - 1]->forward(frames, 0, num, panels_, weights, false, features);
    return;
  }
  ConvPass alone(shapes_);
  alone.forward(frames, num, weights, features);
}

void ConvPass::backward(const Weights& weights, const float* feature_gradients,
                        const Gradients& gradients) {
  std::vector<Floats> panels(shapes_.size());
  for (size_t l = 0; l < shapes_.size(); ++l) {
    if (l > 0) pack_backwards(shapes_[l], weights.filters[l], panels[l]);
    std::fill_n(gradients.filters[l], shapes_[l].weights(), 0.0F);
    std::fill_n(gradients.biases[l], shapes_[l].filters, 0.0F);
  }
  const ConvShape& top = shapes_.back();
  for (size_t s = 0; s < num_segments_; ++s) {
    segments_[s]->backward(panels, feature_gradients, gradients);
    feature_gradients +=
        static_cast<i64>(segments_[s]->num_pictures()) * top.out_pixels() * top.filters;
  }
}

}  // namespace scanline
