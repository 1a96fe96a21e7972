// fast_frame_portable.cpp -- frames for any processor.
#include "fast_frame.h"

extern "C" void scanline_frame_portable(const void* memory, bool draw) {
  scanline::run_fast_frame(*static_cast<const scanline::FrameMemory*>(memory), draw);
}
