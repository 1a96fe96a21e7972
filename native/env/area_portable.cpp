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
    for (i32 x = 0; x < plan.padded_width; ++x) {
      float sum = 0.0f;
      for (i32 tap = 0; tap < plan.taps_x; ++tap) {
        sum += static_cast<float>(line[plan.first_x[x] + tap]) *
               plan.weight_x[tap * plan.padded_width + x];
      }
      out[x] = sum;
    }
  }

  static void vertical(const float* const* lines, const float* weights, const AreaPlan& plan,
                       u8* target) {
    for (i32 x = 0; x < plan.target_width; ++x) {
      float sum = weights[0] * lines[0][x];
      for (i32 tap = 1; tap < plan.taps_y; ++tap) sum += weights[tap] * lines[tap][x];
      target[x] = rounded(sum);
    }
  }

  // Half to even by adding 1.5 * 2^23: exact for 0 <= value < 2^22.
  static u8 rounded(float value) {
    const volatile float shifted = value + 12582912.0f;
    return static_cast<u8>(static_cast<i32>(shifted - 12582912.0f));
  }
};

}  // namespace

void area_pass_portable(const PicturePair& pair, const AreaPlan& plan, u8* target, u8* pooled) {
  AreaPassOf<PortableKernels>(pair, plan, pooled).run(target);
}

}  // namespace scanline
