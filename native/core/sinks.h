// sinks.h -- where a TIA's picture goes: nowhere, or into two index pictures.
//
// A sink is a template parameter of the TIA, so that frames nobody sees cost no drawing. Pictures
// are owned by the console: two of kPictureLines x 160 bytes, one after the other; the state's
// buffer_parity says which one is current. Sinks know nothing of registers or clocks.
#pragma once

#include "tia_objects.h"
#include "types.h"

namespace scanline {

constexpr i32 kPictureLines = 300;
constexpr i32 kPictureBytes = kPictureLines * kWidth;

struct NoPixels {
  static constexpr bool kDraws = false;
  SCANLINE_HD void select(u32) {}
  SCANLINE_HD void put(i32, i32, u8) {}
  SCANLINE_HD void grey(i32, i32) {}
};

// Map that keeps the TIA's colour index.
struct IndexMap {
  SCANLINE_HD u8 operator()(u8 index) const { return index; }
};

template <class Map = IndexMap>
struct Pixels {
  static constexpr bool kDraws = true;

  SCANLINE_HD explicit Pixels(u8* pictures, Map map = Map())
      : pictures_(pictures), picture_(pictures), map_(map) {}

  SCANLINE_HD void select(u32 parity) { picture_ = pictures_ + (parity ? kPictureBytes : 0); }

  SCANLINE_HD void put(i32 row, i32 x, u8 index) { picture_[row * kWidth + x] = map_(index); }

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
