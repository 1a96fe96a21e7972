// patch_table.cpp -- see patch_table.h.
#include "patch_table.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "../threads/spin_wait.h"

namespace scanline {

namespace {

constexpr i32 kWord = 8;  // change bytes that are tested at once; their arrays are so much longer
constexpr i32 kMaxLanes = 32;

std::vector<TapGrid> grids_of(const std::vector<ConvShape>& shapes) {
  std::vector<TapGrid> grids{strip_grid(shapes[0])};
  for (size_t l = 1; l < shapes.size(); ++l) grids.push_back(pixel_grid(shapes[l]));
  return grids;
}

// Key words of a strip's pixels; one more word has its padding.
template <class T>
i32 pixel_words(const ConvShape& conv) {
  return conv.strip_floats() * static_cast<i32>(sizeof(T)) / static_cast<i32>(sizeof(u32));
}

u64 word_at(const void* bytes) {
  u64 word;
  std::memcpy(&word, bytes, kWord);
  return word;
}

// Most strips are eight pixels wide.
template <class T>
void copy_pixels(const T* from, i32 num, T* to) {
  if (num == 8) {
    std::memcpy(to, from, 8 * sizeof(T));
  } else {
    for (i32 i = 0; i < num; ++i) to[i] = from[i];
  }
}

// The overlap of first .. first + num with 0 .. end.
struct Overlap {
  i32 from, to;
  Overlap(i32 first, i32 num, i32 end) : from(std::max(first, 0)), to(std::min(first + num, end)) {}
};

}  // namespace

PatchTable::Windows PatchTable::windows_of(i32 num, i32 stride, i32 padding, i32 size, i32 end) {
  Windows windows;
  for (i32 i = 0; i < num; ++i) {
    const Overlap inside(i * stride - padding, size, end);
    const i32 cells = std::max(inside.to - inside.from, 0);
    const u64 mask = cells >= kWord ? ~u64{0} : (u64{1} << (8 * cells)) - 1;
    windows.push_back({cells > 0 ? inside.from : 0, mask});
  }
  return windows;
}

// Calls visit(i) for every window with a change. Tests 64 windows before it visits any, since the
// branches are hard to predict.
template <class Visit>
void PatchTable::for_each_changed(const u8* changed, const Windows& windows, const Visit& visit) {
  constexpr size_t kAtOnce = 64;
  for (size_t first = 0; first < windows.size(); first += kAtOnce) {
    const size_t num = std::min(kAtOnce, windows.size() - first);
    u64 hits = 0;
    for (size_t i = 0; i < num; ++i) {
      const Window& window = windows[first + i];
      hits |= static_cast<u64>((word_at(changed + window.from) & window.mask) != 0) << i;
    }
    for (; hits != 0; hits &= hits - 1) visit(static_cast<i32>(first) + __builtin_ctzll(hits));
  }
}

PatchTable::PatchTable(const std::vector<ConvShape>& shapes)
    : first_(shapes[0]), grids_(grids_of(shapes)), strips_(pixel_words<u8>(first_) + 1) {
  windows_.push_back(
      windows_of(grids_[0].width, first_.stride, first_.left, first_.kernel, first_.width));
  i32 width = 0;
  for (const TapGrid& grid : grids_) {
    windows_.push_back(
        windows_of(grid.out_width, grid.column_stride, grid.left, grid.columns, grid.width));
    outputs_.emplace_back(grid.num_taps());
    changed_outputs_.emplace_back(static_cast<size_t>(grid.out_pixels() + kWord));
    width = std::max(width, grid.width);
  }
  changed_pixels_.resize(static_cast<size_t>(first_.width + kWord));
  changed_row_inputs_.resize(static_cast<size_t>(width + kWord));
  clear();
}

void PatchTable::clear(bool full_masks) {
  full_masks_ = full_masks;
  strips_.clear();
  const i32 floats = first_.strip_floats();
  strip_values_.assign(static_cast<size_t>(floats), 0.0F);
  strip_masks_.assign(static_cast<size_t>(num_mask_words(floats)), 0);
  if (full_masks_) set_all_bits(floats, strip_masks_.data());
  for (UniqueTable& outputs : outputs_) outputs.clear();
  num_images_ = num_used_lanes_ = 0;
  output_ids_.clear();
}

bool PatchTable::accepts(const Frames& frames) const {
  return num_images_ == 0 || (frames.bytes == format_.bytes && frames.scale == format_.scale &&
                              frames.offset == format_.offset);
}

void PatchTable::add(const Frames& frames, i32 first, i32 num) {
  if (num_images_ == 0)
    strips_.reset((frames.bytes ? pixel_words<u8>(first_) : pixel_words<u32>(first_)) + 1);
  format_ = frames;
  for (i32 done = 0; done < num; done += kMaxLanes) {
    const i32 some = std::min(kMaxLanes, num - done);
    make_lanes(some);
    add_round(Round{frames, first + done}, some, call_size(num));
    num_used_lanes_ = std::max(num_used_lanes_, some);
    num_images_ += some;
  }
}

// Two jobs: strips of all lanes, and outputs of all lanes. Jobs start in order, so when the second
// one waits for strips the first one runs or is done.
void PatchTable::add_round(const Round& round, i32 num, CallSize size) {
  std::atomic<i32> num_ready{0};  // lanes whose strips have their ids
  std::atomic<bool> failed{false};
  const auto intern_all_strips = [&] {
    try {
      for (i32 lane = 0; lane < num; ++lane) {
        intern_strips(round, lane);
        num_ready.store(lane + 1, std::memory_order_release);
      }
    } catch (...) {
      failed.store(true);
      throw;
    }
  };
  const auto intern_all_outputs = [&] {
    for (i32 lane = 0; lane < num; ++lane) {
      const auto is_ready = [&] { return num_ready.load(std::memory_order_acquire) > lane; };
      spin_wait_or_throw([&] { return is_ready() || failed.load(); }, "the strips of an image");
      if (!is_ready()) return;
      intern_outputs(lane);
    }
  };
  parallel_for(2, [&](i32 job) { job == 0 ? intern_all_strips() : intern_all_outputs(); }, size);
}

void PatchTable::remove_last(i32 num) {
  num_images_ -= num;
  output_ids_.resize(static_cast<size_t>(num_images_) *
                     static_cast<size_t>(grids_.back().out_pixels()));
}

void PatchTable::make_lanes(i32 num) {
  while (lanes_.size() < static_cast<size_t>(num)) {
    Lane lane;
    for (const TapGrid& grid : grids_)
      lane.ids.emplace_back(static_cast<size_t>(grid.height * grid.width));
    lane.ids.emplace_back(static_cast<size_t>(grids_.back().out_pixels()));
    lane.changed_strips.resize(lane.ids[0].size() + kWord);
    lanes_.push_back(std::move(lane));
  }
}

// A lane without a last image starts with that of the lane before.
void PatchTable::intern_strips(const Round& round, i32 index) {
  Lane& lane = lanes_[static_cast<size_t>(index)];
  const bool is_new = index >= num_used_lanes_, is_first = is_new && index == 0;
  if (is_new && !is_first) {
    const Lane& before = lanes_[static_cast<size_t>(index) - 1];
    lane.pixels = before.pixels;
    lane.ids[0] = before.ids[0];
  }
  const Frames& frames = round.frames;
  const i64 at = (round.first + index) * frames.image_stride;
  if (frames.bytes) {
    intern_strips(static_cast<const u8*>(frames.data) + at, frames.plane_stride, lane, is_first);
  } else {
    intern_strips(static_cast<const u32*>(frames.data) + at, frames.plane_stride, lane, is_first);
  }
}

// With `is_first` there is no image to compare with: every strip is looked up.
template <class T>
void PatchTable::intern_strips(const T* image, i64 plane_stride, Lane& lane, bool is_first) {
  const i32 width = first_.width, columns = grids_[0].width;
  if (is_first) {
    lane.pixels.resize(static_cast<size_t>(first_.height * width * first_.channels) * sizeof(T));
    std::fill(lane.ids[0].begin(), lane.ids[0].end(), 0);
  }
  T* const pixels = reinterpret_cast<T*>(lane.pixels.data());
  u8* const changed_pixels = changed_pixels_.data();
  for (i32 y = 0; y < first_.height; ++y) {
    const T* const row = image + y * width;
    u8* const changed = lane.changed_strips.data() + y * columns;
    std::memset(changed, 0, static_cast<size_t>(columns));
    const bool differs = update_row(row, plane_stride, pixels + y * width, changed_pixels);
    if (is_first) std::memset(changed_pixels, 1, static_cast<size_t>(width));
    if (!differs && !is_first) continue;
    i32* const ids = lane.ids[0].data() + y * columns;
    for_each_changed(changed_pixels, windows_[0], [&](i32 c) {
      const i32 id = intern_strip(row, plane_stride, c);
      changed[c] = static_cast<u8>(id != ids[c]);
      ids[c] = id;
    });
  }
}

// Marks the pixels of a row that differ from the last image in some plane, and copies the row
// over the last image's. True if any pixel differs.
template <class T>
bool PatchTable::update_row(const T* row, i64 plane_stride, T* last, u8* changed) const {
  constexpr i32 kAtOnce = 8;
  const i32 width = first_.width, plane = first_.height * width;
  u64 all = 0;
  for (i32 x = 0; x < width; x += kAtOnce) {
    const i32 at = std::min(x, width - kAtOnce);  // the last ones overlap
    u64 different = 0;
    if constexpr (sizeof(T) == 1) {
      for (i32 s = 0; s < first_.channels; ++s)
        different |= word_at(row + s * plane_stride + at) ^ word_at(last + s * plane + at);
    } else {
      T each[kAtOnce] = {};
      for (i32 s = 0; s < first_.channels; ++s)
        for (i32 i = 0; i < kAtOnce; ++i)
          each[i] |= row[s * plane_stride + at + i] ^ last[s * plane + at + i];
      for (i32 i = 0; i < kAtOnce; ++i) different |= static_cast<u64>(each[i] != 0) << (8 * i);
    }
    std::memcpy(changed + at, &different, kWord);
    all |= different;
  }
  if (all != 0)
    for (i32 s = 0; s < first_.channels; ++s)
      std::memcpy(last + s * plane, row + s * plane_stride, static_cast<size_t>(width) * sizeof(T));
  return all != 0;
}

template <class T>
i32 PatchTable::intern_strip(const T* row, i64 plane_stride, i32 column) {
  const i32 x = column * first_.stride - first_.left, kernel = first_.kernel;
  const Overlap inside(x, kernel, first_.width);
  u32* const key = strips_.key_buffer();
  T* const strip = reinterpret_cast<T*>(key);
  // Padding is zero after scaling, a zero byte need not be: the key tells them apart.
  key[pixel_words<T>(first_)] =
      static_cast<u32>((inside.from - x) | (x + kernel - inside.to) << 16);
  if (inside.to - inside.from < kernel) std::fill_n(strip, first_.strip_floats(), T{0});
  for (i32 s = 0; s < first_.channels; ++s)
    copy_pixels(row + s * plane_stride + inside.from, inside.to - inside.from,
                strip + s * kernel + inside.from - x);
  const i32 size = strips_.size(), id = strips_.intern();
  if (id > size) append_strip(strip, inside.from - x, inside.to - x);
  return id;
}

// Appends the values of a new strip, channels last; its pixels from .. to - 1 are no padding.
template <class T>
void PatchTable::append_strip(const T* strip, i32 from, i32 to) {
  const i32 floats = first_.strip_floats();
  const size_t values_at = strip_values_.size(), mask_at = strip_masks_.size();
  strip_values_.resize(values_at + static_cast<size_t>(floats), 0.0F);
  strip_masks_.resize(mask_at + static_cast<size_t>(num_mask_words(floats)), 0);
  float* const values = strip_values_.data() + values_at;
  u64* const nonzero = strip_masks_.data() + mask_at;
  for (i32 x = from; x < to; ++x)
    for (i32 s = 0; s < first_.channels; ++s) {
      const T pixel = strip[s * first_.kernel + x];
      const i32 k = x * first_.channels + s;
      float& value = values[k];
      if (sizeof(T) == 1) {
        value = static_cast<float>(pixel) * format_.scale + format_.offset;
      } else {
        std::memcpy(&value, &pixel, sizeof(float));
      }
      nonzero[k / kMaskBits] |= static_cast<u64>(value != 0.0F) << k % kMaskBits;
    }
  if (full_masks_) set_all_bits(floats, nonzero);
}

void PatchTable::intern_outputs(i32 index) {
  Lane& lane = lanes_[static_cast<size_t>(index)];
  const bool is_new = index >= num_used_lanes_;
  for (size_t l = 0; l < grids_.size(); ++l) {
    std::vector<i32>& ids = lane.ids[l + 1];
    if (is_new && index > 0) ids = lanes_[static_cast<size_t>(index) - 1].ids[l + 1];
    if (is_new && index == 0) std::fill(ids.begin(), ids.end(), 0);
    intern_layer(l, lane);
  }
  const std::vector<i32>& top = lane.ids.back();
  output_ids_.insert(output_ids_.end(), top.begin(), top.end());
}

void PatchTable::intern_layer(size_t layer, Lane& lane) {
  const TapGrid& grid = grids_[layer];
  const u8* const below =
      layer == 0 ? lane.changed_strips.data() : changed_outputs_[layer - 1].data();
  u8* const changed_inputs = changed_row_inputs_.data();
  for (i32 y = 0; y < grid.out_height; ++y) {
    const Overlap rows(y * grid.row_stride - grid.top, grid.rows, grid.height);
    u64 any = 0;
    for (i32 x = 0; x < grid.width; x += kWord) {  // the last word may end in the next row
      u64 word = 0;
      for (i32 r = rows.from; r < rows.to; ++r) word |= word_at(below + r * grid.width + x);
      std::memcpy(changed_inputs + x, &word, kWord);
      any |= word;
    }
    u8* const changed = changed_outputs_[layer].data() + y * grid.out_width;
    i32* const ids = lane.ids[layer + 1].data() + y * grid.out_width;
    std::memset(changed, 0, static_cast<size_t>(grid.out_width));
    if (!any) continue;
    for_each_changed(changed_inputs, windows_[layer + 1], [&](i32 x) {
      const i32 id = intern_output(layer, lane.ids[layer], y, x);
      changed[x] = static_cast<u8>(id != ids[x]);
      ids[x] = id;
    });
  }
}

i32 PatchTable::intern_output(size_t layer, const std::vector<i32>& below, i32 y, i32 x) {
  const TapGrid& grid = grids_[layer];
  const i32 top = y * grid.row_stride - grid.top, left = x * grid.column_stride - grid.left;
  const Overlap rows(top, grid.rows, grid.height), columns(left, grid.columns, grid.width);
  u32* const key = outputs_[layer].key_buffer();
  if (rows.to - rows.from < grid.rows || columns.to - columns.from < grid.columns)
    std::fill_n(key, grid.num_taps(), 0U);
  for (i32 r = rows.from; r < rows.to; ++r) {
    const i32* const from = below.data() + r * grid.width;
    u32* const to = key + (r - top) * grid.columns - left;
    for (i32 c = columns.from; c < columns.to; ++c) to[c] = static_cast<u32>(from[c]);
  }
  return outputs_[layer].intern();
}

}  // namespace scanline
