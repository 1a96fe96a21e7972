// area_kernels.h -- the versions of the hot pass, and which one this machine runs.
#pragma once

#include "area_pass.h"

namespace scanline {

void area_pass_portable(const PicturePair& pair, const AreaPlan& plan, u8* target, u8* pooled);
void area_pass_avx2(const PicturePair& pair, const AreaPlan& plan, u8* target, u8* pooled);

bool has_avx2();  // false where the version was not built

// The fastest version that this machine can run and this plan allows.
AreaPass best_area_pass(const AreaPlan& plan);

}  // namespace scanline
