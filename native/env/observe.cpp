// observe.cpp -- the pooling and resampling that observe.h promises.
#include "observe.h"

#include <cmath>
#include <cstring>
#include <numeric>

namespace scanline {
namespace {

RowRange kept_rows(Crop crop, i32 height) {
  switch (crop) {
    case Crop::kBottomTwo:
      return {0, height - 2};
    case Crop::kBothEnds:
      return {1, height - 1};
    case Crop::kFirst210:
      return {0, std::min(height, 210)};
    case Crop::kNone:
      break;
  }
  return {0, height};
}

// OpenCV's RGB2GRAY for bytes, 15-bit weights.
u8 opencv_grey(i32 red, i32 green, i32 blue) {
  return static_cast<u8>((red * 9798 + green * 19235 + blue * 3735 + (1 << 14)) >> 15);
}

// Luminance cut to a whole number, as in the agents that followed Mnih et al. 2015.
u8 truncated_luma(i32 red, i32 green, i32 blue) {
  return static_cast<u8>(0.299 * red + 0.587 * green + (1.0 - (0.299 + 0.587)) * blue);
}

u8 grey_of(FrameColour colour, i32 red, i32 green, i32 blue) {
  return colour == FrameColour::kLuma ? truncated_luma(red, green, blue)
                                      : opencv_grey(red, green, blue);
}

bool is_halving(const EnvSettings& settings, i32 rows) {
  return rows == 2 * settings.height && kScreenWidth == 2 * settings.width;
}

void halve(const u8* plane, i32 height, i32 width, u8* target) {
  for (i32 y = 0; y < height; ++y) {
    const u8* upper = plane + 2 * y * kScreenWidth;
    const u8* lower = upper + kScreenWidth;
    for (i32 x = 0; x < width; ++x) {
      const i32 sum = upper[2 * x] + upper[2 * x + 1] + lower[2 * x] + lower[2 * x + 1];
      target[y * width + x] = static_cast<u8>((sum + 2) >> 2);
    }
  }
}

// OpenCV's area resize by whole factors: an integer sum times a float32 reciprocal.
void average_cells(const u8* plane, i32 rows, const EnvSettings& settings, u8* target) {
  const i32 cell_height = rows / settings.height, cell_width = kScreenWidth / settings.width;
  const float scale = 1.0f / static_cast<float>(cell_height * cell_width);
  for (i32 y = 0; y < settings.height; ++y) {
    for (i32 x = 0; x < settings.width; ++x) {
      i32 sum = 0;
      for (i32 k = 0; k < cell_height * cell_width; ++k) {
        sum += plane[(y * cell_height + k / cell_width) * kScreenWidth + x * cell_width +
                     k % cell_width];
      }
      *target++ = static_cast<u8>(std::lrintf(static_cast<float>(sum) * scale));
    }
  }
}

void pick_nearest(const u8* plane, const FixedAxis& axis_y, const FixedAxis& axis_x, u8* target) {
  for (i32 y = 0; y < axis_y.target; ++y) {
    const u8* line = plane + axis_y.first[static_cast<size_t>(y)] * kScreenWidth;
    for (i32 x = 0; x < axis_x.target; ++x) *target++ = line[axis_x.first[static_cast<size_t>(x)]];
  }
}

// OpenCV's INTER_LINEAR for bytes: 11-bit weights, the vertical products cut to 16 bits.
void interpolate(const u8* plane, const FixedAxis& axis_y, const FixedAxis& axis_x, u8* target) {
  const auto along_line = [&](i32 y, i32 x) {
    const u8* line = plane + y * kScreenWidth;
    const i32 first = axis_x.first[static_cast<size_t>(x)];
    const i32 second = std::min(first + 1, axis_x.source - 1);
    return line[first] * axis_x.at(x, 0) + line[second] * axis_x.at(x, 1);
  };
  for (i32 y = 0; y < axis_y.target; ++y) {
    const i32 upper = axis_y.first[static_cast<size_t>(y)];
    const i32 lower = std::min(upper + 1, axis_y.source - 1);
    for (i32 x = 0; x < axis_x.target; ++x) {
      const i32 above = (axis_y.at(y, 0) * (along_line(upper, x) >> 4)) >> 16;
      const i32 below = (axis_y.at(y, 1) * (along_line(lower, x) >> 4)) >> 16;
      *target++ = static_cast<u8>((above + below + 2) >> 2);
    }
  }
}

u8 pillow_byte(i32 sum) { return static_cast<u8>(std::clamp(sum >> 22, 0, 255)); }

// Pillow's two passes: across into bytes, then down into bytes.
void convolve(const u8* plane, const FixedAxis& axis_y, const FixedAxis& axis_x, u8* narrowed,
              u8* target) {
  constexpr i32 kHalf = 1 << 21;
  for (i32 y = 0; y < axis_y.source; ++y) {
    for (i32 x = 0; x < axis_x.target; ++x) {
      i32 sum = kHalf;
      const i32 first = axis_x.first[static_cast<size_t>(x)];
      for (i32 tap = 0; tap < axis_x.num_taps && first + tap < axis_x.source; ++tap) {
        sum += plane[y * kScreenWidth + first + tap] * axis_x.at(x, tap);
      }
      narrowed[y * axis_x.target + x] = pillow_byte(sum);
    }
  }
  for (i32 y = 0; y < axis_y.target; ++y) {
    const i32 first = axis_y.first[static_cast<size_t>(y)];
    for (i32 x = 0; x < axis_x.target; ++x) {
      i32 sum = kHalf;
      for (i32 tap = 0; tap < axis_y.num_taps && first + tap < axis_y.source; ++tap) {
        sum += narrowed[(first + tap) * axis_x.target + x] * axis_y.at(y, tap);
      }
      *target++ = pillow_byte(sum);
    }
  }
}

}  // namespace

const char* Observer::refusal(const EnvSettings& settings, i32 source_height) {
  const RowRange rows = kept_rows(settings.crop, source_height);
  const i32 num_rows = rows.end - rows.begin;
  if (settings.colour == FrameColour::kAsIs)
    return "colour 'as-is' is for other engines than this one";
  if (settings.colour == FrameColour::kRam) return nullptr;
  if (settings.height < 1 || settings.width < 1 || settings.height > 1024 || settings.width > 1024)
    return "an observation must have 1 to 1024 rows and columns";
  if (settings.resize == Resize::kNone) {
    if (settings.height != num_rows || settings.width != kScreenWidth)
      return "resize 'none' keeps the picture's size; set height and width to it";
  } else if (settings.height > num_rows || settings.width > kScreenWidth) {
    return "an observation cannot be larger than the picture";
  }
  if (settings.resize == Resize::kArea && num_rows > settings.height * (kMaxAreaTaps - 2))
    return "resize 'area' reduces the height at most 13 times";
  return nullptr;
}

Observer::Observer(const EnvSettings& settings, i32 source_height, const PaletteView& palette)
    : settings_(settings),
      source_height_(source_height),
      rows_(kept_rows(settings.crop, source_height)),
      num_channels_(settings.colour == FrameColour::kRgb ? 3 : 1),
      frame_bytes_(settings.colour == FrameColour::kRam
                       ? 128
                       : num_channels_ * settings.height * settings.width) {
  for (size_t i = 0; i < 256; ++i) {
    const u8* rgb = palette.rgb + 3 * i;
    for (size_t c = 0; c < 3; ++c) values_[c][i] = rgb[c];
    if (settings.colour == FrameColour::kGrey) values_[0][i] = palette.grey[i];
    if (settings.colour == FrameColour::kLuma)
      values_[0][i] = truncated_luma(rgb[0], rgb[1], rgb[2]);
  }
  const bool one_channel =
      settings.colour == FrameColour::kGrey || settings.colour == FrameColour::kLuma;
  if (one_channel && settings.pooling == Pooling::kRgb) build_luma(palette);
  const i32 num_rows = rows_.end - rows_.begin;
  switch (settings.resize) {
    case Resize::kArea:
      build_plan();
      break;
    case Resize::kLinear:
    case Resize::kHalf:
      fixed_x_ = linear_axis(kScreenWidth, settings.width);
      fixed_y_ = linear_axis(num_rows, settings.height);
      break;
    case Resize::kBilinear:
      fixed_x_ = triangle_axis(kScreenWidth, settings.width);
      fixed_y_ = triangle_axis(num_rows, settings.height);
      break;
    case Resize::kNearest:
      fixed_x_ = nearest_axis(kScreenWidth, settings.width);
      fixed_y_ = nearest_axis(num_rows, settings.height);
      break;
    case Resize::kNone:
      break;
  }
}

void Observer::build_luma(const PaletteView& palette) {
  pair_grey_.resize(256 * 256);
  for (size_t a = 0; a < 256; ++a) {
    for (size_t b = 0; b < 256; ++b) {
      const u8 *first = palette.rgb + 3 * a, *second = palette.rgb + 3 * b;
      pair_grey_[256 * a + b] =
          grey_of(settings_.colour, std::max(first[0], second[0]), std::max(first[1], second[1]),
                  std::max(first[2], second[2]));
    }
  }
}

void Observer::build_plan() {
  const i32 num_rows = rows_.end - rows_.begin;
  whole_cells_ = num_rows % settings_.height == 0 && kScreenWidth % settings_.width == 0;
  if (whole_cells_) return;
  area_x_ = area_axis(kScreenWidth, settings_.width);
  area_y_ = area_axis(num_rows, settings_.height);
  for (i32 y = 0; y < area_y_.target; ++y) {
    for (i32 tap = 0; tap < area_y_.num_taps; ++tap) weight_y_.push_back(area_y_.at(y, tap));
  }
  plan_ = {area_y_.target,
           area_x_.target,
           area_x_.padded,
           area_x_.num_taps,
           area_y_.num_taps,
           area_x_.first.data(),
           area_y_.first.data(),
           area_x_.weight.data(),
           weight_y_.data(),
           settings_.height / std::gcd(num_rows, settings_.height),
           1,
           nullptr,
           true};
  while (plan_.ring_mask <= plan_.taps_y) plan_.ring_mask = 2 * plan_.ring_mask + 1;
  for (i32 x = 0; x < area_x_.padded; ++x) {
    const i32 place =
        area_x_.first[static_cast<size_t>(x)] - area_x_.first[static_cast<size_t>(x / 8 * 8)];
    if (place > 15) plan_.shuffles = false;
    shuffle_x_.push_back(static_cast<u8>(place));
    if (x % 8 == 7) shuffle_x_.insert(shuffle_x_.end(), 8, 0x80);
  }
  plan_.shuffle_x = shuffle_x_.data();
  pass_ = best_area_pass(plan_);
  fused_ = num_channels_ == 1 && pair_grey_.empty();
}

void Observer::observe(const u8* older, const u8* newer, u8* target, Scratch& scratch,
                       u8* pooled) const {
  if (settings_.pooling == Pooling::kNone) older = newer;
  if (fused_) {
    const i32 skipped = rows_.begin * kScreenWidth;
    pass_({older + skipped, newer + skipped, values_[0].data()}, plan_, target,
          pooled == nullptr ? nullptr : pooled + skipped);
    return;
  }
  if (pooled == nullptr) {
    scratch.pooled.resize(static_cast<size_t>(pooled_bytes()));
    pooled = scratch.pooled.data();
  }
  pool(older, newer, pooled);
  observe_pooled(pooled, target, scratch);
}

void Observer::observe_pooled(const u8* pooled, u8* target, Scratch& scratch) const {
  const i32 plane_bytes = source_height_ * kScreenWidth;
  if (num_channels_ == 1) {
    resize_plane(pooled, target, scratch);
    return;
  }
  const i32 target_pixels = settings_.height * settings_.width;
  scratch.plane.resize(static_cast<size_t>(target_pixels));
  for (i32 c = 0; c < 3; ++c) {
    resize_plane(pooled + c * plane_bytes, scratch.plane.data(), scratch);
    for (i32 i = 0; i < target_pixels; ++i)
      target[3 * i + c] = scratch.plane[static_cast<size_t>(i)];
  }
}

void Observer::resize_plane(const u8* plane, u8* target, Scratch& scratch) const {
  plane += rows_.begin * kScreenWidth;
  const i32 num_rows = rows_.end - rows_.begin;
  switch (settings_.resize) {
    case Resize::kNone:
      std::memcpy(target, plane, static_cast<size_t>(num_rows * kScreenWidth));
      break;
    case Resize::kArea:
      if (is_halving(settings_, num_rows)) {
        halve(plane, settings_.height, settings_.width, target);
      } else if (whole_cells_) {
        average_cells(plane, num_rows, settings_, target);
      } else {
        pass_({plane, plane, nullptr}, plan_, target, nullptr);
      }
      break;
    case Resize::kHalf:
    case Resize::kLinear:
      if (is_halving(settings_, num_rows)) {
        halve(plane, settings_.height, settings_.width, target);
      } else {
        interpolate(plane, fixed_y_, fixed_x_, target);
      }
      break;
    case Resize::kBilinear:
      scratch.narrowed.resize(static_cast<size_t>(num_rows * settings_.width));
      convolve(plane, fixed_y_, fixed_x_, scratch.narrowed.data(), target);
      break;
    case Resize::kNearest:
      pick_nearest(plane, fixed_y_, fixed_x_, target);
      break;
  }
}

void Observer::pool(const u8* older, const u8* newer, u8* pooled) const {
  if (!pair_grey_.empty()) {
    pool_pairs(older, newer, pooled);
    return;
  }
  for (i32 c = 0; c < num_channels_; ++c) {
    pool_channel(older, newer, values_[static_cast<size_t>(c)].data(),
                 pooled + c * source_height_ * kScreenWidth);
  }
}

void Observer::pool_channel(const u8* older, const u8* newer, const u8* values, u8* pooled) const {
  for (i32 i = 0; i < source_height_ * kScreenWidth; ++i) {
    pooled[i] = std::max(values[older[i]], values[newer[i]]);
  }
}

void Observer::pool_pairs(const u8* older, const u8* newer, u8* pooled) const {
  for (i32 i = 0; i < source_height_ * kScreenWidth; ++i) {
    pooled[i] = pair_grey_[256u * older[i] + newer[i]];
  }
}

void Observer::pool_into(const u8* picture, u8* pooled) const {
  const i32 plane_bytes = source_height_ * kScreenWidth;
  for (i32 c = 0; c < num_channels_; ++c) {
    const u8* values = values_[static_cast<size_t>(c)].data();
    u8* plane = pooled + c * plane_bytes;
    for (i32 i = 0; i < plane_bytes; ++i) plane[i] = std::max(plane[i], values[picture[i]]);
  }
}

}  // namespace scanline
