// fast_console.cpp -- the one place where the fast loop is compiled.
#include "fast_console.h"

namespace scanline {

template void FastConsole::run_frame(bool);

}  // namespace scanline
