// area_dispatch.cpp -- picks the version of the hot pass at run time.
#include "area_kernels.h"

namespace scanline {

#if defined(SCANLINE_WITH_AVX2)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}
#else
bool has_avx2() { return false; }
#endif

AreaPass best_area_pass(const AreaPlan& plan) {
#if defined(SCANLINE_WITH_AVX2)
  if (plan.shuffles && has_avx2()) return area_pass_avx2;
#endif
  (void)plan;
  return area_pass_portable;
}

}  // namespace scanline
