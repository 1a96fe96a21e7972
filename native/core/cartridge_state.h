// cartridge_state.h -- what a cartridge remembers besides its banks, as one trivially copyable
// struct.
//
// Only SuperChip cartridges use `ram`, only the DPC uses the rest; the current banks are in
// MachineState. One field list generates the struct and the printer of differences. No padding.
#pragma once

#include "types.h"

namespace scanline {

// SCALAR(type, name) and ARRAY(type, name, count); widest first.
#define SCANLINE_CARTRIDGE_FIELDS(SCALAR, ARRAY)                                         \
  SCALAR(double, music_clock_fraction) /* part of an oscillator clock not yet counted */ \
  SCALAR(i32, music_cycle)             /* CPU cycle of the last music update */          \
  ARRAY(u16, counter, 8)               /* data fetchers: 11 bits */                      \
  ARRAY(u8, top, 8)                                                                      \
  ARRAY(u8, bottom, 8)                                                                   \
  ARRAY(u8, flag, 8)       /* 0x00 or 0xFF */                                            \
  ARRAY(u8, music_mode, 3) /* fetchers 5 to 7 */                                         \
  SCALAR(u8, shift_register)                                                             \
  ARRAY(u8, ram, 128)

#define SCANLINE_SCALAR(type, name) type name;
#define SCANLINE_ARRAY(type, name, count) type name[count];
struct CartridgeState {
  SCANLINE_CARTRIDGE_FIELDS(SCANLINE_SCALAR, SCANLINE_ARRAY)
};
#undef SCANLINE_SCALAR
#undef SCANLINE_ARRAY

static_assert(sizeof(CartridgeState) == 8 + 4 + 16 + 24 + 4 + 128, "no padding");

}  // namespace scanline
