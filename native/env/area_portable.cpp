// area_portable.cpp -- the row operations of the hot pass in plain C++: the reference of the
// others.
//
// Same order of operations as every other version; runs anywhere.
#include "area_kernels.h"

namespace scanline {
namespace {

struct PortableKernels {
  explicit PortableKernels(const u8* values) : values(values) {}
  const u8* values;  // [256], or null

  static bool same(const u8* a, const u8* b) { return std::memcmp(a, b, kScreenWidth) == 0; }

  void translate(const u8* line, u8* out) const {
    if (values == nullptr) {
      std::memcpy(out, line, kScreenWidth);
      return;
    }
    for (i32 x = 0; x < kScreenWidth; ++x) out[x] = values[line[x]];
  }

  static void keep_larger(const u8* other, u8* out) {
    for (i32 x = 0; x < kScreenWidth; ++x) out[x] = out[x] < other[x] ? other[x] : out[x];
  }

  static void horizontal(const u8* line, const AreaPlan& plan, float* out) {
    for (i32 x = 0; x < plan.padded_width; ++x) out[x] = area_across(line, plan, x);
  }

  static void vertical(const float* const* lines, const float* weights, const AreaPlan& plan,
                       u8* target) {
    for (i32 x = 0; x < plan.target_width; ++x) {
      const auto across = [&](i32 tap) { return lines[tap][x]; };
      target[x] = rounded_half_to_even(area_down(across, weights, plan.taps_y));
    }
  }
};

}  // namespace

void area_pass_portable(const PicturePair& pair, const AreaPlan& plan, u8* target, u8* pooled) {
  AreaPassOf<PortableKernels>(pair, plan, pooled).run(target);
}

}  // namespace scanline
