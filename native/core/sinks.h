// sinks.h -- where a TIA's picture goes: nowhere, or into two pictures (or a log: log_sink.h).
//
// A sink is a template parameter of the TIA, so that frames nobody sees cost no drawing. Pictures
// are owned by the console: two of kPictureLines x 160 bytes, one after the other; the state's
// buffer_parity says which one is current. Sinks know nothing of registers or clocks.
//
// kDraws: wants to know of every visible change. kPaints: needs a brush for it.
#pragma once

#include "layers.h"
#include "state.h"
#include "tia_objects.h"
#include "types.h"

namespace scanline {

constexpr i32 kPictureLines = 300;
constexpr i32 kPictureBytes = kPictureLines * kWidth;

// Pixels begin <= x < end of one row, over which no visible value changes.
struct Span {
  i32 row;
  i32 begin;
  i32 end;
  u32 enabled;  // set of enabled objects
};

struct NoPixels {
  static constexpr bool kDraws = false;
  static constexpr bool kPaints = false;
  SCANLINE_HD void select(u32) {}
  SCANLINE_HD void put(i32, i32, u8) {}
  SCANLINE_HD void draw(const MachineState&, Span, const Brush&) {}
  SCANLINE_HD void repeat_row(i32) {}
  SCANLINE_HD void end(i32, i32) {}
  SCANLINE_HD void grey(i32, i32) {}
};

// Map that keeps the TIA's colour index.
struct IndexMap {
  SCANLINE_HD u8 operator()(u8 index) const { return index; }
};

// Map to a byte of a table of 256, e.g. the grey of each index; the table must outlive it.
struct TableMap {
  const u8* table;
  SCANLINE_HD u8 operator()(u8 index) const { return table[index]; }
};

template <class Map = IndexMap>
class Pixels {
 public:
  static constexpr bool kDraws = true;
  static constexpr bool kPaints = true;

  SCANLINE_HD explicit Pixels(u8* pictures, Map map = Map())
      : pictures_(pictures), picture_(pictures), map_(map) {}

  SCANLINE_HD void select(u32 parity) { picture_ = pictures_ + (parity ? kPictureBytes : 0); }

  SCANLINE_HD void put(i32 row, i32 x, u8 index) { picture_[row * kWidth + x] = map_(index); }

  // `brush` holds the layers of the state's objects.
  SCANLINE_HD void draw(const MachineState& state, Span span, const Brush& brush) {
    u8* row = picture_ + span.row * kWidth;
    if (state.vblank & 2) return fill(row, span.begin, span.end, map_(0));
    const u8 colours[4] = {map_(state.colu[0]), map_(state.colu[1]), map_(state.colu[2]),
                           map_(state.colu[3])};
    paint(row, span.begin, span.end, brush, colours);
    if (state.comb && span.begin < kCombPixels)
      fill(row, span.begin, span.end < kCombPixels ? span.end : kCombPixels, map_(0));
  }

  // The row equals the one above it.
  SCANLINE_HD void repeat_row(i32 row) {
    u8* target = picture_ + row * kWidth;
#if defined(__CUDA_ARCH__)
    memcpy(target, target - kWidth, kWidth);  // known to the compiler without a header
#else
    __builtin_memcpy(target, target - kWidth, kWidth);
#endif
  }

  // Drawing stopped for now at this pixel.
  SCANLINE_HD void end(i32, i32) {}

  // What a partial frame has not reached is shown in shades of grey. Meaningful for indices only.
  SCANLINE_HD void grey(i32 first_row, i32 end_row) {
    for (i32 i = first_row * kWidth; i < end_row * kWidth; ++i)
      picture_[i] = (picture_[i] & 0x0F) >> 1;
  }

 private:
  u8* pictures_;
  u8* picture_;
  Map map_;
};

}  // namespace scanline
