// fast_console.h -- the console of core/console_fast.h, with its frames compiled for the processor
// at hand.
//
// One frame is by far the hottest function; it is compiled twice, for any processor and for those
// with AVX2, and the choice is made once at run time. Whoever includes this header links
// fast_console.cpp and the two files of frames instead of compiling the loop.
#pragma once

#include "../core/console_fast.h"

namespace scanline {

template <>
void FastConsole::run_frame(bool draw);

// For tests: the version that runs anywhere.
void use_portable_frames(bool portable);

}  // namespace scanline
