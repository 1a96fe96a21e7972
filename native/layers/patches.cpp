// patches.cpp -- see patches.h.
#include "patches.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "../threads/patience.h"

namespace scanline {

namespace {

constexpr i32 kWord = 8;  // marks that are asked at once; rows of marks are so much longer
constexpr i32 kMostLanes = 32;

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

u64 word_at(const void* bytes) {
  u64 word;
  std::memcpy(&word, bytes, kWord);
  return word;
}

// Most strips are eight pixels wide.
template <class T>
void copy_some(const T* from, i32 num, T* to) {
  if (num == 8) {
    std::memcpy(to, from, 8 * sizeof(T));
  } else {
    for (i32 i = 0; i < num; ++i) to[i] = from[i];
  }
}

// Where `num` places that begin at `first` overlap with 0 .. `end`.
struct Inside {
  i32 from, to;
  Inside(i32 first, i32 num, i32 end) : from(std::max(first, 0)), to(std::min(first + num, end)) {}
};

}  // namespace

Patches::Windows Patches::windows_of(i32 num, i32 stride, i32 before, i32 size, i32 end) {
  Windows windows;
  for (i32 i = 0; i < num; ++i) {
    const Inside inside(i * stride - before, size, end);
    const i32 places = std::max(inside.to - inside.from, 0);
    const u64 mask = places >= kWord ? ~u64{0} : (u64{1} << (8 * places)) - 1;
    windows.push_back({places > 0 ? inside.from : 0, mask});
  }
  return windows;
}

// Asks all windows first: the answers are hard to foresee.
template <class Visit>
void Patches::for_each_marked(const u8* marks, const Windows& windows, const Visit& visit) {
  constexpr size_t kAtOnce = 64;
  for (size_t first = 0; first < windows.size(); first += kAtOnce) {
    const size_t num = std::min(kAtOnce, windows.size() - first);
    u64 hits = 0;
    for (size_t i = 0; i < num; ++i) {
      const Window& window = windows[first + i];
      hits |= static_cast<u64>((word_at(marks + window.from) & window.mask) != 0) << i;
    }
    for (; hits != 0; hits &= hits - 1) visit(static_cast<i32>(first) + __builtin_ctzll(hits));
  }
}

Patches::Patches(const std::vector<ConvShape>& shapes)
    : first_(shapes[0]), grids_(grids_of(shapes)), strips_(pixel_words<u8>(first_) + 1) {
  windows_.push_back(
      windows_of(grids_[0].width, first_.stride, first_.left, first_.kernel, first_.width));
  i32 width = 0;
  for (const TapGrid& grid : grids_) {
    windows_.push_back(
        windows_of(grid.out_width, grid.column_stride, grid.left, grid.columns, grid.width));
    keys_.emplace_back(grid.num_taps());
    changed_.emplace_back(static_cast<size_t>(grid.out_pixels() + kWord));
    width = std::max(width, grid.width);
  }
  strip_marks_.resize(static_cast<size_t>(first_.width + kWord));
  row_marks_.resize(static_cast<size_t>(width + kWord));
  clear();
}

void Patches::clear(bool marks_all) {
  marks_all_ = marks_all;
  strips_.clear();
  strip_floats_.assign(static_cast<size_t>(first_.run()), 0.0F);
  strip_present_.assign(static_cast<size_t>(words_for(first_.run())), 0);
  if (marks_all_) mark_all(first_.run(), strip_present_.data());
  for (Numbered& keys : keys_) keys.clear();
  num_pictures_ = num_lanes_ = 0;
  outputs_.clear();
}

bool Patches::takes(const Frames& frames) const {
  return num_pictures_ == 0 || (frames.bytes == kind_.bytes && frames.scale == kind_.scale &&
                                frames.offset == kind_.offset);
}

void Patches::look(const Frames& frames, i32 first, i32 num) {
  if (num_pictures_ == 0)
    strips_.take_words((frames.bytes ? pixel_words<u8>(first_) : pixel_words<u32>(first_)) + 1);
  kind_ = frames;
  for (i32 done = 0; done < num; done += kMostLanes) {
    const i32 some = std::min(kMostLanes, num - done);
    make_lanes(some);
    look_at(Round{frames, first + done}, some, size_of(num));
    num_lanes_ = std::max(num_lanes_, some);
    num_pictures_ += some;
  }
}

// Jobs begin in their order: a thread that waits for strips knows that another one finds them.
void Patches::look_at(const Round& round, i32 num, Size size) {
  std::atomic<i32> num_found{0};
  std::atomic<bool> failed{false};
  const auto find_all_strips = [&] {
    try {
      for (i32 lane = 0; lane < num; ++lane) {
        find_strips(round, lane);
        num_found.store(lane + 1, std::memory_order_release);
      }
    } catch (...) {
      failed.store(true);
      throw;
    }
  };
  const auto find_all_outputs = [&] {
    for (i32 lane = 0; lane < num; ++lane) {
      const auto is_found = [&] { return num_found.load(std::memory_order_acquire) > lane; };
      require_from_thread([&] { return is_found() || failed.load(); }, "the strips of a picture");
      if (!is_found()) return;
      find_outputs(lane);
    }
  };
  run_jobs(2, [&](i32 job) { job == 0 ? find_all_strips() : find_all_outputs(); }, size);
}

void Patches::forget_last(i32 num) {
  num_pictures_ -= num;
  outputs_.resize(static_cast<size_t>(num_pictures_) *
                  static_cast<size_t>(grids_.back().out_pixels()));
}

void Patches::make_lanes(i32 num) {
  while (seen_.size() < static_cast<size_t>(num)) {
    Seen seen;
    for (const TapGrid& grid : grids_)
      seen.numbers.emplace_back(static_cast<size_t>(grid.height * grid.width));
    seen.numbers.emplace_back(static_cast<size_t>(grids_.back().out_pixels()));
    seen.changed.resize(seen.numbers[0].size() + kWord);
    seen_.push_back(std::move(seen));
  }
}

void Patches::find_strips(const Round& round, i32 lane) {
  Seen& seen = seen_[static_cast<size_t>(lane)];
  const bool is_new = lane >= num_lanes_, all = is_new && lane == 0;
  if (is_new && !all) {
    const Seen& before = seen_[static_cast<size_t>(lane) - 1];
    seen.pixels = before.pixels;
    seen.numbers[0] = before.numbers[0];
  }
  const Frames& frames = round.frames;
  const i64 at = (round.first + lane) * frames.picture_stride;
  if (frames.bytes) {
    find_strips(static_cast<const u8*>(frames.data) + at, frames.plane_stride, seen, all);
  } else {
    find_strips(static_cast<const u32*>(frames.data) + at, frames.plane_stride, seen, all);
  }
}

// With `all` nothing has been seen yet.
template <class T>
void Patches::find_strips(const T* picture, i64 plane_stride, Seen& seen, bool all) {
  const i32 width = first_.width, columns = grids_[0].width;
  if (all) {
    seen.pixels.resize(static_cast<size_t>(first_.height * width * first_.channels) * sizeof(T));
    std::fill(seen.numbers[0].begin(), seen.numbers[0].end(), 0);
  }
  T* const pixels = reinterpret_cast<T*>(seen.pixels.data());
  u8* const marks = strip_marks_.data();
  for (i32 y = 0; y < first_.height; ++y) {
    const T* const row = picture + y * width;
    u8* const changed = seen.changed.data() + y * columns;
    std::memset(changed, 0, static_cast<size_t>(columns));
    const bool differs = mark_differences(row, plane_stride, pixels + y * width, marks);
    if (all) std::memset(marks, 1, static_cast<size_t>(width));
    if (!differs && !all) continue;
    i32* const now = seen.numbers[0].data() + y * columns;
    for_each_marked(marks, windows_[0], [&](i32 c) {
      const i32 number = number_strip(row, plane_stride, c);
      changed[c] = static_cast<u8>(number != now[c]);
      now[c] = number;
    });
  }
}

// Marks the pixels of a row that differ in some plane from what was seen; gives whether there are
// any, and has seen them then.
template <class T>
bool Patches::mark_differences(const T* row, i64 plane_stride, T* seen, u8* marks) const {
  constexpr i32 kAtOnce = 8;
  const i32 width = first_.width, plane = first_.height * width;
  u64 all = 0;
  for (i32 x = 0; x < width; x += kAtOnce) {
    const i32 at = std::min(x, width - kAtOnce);  // the last ones overlap
    u64 different = 0;
    if constexpr (sizeof(T) == 1) {
      for (i32 s = 0; s < first_.channels; ++s)
        different |= word_at(row + s * plane_stride + at) ^ word_at(seen + s * plane + at);
    } else {
      T each[kAtOnce] = {};
      for (i32 s = 0; s < first_.channels; ++s)
        for (i32 i = 0; i < kAtOnce; ++i)
          each[i] |= row[s * plane_stride + at + i] ^ seen[s * plane + at + i];
      for (i32 i = 0; i < kAtOnce; ++i) different |= static_cast<u64>(each[i] != 0) << (8 * i);
    }
    std::memcpy(marks + at, &different, kWord);
    all |= different;
  }
  if (all != 0)
    for (i32 s = 0; s < first_.channels; ++s)
      std::memcpy(seen + s * plane, row + s * plane_stride, static_cast<size_t>(width) * sizeof(T));
  return all != 0;
}

template <class T>
i32 Patches::number_strip(const T* row, i64 plane_stride, i32 column) {
  const i32 x = column * first_.stride - first_.left, kernel = first_.kernel;
  const Inside inside(x, kernel, first_.width);
  u32* const key = strips_.draft();
  T* const strip = reinterpret_cast<T*>(key);
  // A border is zero when bytes have been scaled: it must not be taken for bytes of zero.
  key[pixel_words<T>(first_)] =
      static_cast<u32>((inside.from - x) | (x + kernel - inside.to) << 16);
  if (inside.to - inside.from < kernel) std::fill_n(strip, first_.run(), T{0});
  for (i32 s = 0; s < first_.channels; ++s)
    copy_some(row + s * plane_stride + inside.from, inside.to - inside.from,
              strip + s * kernel + inside.from - x);
  const i32 num = strips_.num(), number = strips_.number_of_draft();
  if (number > num) widen_strip(strip, inside.from - x, inside.to - x);
  return number;
}

// Appends the floats of a new strip, channels last; pixels from .. to are inside.
template <class T>
void Patches::widen_strip(const T* strip, i32 from, i32 to) {
  const size_t at = strip_floats_.size();
  strip_floats_.resize(at + static_cast<size_t>(first_.run()), 0.0F);
  float* const out = strip_floats_.data() + at;
  const size_t marks_at = strip_present_.size();
  strip_present_.resize(marks_at + static_cast<size_t>(words_for(first_.run())), 0);
  u64* const present = strip_present_.data() + marks_at;
  for (i32 x = from; x < to; ++x)
    for (i32 s = 0; s < first_.channels; ++s) {
      const T value = strip[s * first_.kernel + x];
      const i32 k = x * first_.channels + s;
      float& to_float = out[k];
      if (sizeof(T) == 1) {
        to_float = static_cast<float>(value) * kind_.scale + kind_.offset;
      } else {
        std::memcpy(&to_float, &value, sizeof(float));
      }
      present[k / kMarksPerWord] |= static_cast<u64>(to_float != 0.0F) << k % kMarksPerWord;
    }
  if (marks_all_) mark_all(first_.run(), present);
}

void Patches::find_outputs(i32 lane) {
  Seen& seen = seen_[static_cast<size_t>(lane)];
  const bool is_new = lane >= num_lanes_;
  for (size_t l = 0; l < grids_.size(); ++l) {
    std::vector<i32>& numbers = seen.numbers[l + 1];
    if (is_new && lane > 0) numbers = seen_[static_cast<size_t>(lane) - 1].numbers[l + 1];
    if (is_new && lane == 0) std::fill(numbers.begin(), numbers.end(), 0);
    find_layer(l, seen);
  }
  const std::vector<i32>& top = seen.numbers.back();
  outputs_.insert(outputs_.end(), top.begin(), top.end());
}

void Patches::find_layer(size_t layer, Seen& seen) {
  const TapGrid& grid = grids_[layer];
  const u8* const below = layer == 0 ? seen.changed.data() : changed_[layer - 1].data();
  u8* const marks = row_marks_.data();
  for (i32 y = 0; y < grid.out_height; ++y) {
    const Inside rows(y * grid.row_stride - grid.top, grid.rows, grid.height);
    u64 some = 0;
    for (i32 x = 0; x < grid.width; x += kWord) {  // the last word may end in the next row
      u64 word = 0;
      for (i32 r = rows.from; r < rows.to; ++r) word |= word_at(below + r * grid.width + x);
      std::memcpy(marks + x, &word, kWord);
      some |= word;
    }
    u8* const changed = changed_[layer].data() + y * grid.out_width;
    i32* const now = seen.numbers[layer + 1].data() + y * grid.out_width;
    std::memset(changed, 0, static_cast<size_t>(grid.out_width));
    if (!some) continue;
    for_each_marked(marks, windows_[layer + 1], [&](i32 x) {
      const i32 number = number_output(layer, seen.numbers[layer], y, x);
      changed[x] = static_cast<u8>(number != now[x]);
      now[x] = number;
    });
  }
}

i32 Patches::number_output(size_t layer, const std::vector<i32>& below, i32 y, i32 x) {
  const TapGrid& grid = grids_[layer];
  const i32 top = y * grid.row_stride - grid.top, left = x * grid.column_stride - grid.left;
  const Inside rows(top, grid.rows, grid.height), columns(left, grid.columns, grid.width);
  u32* const key = keys_[layer].draft();
  if (rows.to - rows.from < grid.rows || columns.to - columns.from < grid.columns)
    std::fill_n(key, grid.num_taps(), 0U);
  for (i32 r = rows.from; r < rows.to; ++r) {
    const i32* const from = below.data() + r * grid.width;
    u32* const to = key + (r - top) * grid.columns - left;
    for (i32 c = columns.from; c < columns.to; ++c) to[c] = static_cast<u32>(from[c]);
  }
  return keys_[layer].number_of_draft();
}

}  // namespace scanline
