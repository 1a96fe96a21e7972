// console_fast.h -- the console that products run: decoded instructions, idle skip, mask TIA.
//
// Same states as `Console` (console.h), which is the slow reference. Give its RomImage decoded
// instructions (decode.h), or it falls back to executing byte by byte.
#pragma once

#include "console.h"
#include "loop_decoded.h"
#include "tia_masks.h"

namespace scanline {

using FastConsole = BasicConsole<SkippingLoop, MaskTia>;

}  // namespace scanline
