// conv_stack_avx2.cpp -- see conv_stack.h. Compiled for AVX2 and FMA; entered only where they are.
#include <algorithm>
#include <cstring>
#include <memory>

#include "conv_stack.h"
#include "received_avx2.h"
#include "rows_avx2.h"
#include "sameness.h"
#include "tiles_avx2.h"
#include "widen_avx2.h"
#include "workers.h"

namespace scanline {

namespace {

constexpr i32 kParts = 8;  // partial sums of the weights' gradients
constexpr i32 kSumsPerJob = 8192;
constexpr i32 kPixelsAtOnce = 96;  // output pixels whose inputs stay in the first-level cache

using Floats = std::vector<float>;

// Working memory of a thread, kept from call to call.
float* scratch(i32 number, size_t floats, bool zeros = false) {
  static thread_local Floats memory[16];
  Floats& mine = memory[number];
  if (mine.size() < floats) mine.assign(floats, 0.0F);
  if (zeros) std::fill_n(mine.begin(), floats, 0.0F);
  return mine.data();
}

// Where gradient and inputs lie of the pixels that stand for others, in floats.
struct Firsts {
  std::vector<i32> gradient_at, input_at;

  void find(const SamePixels& same, const std::vector<i32>& places, i32 filters,
            const std::vector<i32>& from) {
    gradient_at.clear();
    input_at.clear();
    for (const i32 p : same.firsts) {
      gradient_at.push_back(places[static_cast<size_t>(p)] * filters);
      input_at.push_back(from[static_cast<size_t>(p)]);
    }
  }
};

// Adds to sums[f][k] over some pixels: gradient of filter f times input k.
template <i32 kRows>
void filter_tile(const i32* gradient_at, const i32* input_at, i32 num, const float* gradient,
                 const float* input, i32 depth, float* sums) {
  Tile<kRows> tile;
  tile.clear();
  tile = outer_products(
      tile, num, [=](i32 step) { return gradient + gradient_at[step]; },
      [=](i32 step) { return input + input_at[step]; });
#pragma GCC unroll 6
  for (i32 i = 0; i < kRows; ++i) {
    add_to(sums + i * depth, tile.low[i]);
    add_to(sums + i * depth + 8, tile.high[i]);
  }
}

// How many tiles of six leave a rest that tiles of four can take.
i32 num_sixes(i32 filters) {
  i32 sixes = filters / 6;
  while ((filters - 6 * sixes) % 4 != 0) --sixes;
  return sixes;
}

void add_filter_gradients(const ConvShape& conv, const Firsts& firsts, const float* gradient,
                          const float* input, float* sums) {
  const i32 depth = conv.depth(), sixes = num_sixes(conv.filters);
  const i32 num = static_cast<i32>(firsts.input_at.size());
  for (i32 first = 0; first < num; first += kPixelsAtOnce) {
    const i32 some = std::min(kPixelsAtOnce, num - first);
    const i32* const gradient_at = firsts.gradient_at.data() + first;
    const i32* const input_at = firsts.input_at.data() + first;
    for (i32 k = 0; k < depth; k += kTileColumns) {
      const float* column = input + k / conv.run() * conv.row_floats() + k % conv.run();
      float* const to = sums + k;
      i32 f = 0;
      for (; f < 6 * sixes; f += 6)
        filter_tile<6>(gradient_at, input_at, some, gradient + f, column, depth, to + f * depth);
      for (; f < conv.filters; f += 4)
        filter_tile<4>(gradient_at, input_at, some, gradient + f, column, depth, to + f * depth);
    }
  }
}

void add_bias_gradients(const ConvShape& conv, const Firsts& firsts, const float* gradient,
                        float* sums) {
  for (i32 f = 0; f < conv.filters; f += 8) {
    __m256 sum = _mm256_loadu_ps(sums + f);
    for (const i32 at : firsts.gradient_at)
      sum = _mm256_add_ps(sum, _mm256_loadu_ps(gradient + at + f));
    _mm256_storeu_ps(sums + f, sum);
  }
}

// Gives every pixel the output of the one that stands for it.
void copy_same(const SamePixels& same, const std::vector<i32>& at, i32 filters, float* outputs) {
  if (same.firsts.size() == same.first_of.size()) return;
  for (size_t p = 0; p < at.size(); ++p) {
    const size_t first = static_cast<size_t>(same.first_of[p]);
    if (first != p)
      std::memcpy(outputs + at[p], outputs + at[first],
                  static_cast<size_t>(filters) * sizeof(float));
  }
}

// Sums parts 0, 1, ... in this order, whoever made them.
void add_parts(const float* parts, i64 part_floats, i32 num, float* to) {
  run_jobs((num + kSumsPerJob - 1) / kSumsPerJob,
           [&](i32 job) {
             const i32 last = std::min(num, (job + 1) * kSumsPerJob);
             for (i32 k = job * kSumsPerJob; k < last; ++k) {
               float sum = parts[k];
               for (i32 p = 1; p < kParts; ++p) sum += parts[p * part_floats + k];
               to[k] = sum;
             }
           },
           Size::kLarge);
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

}  // namespace

// Weights in the order in which the tiles read them.
struct ConvStack::Panels {
  Floats floats;
  std::vector<size_t> first;  // of each layer, or of each layer's phases in a row
};

const char* ConvStack::refusal(const std::vector<ConvShape>& shapes) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return "the processor has no AVX2 or FMA";
  if (shapes.empty() || shapes.size() > 8) return "there must be one to eight convolutions";
  for (const ConvShape& conv : shapes) {
    if (conv.filters % kTileColumns != 0) return "filters must be a multiple of 16";
    if (conv.run() % kTileColumns != 0) return "kernel times channels must be a multiple of 16";
    if (conv.kernel < conv.stride) return "the kernel must be at least as wide as its stride";
    if (conv.out_height() < 1 || conv.out_width() < 1) return "the pictures are too small";
  }
  return nullptr;
}

ConvStack::ConvStack(std::vector<ConvShape> shapes) : shapes_(std::move(shapes)) {
  kept_first_.push_back(0);
  for (size_t l = 1; l < shapes_.size(); ++l) {
    kept_first_.push_back(kept_floats_);
    kept_floats_ += shapes_[l].input_floats();
    bordered_ =
        bordered_ || shapes_[l].top || shapes_[l].bottom || shapes_[l].left || shapes_[l].right;
  }
  size_t num_phases = 0;
  for (size_t l = 0; l < shapes_.size(); ++l) {
    const bool last = l + 1 == shapes_.size();
    const ConvShape& conv = shapes_[l];
    const i32 to_first = last ? 0 : shapes_[l + 1].first_float();
    const i32 to_row = last ? conv.out_width() * conv.filters : shapes_[l + 1].row_floats();
    forward_.push_back(forward_walk(conv, to_first, to_row));
    places_.emplace_back();
    for (i32 p = 0; p < conv.out_pixels(); ++p)
      places_[l].push_back(GradientShape(conv).place(p / conv.out_width(), p % conv.out_width()));
    panel_first_.push_back(num_phases);
    backward_.emplace_back();
    for (i32 phase = 0; l > 0 && phase < conv.stride * conv.stride; ++phase)
      backward_[l].push_back(backward_phase(conv, phase / conv.stride, phase % conv.stride));
    num_phases += backward_[l].size();
  }
}

ConvStack::Panels ConvStack::forward_panels(const Weights& weights) const {
  Panels panels;
  for (size_t l = 0; l < shapes_.size(); ++l) {
    const ConvShape& conv = shapes_[l];
    const i32 depth = conv.depth();
    panels.first.push_back(panels.floats.size());
    panels.floats.resize(panels.floats.size() + static_cast<size_t>(conv.weights()));
    float* to = panels.floats.data() + panels.first.back();
    for (i32 f = 0; f < conv.filters; f += 8)
      for (i32 k = 0; k < depth; k += 8)
        turn_eight(weights.filters[l] + f * depth + k, depth,
                   to + (f / 16 * depth + k) * kTileColumns + f % 16);
  }
  return panels;
}

ConvStack::Panels ConvStack::backward_panels(const Weights& weights) const {
  Panels panels;
  for (size_t l = 1; l < shapes_.size(); ++l) {
    const ConvShape& conv = shapes_[l];
    for (const Phase& phase : backward_[l]) {
      const i32 depth = phase.depth();
      panels.first.push_back(panels.floats.size());
      panels.floats.resize(panels.floats.size() + static_cast<size_t>(depth * conv.channels));
      float* to = panels.floats.data() + panels.first.back();
      for (i32 row = 0; row < phase.rows; ++row) {
        for (i32 column = 0; column < phase.columns; ++column) {
          const i32 y = phase.py + conv.stride * (phase.rows - 1 - row);
          const i32 x = phase.px + conv.stride * (phase.columns - 1 - column);
          for (i32 f = 0; f < conv.filters; ++f) {
            const i32 k = (row * phase.columns + column) * conv.filters + f;
            const float* from =
                weights.filters[l] + f * conv.depth() + y * conv.run() + x * conv.channels;
            for (i32 c = 0; c < conv.channels; c += 16)
              std::memcpy(to + (c / 16 * depth + k) * 16, from + c, 16 * sizeof(float));
          }
        }
      }
    }
  }
  return panels;
}

void ConvStack::forward(const Frames& frames, i32 num, const Weights& weights, float* kept,
                        float* features) const {
  const Panels panels = forward_panels(weights);
  run_jobs(
      num,
      [&](i32 i) {
        const size_t block = static_cast<size_t>(kept_floats_);
        float* mine = kept ? kept + static_cast<size_t>(i) * block : scratch(14, block);
        if (bordered_) std::fill_n(mine, block, 0.0F);
        forward_picture(frames, i, panels, weights, mine,
                        features + static_cast<i64>(i) * feature_floats());
      },
      size_of(num));
}

void ConvStack::forward_picture(const Frames& frames, i32 i, const Panels& panels,
                                const Weights& weights, float* kept, float* features) const {
  const bool border = shapes_[0].input_floats() != shapes_[0].height * shapes_[0].row_floats();
  float* const first = scratch(1, static_cast<size_t>(shapes_[0].input_floats()), border);
  widen(frames, i, shapes_[0], first);
  static thread_local Sameness same;
  static thread_local Rows rows;
  same.look(shapes_, frames, i);
  for (size_t l = 0; l < shapes_.size(); ++l) {
    const ConvShape& conv = shapes_[l];
    const Walk& walk = forward_[l];
    const float* from = l == 0 ? first : kept + kept_first_[l];
    float* to = l + 1 == shapes_.size() ? features : kept + kept_first_[l + 1];
    rows.clear();
    for (const i32 p : same.layer(l).firsts)
      rows.add(walk.from[static_cast<size_t>(p)], walk.to[static_cast<size_t>(p)], 0);
    const float* panel = panels.floats.data() + panels.first[l];
    for (i32 f = 0; f < conv.filters; f += 16, panel += 16 * conv.depth()) {
      const float* bias = weights.biases[l] + f;
      const __m256 low = _mm256_loadu_ps(bias), high = _mm256_loadu_ps(bias + 8);
      sum_panel(walk.sum, rows, from, panel, AddBiasRectify{to + f, low, high});
    }
    copy_same(same.layer(l), walk.to, conv.filters, to);
  }
}

void ConvStack::backward(const Frames& frames, i32 num, const Weights& weights, const float* kept,
                         const float* features, const float* feature_gradients,
                         const Gradients& gradients) const {
  const Panels panels = backward_panels(weights);
  i64 part_floats = 0;
  for (const ConvShape& conv : shapes_) part_floats += conv.weights() + conv.filters;
  float* const parts = scratch(0, static_cast<size_t>(kParts * part_floats));
  run_jobs(
      kParts,
      [&](i32 part) {
        Gradients sums;
        float* next = parts + part * part_floats;
        std::fill_n(next, part_floats, 0.0F);
        for (const ConvShape& conv : shapes_) {
          sums.filters.push_back(next);
          sums.biases.push_back(next + conv.weights());
          next += conv.weights() + conv.filters;
        }
        for (i32 i = num * part / kParts; i < num * (part + 1) / kParts; ++i)
          backward_picture(frames, i, panels, kept, features, feature_gradients, sums);
      },
      size_of(num));
  const float* first = parts;
  for (size_t l = 0; l < shapes_.size(); ++l) {
    add_parts(first, part_floats, shapes_[l].weights(), gradients.filters[l]);
    first += shapes_[l].weights();
    add_parts(first, part_floats, shapes_[l].filters, gradients.biases[l]);
    first += shapes_[l].filters;
  }
}

void ConvStack::backward_picture(const Frames& frames, i32 i, const Panels& panels,
                                 const float* kept, const float* features,
                                 const float* feature_gradients, const Gradients& sums) const {
  static thread_local Sameness same;
  static thread_local Firsts firsts;
  same.look(shapes_, frames, i);
  const i64 at = static_cast<i64>(i) * feature_floats();
  const float* const mine = kept + static_cast<i64>(i) * kept_floats_;
  const size_t top = shapes_.size() - 1;
  float* gradient = gradient_memory(top);
  take_feature_gradients(same.layer(top), features + at, feature_gradients + at, gradient);
  for (size_t l = top;; --l) {
    const ConvShape& conv = shapes_[l];
    const float* input = mine + kept_first_[l];
    if (l == 0) {
      const bool border = conv.input_floats() != conv.height * conv.row_floats();
      float* widened = scratch(1, static_cast<size_t>(conv.input_floats()), border);
      widen(frames, i, conv, widened);
      input = widened;
    }
    firsts.find(same.layer(l), places_[l], conv.filters, forward_[l].from);
    add_bias_gradients(conv, firsts, gradient, sums.biases[l]);
    add_filter_gradients(conv, firsts, gradient, input, sums.filters[l]);
    if (l == 0) break;
    float* const below = gradient_memory(l - 1);
    backward_inputs(l, same, panels, gradient, input, below);
    gradient = below;
  }
}

// Zeros for the bordered gradient of a layer.
float* ConvStack::gradient_memory(size_t layer) const {
  const ConvShape& conv = shapes_[layer];
  return scratch(2 + static_cast<i32>(layer),
                 static_cast<size_t>(GradientShape(conv).pixels() * conv.filters), true);
}

// The gradient of the last layer, gathered where an output stands for others.
void ConvStack::take_feature_gradients(const SamePixels& same, const float* features,
                                       const float* feature_gradients, float* gradient) const {
  const i32 filters = shapes_.back().filters;
  for (size_t p = 0; p < same.first_of.size(); ++p) {
    const size_t from = p * static_cast<size_t>(filters);
    float* const to = gradient + places_.back()[static_cast<size_t>(same.first_of[p])] * filters;
    for (i32 f = 0; f < filters; f += 8)
      add_to(to + f, passed(_mm256_loadu_ps(feature_gradients + from + f), features + from + f));
  }
}

// From the gradient of a layer's outputs to that of its inputs, where one stands for others.
void ConvStack::backward_inputs(size_t layer, const Sameness& same, const Panels& panels,
                                const float* gradient, const float* input, float* below) const {
  static thread_local Received received;
  static thread_local std::vector<u8> filled;
  const ConvShape& conv = shapes_[layer];
  filled.assign(static_cast<size_t>(GradientShape(conv).pixels()), 0);
  for (const i32 p : same.layer(layer).firsts)
    filled[static_cast<size_t>(places_[layer][static_cast<size_t>(p)])] = 1;
  const InputsOfLayer inputs{same.layer(layer - 1), places_[layer - 1], forward_[layer - 1].to};
  for (size_t p = 0; p < backward_[layer].size(); ++p) {
    const Phase& phase = backward_[layer][p];
    received.gather(conv, phase, filled, gradient, inputs);
    const float* panel = panels.floats.data() + panels.first[panel_first_[layer] + p];
    for (i32 c = 0; c < conv.channels; c += 16, panel += 16 * phase.depth()) {
      const AddPassed finish{below + c, input + c};
      sum_panel(phase.sum, received.single, gradient, panel, finish);
      sum_panel({1, phase.depth(), 0}, received.summed, received.patches.data(), panel, finish);
    }
  }
}

}  // namespace scanline
