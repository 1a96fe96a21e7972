// fast_console.cpp -- picks the version of a frame at run time.
#include "fast_console.h"

#include <atomic>

#include "area_kernels.h"
#include "fast_frame.h"

extern "C" {
void scanline_frame_portable(const void* memory, bool draw);
void scanline_frame_avx2(const void* memory, bool draw);
}

namespace scanline {
namespace {

using Frame = void (*)(const void* memory, bool draw);

Frame best_frame() {
#if defined(SCANLINE_WITH_AVX2)
  if (has_avx2()) return scanline_frame_avx2;
#endif
  return scanline_frame_portable;
}

std::atomic<Frame> frame{best_frame()};

}  // namespace

void use_portable_frames(bool portable) {
  frame.store(portable ? scanline_frame_portable : best_frame());
}

template <>
void FastConsole::run_frame(bool draw) {
  const FrameMemory memory{&machine, &cartridge_, &rom_, &properties_, pictures_};
  frame.load(std::memory_order_relaxed)(&memory, draw);
}

}  // namespace scanline
