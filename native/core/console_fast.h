// console_fast.h -- the console that products run: translated instructions, idle skip, mask TIA.
//
// Same states as `Console` (console.h), which is the slow reference. Give its RomImage a
// translation (env/translation/); without one it interprets decoded instructions (decode.h), and
// without these it executes byte by byte.
#pragma once

#include "console.h"
#include "loop_translated.h"
#include "tia_masks.h"

namespace scanline {

using FastConsole = BasicConsole<TranslatedLoop, MaskTia>;

}  // namespace scanline
