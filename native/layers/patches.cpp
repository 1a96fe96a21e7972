// patches.cpp -- see patches.h.
#include "patches.h"

#include <algorithm>
#include <cstring>

namespace scanline {

namespace {

constexpr i32 kWord = 8;  // marks that are asked at once; rows of marks are so much longer

std::vector<TapGrid> grids_of(const std::vector<ConvShape>& shapes) {
  std::vector<TapGrid> grids{strips_of(shapes[0])};
  for (size_t l = 1; l < shapes.size(); ++l) grids.push_back(pixels_of(shapes[l]));
  return grids;
}

// Words of a strip's pixels; one more says how far it lies outside.
template <class T>
i32 pixel_words(const ConvShape& conv) {
  return conv.run() * static_cast<i32>(sizeof(T)) / static_cast<i32>(sizeof(u32));
}

bool any(const u8* marks, i32 num) {
  for (; num > 0; num -= kWord, marks += kWord) {
    u64 word;
    std::memcpy(&word, marks, kWord);
    if (num < kWord) word &= (u64{1} << (8 * num)) - 1;
    if (word) return true;
  }
  return false;
}

// Where `num` places that begin at `first` overlap with 0 .. `end`.
struct Inside {
  i32 from, to;
  Inside(i32 first, i32 num, i32 end) : from(std::max(first, 0)), to(std::min(first + num, end)) {}
};

}  // namespace

Patches::Patches(const std::vector<ConvShape>& shapes)
    : first_(shapes[0]), grids_(grids_of(shapes)), strips_(pixel_words<u8>(first_) + 1) {
  for (const TapGrid& grid : grids_) {
    keys_.emplace_back(grid.num_taps());
    now_.emplace_back(static_cast<size_t>(grid.height * grid.width));
    changed_.emplace_back(now_.back().size() + kWord);
  }
  const TapGrid& top = grids_.back();
  now_.emplace_back(static_cast<size_t>(top.out_pixels()));
  changed_.emplace_back(now_.back().size() + kWord);
  clear();
}

void Patches::clear() {
  strips_.clear();
  strip_floats_.assign(static_cast<size_t>(first_.run()), 0.0F);
  for (Numbered& keys : keys_) keys.clear();
  num_pictures_ = 0;
  outputs_.clear();
}

bool Patches::takes(const Frames& frames) const {
  return num_pictures_ == 0 || (frames.bytes == kind_.bytes && frames.scale == kind_.scale &&
                                frames.offset == kind_.offset);
}

void Patches::look(const Frames& frames, i32 first, i32 num) {
  kind_ = frames;
  if (num == 0) return;
  if (frames.bytes) {
    look_at<u8>(frames, first, num);
  } else {
    look_at<u32>(frames, first, num);
  }
}

template <class T>
void Patches::look_at(const Frames& frames, i32 first, i32 num) {
  const auto picture = [&](i32 i) {
    return static_cast<const T*>(frames.data) + i * frames.picture_stride;
  };
  if (num_pictures_ == 0) strips_.take_words(pixel_words<T>(first_) + 1);
  const T* before = num_pictures_ == 0 ? nullptr : reinterpret_cast<const T*>(last_picture_.data());
  i64 before_stride = first_.height * first_.width;
  for (i32 i = first; i < first + num; ++i) {
    find_strips(picture(i), before, frames.plane_stride, before_stride);
    for (size_t l = 0; l < grids_.size(); ++l) find_outputs(l);
    outputs_.insert(outputs_.end(), now_.back().begin(), now_.back().end());
    before = picture(i);
    before_stride = frames.plane_stride;
    ++num_pictures_;
  }
  remember(before, before_stride);
}

// The next pictures may come when this one is no longer there.
template <class T>
void Patches::remember(const T* picture, i64 plane_stride) {
  const size_t bytes = static_cast<size_t>(first_.height * first_.width) * sizeof(T);
  last_picture_.resize(bytes * static_cast<size_t>(first_.channels));
  for (i32 s = 0; s < first_.channels; ++s)
    std::memcpy(last_picture_.data() + static_cast<size_t>(s) * bytes, picture + s * plane_stride,
                bytes);
}

template <class T>
void Patches::find_strips(const T* picture, const T* before, i64 plane_stride, i64 before_stride) {
  const i32 width = first_.width, columns = grids_[0].width;
  row_marks_.assign(static_cast<size_t>(width + kWord), 1);
  for (i32 y = 0; y < first_.height; ++y) {
    u8* const marks = row_marks_.data();
    if (before) {
      std::memset(marks, 0, static_cast<size_t>(width));
      for (i32 s = 0; s < first_.channels; ++s) {
        const T* const some = picture + s * plane_stride + y * width;
        const T* const others = before + s * before_stride + y * width;
        for (i32 x = 0; x < width; ++x) marks[x] |= static_cast<u8>(some[x] != others[x]);
      }
    }
    i32* const now = now_[0].data() + y * columns;
    u8* const changed = changed_[0].data() + y * columns;
    std::memset(changed, 0, static_cast<size_t>(columns));
    if (!any(marks, width)) continue;
    for (i32 c = 0; c < columns; ++c) {
      const Inside inside(c * first_.stride - first_.left, first_.kernel, width);
      if (!any(marks + inside.from, inside.to - inside.from)) continue;
      const i32 number = number_strip(picture + y * width, plane_stride, c);
      changed[c] = static_cast<u8>(!before || number != now[c]);
      now[c] = number;
    }
  }
}

template <class T>
i32 Patches::number_strip(const T* row, i64 plane_stride, i32 column) {
  const i32 x = column * first_.stride - first_.left, kernel = first_.kernel;
  const Inside inside(x, kernel, first_.width);
  key_.assign(static_cast<size_t>(strips_.row_words()), 0);
  T* const strip = reinterpret_cast<T*>(key_.data());
  for (i32 s = 0; s < first_.channels; ++s)
    std::memcpy(strip + s * kernel + inside.from - x, row + s * plane_stride + inside.from,
                static_cast<size_t>(std::max(inside.to - inside.from, 0)) * sizeof(T));
  // A border is zero when bytes have been scaled: it must not be taken for bytes of zero.
  key_[static_cast<size_t>(pixel_words<T>(first_))] =
      static_cast<u32>((inside.from - x) | (x + kernel - inside.to) << 16);
  const i32 num = strips_.num(), number = strips_.number_of(key_.data());
  if (number > num) widen_strip(strip);
  return number;
}

// Appends the floats of a new strip, channels last.
template <class T>
void Patches::widen_strip(const T* strip) {
  const u32 outside = key_[static_cast<size_t>(pixel_words<T>(first_))];
  const i32 from = static_cast<i32>(outside & 0xFFFF);
  const i32 to = first_.kernel - static_cast<i32>(outside >> 16);
  const size_t at = strip_floats_.size();
  strip_floats_.resize(at + static_cast<size_t>(first_.run()), 0.0F);
  float* const out = strip_floats_.data() + at;
  for (i32 x = from; x < to; ++x)
    for (i32 s = 0; s < first_.channels; ++s) {
      const T value = strip[s * first_.kernel + x];
      float& to_float = out[x * first_.channels + s];
      if (sizeof(T) == 1) {
        to_float = static_cast<float>(value) * kind_.scale + kind_.offset;
      } else {
        std::memcpy(&to_float, &value, sizeof(float));
      }
    }
}

void Patches::find_outputs(size_t layer) {
  const TapGrid& grid = grids_[layer];
  const u8* const below = changed_[layer].data();
  row_marks_.resize(static_cast<size_t>(grid.width + kWord));
  const bool all = num_pictures_ == 0;
  for (i32 y = 0; y < grid.out_height; ++y) {
    const Inside rows(y * grid.row_stride - grid.top, grid.rows, grid.height);
    u8* const marks = row_marks_.data();
    std::memset(marks, all ? 1 : 0, static_cast<size_t>(grid.width));
    for (i32 r = rows.from; r < rows.to; ++r)
      for (i32 x = 0; x < grid.width; ++x) marks[x] |= below[r * grid.width + x];
    u8* const changed = changed_[layer + 1].data() + y * grid.out_width;
    i32* const now = now_[layer + 1].data() + y * grid.out_width;
    std::memset(changed, 0, static_cast<size_t>(grid.out_width));
    if (!any(marks, grid.width)) continue;
    for (i32 x = 0; x < grid.out_width; ++x) {
      const Inside columns(x * grid.column_stride - grid.left, grid.columns, grid.width);
      if (!any(marks + columns.from, columns.to - columns.from)) continue;
      const i32 number = number_output(layer, y, x);
      changed[x] = static_cast<u8>(all || number != now[x]);
      now[x] = number;
    }
  }
}

i32 Patches::number_output(size_t layer, i32 y, i32 x) {
  const TapGrid& grid = grids_[layer];
  const i32 top = y * grid.row_stride - grid.top, left = x * grid.column_stride - grid.left;
  const Inside rows(top, grid.rows, grid.height), columns(left, grid.columns, grid.width);
  key_.assign(static_cast<size_t>(keys_[layer].row_words()), 0);
  for (i32 r = rows.from; r < rows.to; ++r)
    std::memcpy(key_.data() + (r - top) * grid.columns + columns.from - left,
                now_[layer].data() + r * grid.width + columns.from,
                static_cast<size_t>(columns.to - columns.from) * sizeof(u32));
  return keys_[layer].number_of(key_.data());
}

}  // namespace scanline
