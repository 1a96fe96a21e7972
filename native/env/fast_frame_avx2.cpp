// fast_frame_avx2.cpp -- frames for processors with AVX2; built with -mavx2, entered only there.
#define scanline scanline_avx2
#include "fast_frame.h"

extern "C" void scanline_frame_avx2(const void* memory, bool draw) {
  scanline::run_fast_frame(*static_cast<const scanline::FrameMemory*>(memory), draw);
}
