// observe.h -- from the last two pictures of a console to one observation in the caller's slot.
//
// Takes two colour-index pictures [H, 160], or RAM; writes the frame that the settings describe.
// An `Observer` is immutable after construction and shared by all environments of one picture
// format; a `Scratch` belongs to one thread. Must not know episodes, batches or files.
//
// Grey by area resize, the training default, goes through the fused pass of area_pass.h. All other
// combinations pool the whole picture first and then resample it with plain loops.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "area_kernels.h"
#include "resample_axis.h"
#include "settings.h"

namespace scanline {

// Values of the 256 colour indices of one television standard.
struct PaletteView {
  const u8* grey;  // [256]
  const u8* rgb;   // [256][3]
};

// Rows of the picture that reach the resize.
struct RowRange {
  i32 begin, end;
};

class Observer {
 public:
  // Memory one thread works in; sized by the observer that uses it.
  struct Scratch {
    std::vector<u8> pooled;    // [3][H * 160]
    std::vector<u8> narrowed;  // [H][width]
    std::vector<u8> plane;     // [height * width]
  };

  Observer(const EnvSettings& settings, i32 source_height, const PaletteView& palette);
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  // Null if this combination can be offered, else a sentence that says what cannot.
  static const char* refusal(const EnvSettings& settings, i32 source_height);

  i32 frame_bytes() const { return frame_bytes_; }
  i32 num_channels() const { return num_channels_; }
  // Bytes of the pooled picture before the resize: what a stale terminal picture is made from.
  i32 pooled_bytes() const { return num_channels_ * source_height_ * kScreenWidth; }

  // Writes one frame. `pooled`, if given, receives the pooled picture [channels][H * 160].
  void observe(const u8* older, const u8* newer, u8* target, Scratch& scratch,
               u8* pooled = nullptr) const;
  // The same from a pooled picture.
  void observe_pooled(const u8* pooled, u8* target, Scratch& scratch) const;
  // Raises the values of a pooled picture to those of one more colour-index picture.
  void pool_into(const u8* picture, u8* pooled) const;
  // What the fused pass works with, for kernels that do the same; meaningless if it does not run.
  bool is_fused() const { return fused_; }
  const AreaPlan& plan() const { return plan_; }
  const u8* values() const { return values_[0].data(); }
  i32 first_row() const { return rows_.begin; }
  // Makes the observer use the portable pass; for tests.
  void use_portable() { pass_ = area_pass_portable; }

 private:
  void pool(const u8* older, const u8* newer, u8* pooled) const;
  void pool_channel(const u8* older, const u8* newer, const u8* values, u8* pooled) const;
  void pool_pairs(const u8* older, const u8* newer, u8* pooled) const;
  void resize_plane(const u8* plane, u8* target, Scratch& scratch) const;
  void build_plan();
  void build_luma(const PaletteView& palette);

  EnvSettings settings_;
  i32 source_height_;
  RowRange rows_;
  i32 num_channels_;
  i32 frame_bytes_;
  bool fused_ = false;        // the hot pass does it all
  bool whole_cells_ = false;  // area resize by whole numbers: OpenCV sums integers then
  std::array<std::array<u8, 256>, 3> values_;  // by channel; grey and luma use the first
  std::vector<u8> pair_grey_;                  // [256][256], grey of the colour maximum; or empty
  AreaAxis area_x_, area_y_;
  FixedAxis fixed_x_, fixed_y_;
  std::vector<float> weight_y_;
  std::vector<u8> shuffle_x_;
  AreaPlan plan_{};
  AreaPass pass_ = area_pass_portable;
};

}  // namespace scanline
