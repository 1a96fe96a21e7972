// sameness.cpp -- see sameness.h.
#include "sameness.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace scanline {

namespace {

constexpr i32 kWord = 8;  // marks that are asked at once; rows are so much longer

void keep_all(const ConvShape& conv, SamePixels& pixels) {
  pixels.first_of.resize(static_cast<size_t>(conv.out_pixels()));
  std::iota(pixels.first_of.begin(), pixels.first_of.end(), 0);
  pixels.firsts = pixels.first_of;
}

// Whether one of `num` marks is set.
bool any(const u8* marks, i32 num) {
  for (; num > 0; num -= kWord, marks += kWord) {
    u64 word;
    std::memcpy(&word, marks, kWord);
    if (num < kWord) word &= (u64{1} << (8 * num)) - 1;
    if (word) return true;
  }
  return false;
}

// Sets marks where two stretches differ.
template <class T>
void mark_differences(const T* some, const T* others, i32 num, u8* marks) {
  for (i32 x = 0; x < num; ++x) marks[x] |= static_cast<u8>(some[x] != others[x]);
}

void unite(const u8* marks, i32 num_rows, i32 row, u8* out) {
  std::memcpy(out, marks, static_cast<size_t>(row));
  for (i32 y = 1; y < num_rows; ++y)
    for (i32 x = 0; x < row; ++x) out[x] |= marks[y * row + x];
}

}  // namespace

void Sameness::look(const std::vector<ConvShape>& shapes, const Frames& frames, i32 picture) {
  layers_.resize(shapes.size());
  if (!frames.bytes) {
    for (size_t l = 0; l < shapes.size(); ++l) keep_all(shapes[l], layers_[l]);
    return;
  }
  const u8* first = static_cast<const u8*>(frames.data) + picture * frames.picture_stride;
  std::vector<const u8*> planes;
  for (i32 s = 0; s < shapes[0].channels; ++s) planes.push_back(first + s * frames.plane_stride);
  compare(shapes[0], planes.data(), shapes[0].channels);
  join(shapes[0], layers_[0]);
  for (size_t l = 1; l < shapes.size(); ++l) {
    const i32* below = layers_[l - 1].first_of.data();
    compare(shapes[l], &below, 1);
    join(shapes[l], layers_[l]);
  }
}

template <class T>
void Sameness::compare(const ConvShape& conv, const T* const* planes, i32 num_planes) {
  const i32 row = conv.bordered_width() + kWord, stride = conv.stride;
  const size_t num = static_cast<size_t>(conv.bordered_height() * row);
  left_.assign(num, 0);
  up_.assign(num, 0);
  const i32 beside = std::max(conv.width - stride, 0);
  for (i32 y = 0; y < conv.height; ++y) {
    u8* const left = left_.data() + (conv.top + y) * row + conv.left;
    u8* const up = up_.data() + (conv.top + y) * row + conv.left;
    // A pixel is never the same as one of the border.
    std::memset(left, 1, static_cast<size_t>(std::min(stride, conv.width)));
    std::memset(left + conv.width, 1, static_cast<size_t>(std::min(stride, conv.right)));
    if (y < stride) std::memset(up, 1, static_cast<size_t>(conv.width));
    for (i32 s = 0; s < num_planes; ++s) {
      const T* const pixels = planes[s] + y * conv.width;
      mark_differences(pixels + stride, pixels, beside, left + stride);
      if (y >= stride) mark_differences(pixels, pixels - stride * conv.width, conv.width, up);
    }
  }
  for (i32 y = 0; y < std::min(stride, conv.bottom); ++y)
    std::memset(up_.data() + (conv.top + conv.height + y) * row + conv.left, 1,
                static_cast<size_t>(conv.width));
}

void Sameness::join(const ConvShape& conv, SamePixels& pixels) {
  const i32 row = conv.bordered_width() + kWord, width = conv.out_width();
  left_row_.resize(static_cast<size_t>(row));
  up_row_.resize(static_cast<size_t>(row));
  pixels.firsts.clear();
  pixels.first_of.resize(static_cast<size_t>(conv.out_pixels()));
  i32* const first_of = pixels.first_of.data();
  for (i32 y = 0; y < conv.out_height(); ++y) {
    unite(left_.data() + y * conv.stride * row, conv.kernel, row, left_row_.data());
    unite(up_.data() + y * conv.stride * row, conv.kernel, row, up_row_.data());
    for (i32 x = 0; x < width; ++x) {
      const i32 pixel = y * width + x;
      if (x > 0 && !any(left_row_.data() + x * conv.stride, conv.kernel)) {
        first_of[pixel] = first_of[pixel - 1];
      } else if (y > 0 && !any(up_row_.data() + x * conv.stride, conv.kernel)) {
        first_of[pixel] = first_of[pixel - width];
      } else {
        first_of[pixel] = pixel;
        pixels.firsts.push_back(pixel);
      }
    }
  }
}

}  // namespace scanline
