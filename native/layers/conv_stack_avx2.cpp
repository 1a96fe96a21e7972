// conv_stack_avx2.cpp -- see conv_stack.h. Compiled for AVX2 and FMA; entered only where they are.
#include <algorithm>
#include <cstring>
#include <memory>

#include "conv_stack.h"
#include "tiles_avx2.h"
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

// Four planes of bytes to pixels of four floats, for `num` pixels.
void widen_four(const u8* const* planes, i32 num, __m256 scale, __m256 offset, float* out) {
  i32 x = 0;
  for (; x + 16 <= num; x += 16) {
    __m128i plane[4];
    for (i32 s = 0; s < 4; ++s)
      plane[s] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(planes[s] + x));
    const __m128i pairs[4] = {
        _mm_unpacklo_epi8(plane[0], plane[1]), _mm_unpacklo_epi8(plane[2], plane[3]),
        _mm_unpackhi_epi8(plane[0], plane[1]), _mm_unpackhi_epi8(plane[2], plane[3])};
    const __m128i fours[4] = {
        _mm_unpacklo_epi16(pairs[0], pairs[1]), _mm_unpackhi_epi16(pairs[0], pairs[1]),
        _mm_unpacklo_epi16(pairs[2], pairs[3]), _mm_unpackhi_epi16(pairs[2], pairs[3])};
    for (i32 q = 0; q < 4; ++q) {
      for (i32 half = 0; half < 2; ++half) {
        const __m128i eight = half ? _mm_srli_si128(fours[q], 8) : fours[q];
        const __m256 wide = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight));
        _mm256_storeu_ps(out + 4 * x + 16 * q + 8 * half,
                         _mm256_add_ps(_mm256_mul_ps(wide, scale), offset));
      }
    }
  }
  const float by = _mm256_cvtss_f32(scale), plus = _mm256_cvtss_f32(offset);
  for (; x < num; ++x)
    for (i32 s = 0; s < 4; ++s) out[4 * x + s] = static_cast<float>(planes[s][x]) * by + plus;
}

// One picture into the bordered input of the first layer, channels last.
void widen(const Frames& frames, i32 i, const ConvShape& conv, float* input) {
  const i32 stack = conv.channels, row = conv.row_floats();
  float* const inside = input + conv.first_float();
  if (!frames.bytes) {
    const float* first = static_cast<const float*>(frames.data) + i * frames.picture_stride;
    for (i32 y = 0; y < conv.height; ++y)
      for (i32 s = 0; s < stack; ++s)
        for (i32 x = 0; x < conv.width; ++x)
          inside[y * row + x * stack + s] = first[s * frames.plane_stride + y * conv.width + x];
    return;
  }
  const u8* first = static_cast<const u8*>(frames.data) + i * frames.picture_stride;
  for (i32 y = 0; y < conv.height; ++y) {
    if (stack == 4) {
      const u8* planes[4];
      for (i32 s = 0; s < 4; ++s) planes[s] = first + s * frames.plane_stride + y * conv.width;
      widen_four(planes, conv.width, _mm256_set1_ps(frames.scale), _mm256_set1_ps(frames.offset),
                 inside + y * row);
      continue;
    }
    for (i32 s = 0; s < stack; ++s) {
      const u8* plane = first + s * frames.plane_stride + y * conv.width;
      for (i32 x = 0; x < conv.width; ++x)
        inside[y * row + x * stack + s] =
            static_cast<float>(plane[x]) * frames.scale + frames.offset;
    }
  }
}

// What happens to a finished sum of sixteen columns.
struct AddBiasRectify {
  __m256 low, high;
  void operator()(float* to, const float*, __m256 a, __m256 b) const {
    _mm256_storeu_ps(to, _mm256_max_ps(_mm256_add_ps(a, low), _mm256_setzero_ps()));
    _mm256_storeu_ps(to + 8, _mm256_max_ps(_mm256_add_ps(b, high), _mm256_setzero_ps()));
  }
};

// A gradient passes where the activation was positive.
__m256 passed(__m256 gradient, const float* activation) {
  const __m256 open = _mm256_cmp_ps(_mm256_loadu_ps(activation), _mm256_setzero_ps(), _CMP_GT_OQ);
  return _mm256_and_ps(gradient, open);
}

struct PassRectifier {
  void operator()(float* to, const float* activation, __m256 a, __m256 b) const {
    _mm256_storeu_ps(to, passed(a, activation));
    _mm256_storeu_ps(to + 8, passed(b, activation + 8));
  }
};

template <i32 kRows, class Finish>
void walk_rows(const Walk& walk, i32 first, const float* from, const float* panel, float* to,
               const float* masks, const Finish& finish) {
  alignas(32) float sums[kRows * kTileColumns];
  const float* rows[kRows];
  for (i32 i = 0; i < kRows; ++i) rows[i] = from + walk.from[first + i];
  row_products<kRows>(rows, walk.num_runs, walk.run, walk.run_stride, panel, sums);
  for (i32 i = 0; i < kRows; ++i) {
    const float* mask = masks ? masks + walk.mask[first + i] : nullptr;
    finish(to + walk.to[first + i], mask, _mm256_load_ps(sums + i * kTileColumns),
           _mm256_load_ps(sums + i * kTileColumns + 8));
  }
}

// All outputs of a walk for one panel of sixteen columns.
template <class Finish>
void walk_panel(const Walk& walk, const float* from, const float* panel, float* to,
                const float* masks, const Finish& finish) {
  const i32 num = static_cast<i32>(walk.from.size());
  i32 i = 0;
  for (; i + 6 <= num; i += 6) walk_rows<6>(walk, i, from, panel, to, masks, finish);
  for (; i + 3 <= num; i += 3) walk_rows<3>(walk, i, from, panel, to, masks, finish);
  for (; i < num; ++i) walk_rows<1>(walk, i, from, panel, to, masks, finish);
}

// Adds to sums[f][k] over the pixels of some rows: gradient of filter f times input k.
template <i32 kRows>
void filter_tile(const Steps& steps, const float* gradient, const float* input, i32 depth,
                 float* sums) {
  Tile<kRows> tile;
  tile.clear();
  tile = outer_products<kRows>(tile, steps, gradient, input);
#pragma GCC unroll 6
  for (i32 i = 0; i < kRows; ++i) {
    float* sum = sums + i * depth;
    _mm256_storeu_ps(sum, _mm256_add_ps(_mm256_loadu_ps(sum), tile.low[i]));
    _mm256_storeu_ps(sum + 8, _mm256_add_ps(_mm256_loadu_ps(sum + 8), tile.high[i]));
  }
}

// How many tiles of six leave a rest that tiles of four can take.
i32 num_sixes(i32 filters) {
  i32 sixes = filters / 6;
  while ((filters - 6 * sixes) % 4 != 0) --sixes;
  return sixes;
}

void add_filter_gradients(const ConvShape& conv, const float* gradient, const float* input,
                          float* sums) {
  const GradientShape shape(conv);
  const i32 depth = conv.depth(), sixes = num_sixes(conv.filters);
  const i32 rows_at_once = std::max(1, kPixelsAtOnce / conv.out_width());
  Steps steps{0,
              conv.out_width(),
              shape.row_floats(),
              conv.filters,
              conv.stride * conv.row_floats(),
              conv.stride * conv.channels};
  for (i32 y = 0; y < conv.out_height(); y += rows_at_once) {
    steps.num_rows = std::min(conv.out_height() - y, rows_at_once);
    const float* value = gradient + y * steps.value_row;
    for (i32 k = 0; k < depth; k += kTileColumns) {
      const float* column =
          input + y * steps.column_row + k / conv.run() * conv.row_floats() + k % conv.run();
      i32 f = 0;
      for (; f < 6 * sixes; f += 6)
        filter_tile<6>(steps, value + f, column, depth, sums + f * depth + k);
      for (; f < conv.filters; f += 4)
        filter_tile<4>(steps, value + f, column, depth, sums + f * depth + k);
    }
  }
}

void add_bias_gradients(const ConvShape& conv, const float* gradient_first, float* sums) {
  const GradientShape shape(conv);
  for (i32 f = 0; f < conv.filters; f += 8) {
    __m256 sum = _mm256_loadu_ps(sums + f);
    for (i32 y = 0; y < conv.out_height(); ++y) {
      const float* row = gradient_first + y * shape.row_floats() + f;
      for (i32 x = 0; x < conv.out_width(); ++x)
        sum = _mm256_add_ps(sum, _mm256_loadu_ps(row + x * conv.filters));
    }
    _mm256_storeu_ps(sums + f, sum);
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
  for (size_t l = 0; l < shapes_.size(); ++l) {
    const bool last = l + 1 == shapes_.size();
    const i32 to_first = last ? 0 : shapes_[l + 1].first_float();
    const i32 to_row =
        last ? shapes_[l].out_width() * shapes_[l].filters : shapes_[l + 1].row_floats();
    forward_.push_back(forward_walk(shapes_[l], to_first, to_row));
    backward_.emplace_back();
    if (l == 0) continue;
    const GradientShape below(shapes_[l - 1]);
    for (i32 py = 0; py < shapes_[l].stride; ++py)
      for (i32 px = 0; px < shapes_[l].stride; ++px)
        backward_[l].push_back(backward_phase(shapes_[l], below, py, px));
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
      const i32 depth = phase.rows * phase.columns * conv.filters;
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
  for (size_t l = 0; l < shapes_.size(); ++l) {
    const ConvShape& conv = shapes_[l];
    const float* from = l == 0 ? first : kept + kept_first_[l];
    float* to = l + 1 == shapes_.size() ? features : kept + kept_first_[l + 1];
    const float* panel = panels.floats.data() + panels.first[l];
    for (i32 f = 0; f < conv.filters; f += 16, panel += 16 * conv.depth()) {
      const float* bias = weights.biases[l] + f;
      const AddBiasRectify finish{_mm256_loadu_ps(bias), _mm256_loadu_ps(bias + 8)};
      walk_panel(forward_[l], from, panel, to + f, nullptr, finish);
    }
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
  const i32 num_layers = static_cast<i32>(shapes_.size());
  const float* const mine = kept + static_cast<i64>(i) * kept_floats_;
  float* gradient[8];
  for (i32 l = 0; l < num_layers; ++l)
    gradient[l] = scratch(
        2 + l, static_cast<size_t>(GradientShape(shapes_[static_cast<size_t>(l)]).floats()), l > 0);
  const ConvShape& top = shapes_.back();
  const GradientShape top_gradient(top);
  for (i32 y = 0; y < top.out_height(); ++y) {
    const i64 at = static_cast<i64>(i) * feature_floats() + y * top.out_width() * top.filters;
    float* to =
        gradient[num_layers - 1] + top_gradient.first_float() + y * top_gradient.row_floats();
    for (i32 k = 0; k < top.out_width() * top.filters; k += 8)
      _mm256_storeu_ps(to + k,
                       passed(_mm256_loadu_ps(feature_gradients + at + k), features + at + k));
  }
  size_t panel_number = panels.first.size();
  for (i32 l = num_layers - 1; l >= 0; --l) {
    const ConvShape& conv = shapes_[static_cast<size_t>(l)];
    const GradientShape shape(conv);
    const float* input = mine + kept_first_[static_cast<size_t>(l)];
    if (l == 0) {
      const bool border = conv.input_floats() != conv.height * conv.row_floats();
      float* widened = scratch(1, static_cast<size_t>(conv.input_floats()), border);
      widen(frames, i, conv, widened);
      input = widened;
    }
    add_bias_gradients(conv, gradient[l] + shape.first_float(),
                       sums.biases[static_cast<size_t>(l)]);
    add_filter_gradients(conv, gradient[l] + shape.first_float(), input,
                         sums.filters[static_cast<size_t>(l)]);
    if (l == 0) break;
    const std::vector<Phase>& phases = backward_[static_cast<size_t>(l)];
    panel_number -= phases.size();
    for (size_t p = 0; p < phases.size(); ++p) {
      const i32 depth = phases[p].rows * phases[p].columns * conv.filters;
      const float* panel = panels.floats.data() + panels.first[panel_number + p];
      for (i32 c = 0; c < conv.channels; c += 16, panel += 16 * depth)
        walk_panel(phases[p].walk, gradient[l], panel, gradient[l - 1] + c, input + c,
                   PassRectifier{});
    }
  }
}

}  // namespace scanline
