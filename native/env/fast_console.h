// fast_console.h -- the console of core/console_fast.h, compiled once.
//
// Its loop takes half a minute to compile; whoever includes this header links fast_console.cpp
// instead.
#pragma once

#include "../core/console_fast.h"

namespace scanline {

extern template void FastConsole::run_frame(bool);

}  // namespace scanline
