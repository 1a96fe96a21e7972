// cartridge_state.h -- what a cartridge remembers besides its banks, as one trivially copyable
// struct.
//
// Only SuperChip cartridges use `ram`, only the DPC uses the rest; the current banks are in
// MachineState. One field list (fields.h) generates the struct, the check of a snapshot and the
// printer of differences.
#pragma once

#include "fields.h"

namespace scanline {

#define SCANLINE_CARTRIDGE_FIELDS(SCALAR, ARRAY)                                  \
  /* part of an oscillator clock not yet counted */                               \
  SCALAR(double, music_clock_fraction, value > -1.0 && value < 1.0)               \
  SCALAR(i32, music_cycle, true)         /* CPU cycle of the last music update */ \
  ARRAY(u16, counter, 8, value <= 0x7FF) /* data fetchers: 11 bits */             \
  ARRAY(u8, top, 8, true)                                                         \
  ARRAY(u8, bottom, 8, true)                                                      \
  ARRAY(u8, flag, 8, value == 0x00 || value == 0xFF)                              \
  ARRAY(u8, music_mode, 3, value <= 1) /* fetchers 5 to 7 */                      \
  SCALAR(u8, shift_register, true)                                                \
  ARRAY(u8, ram, 128, true)

struct CartridgeState {
  SCANLINE_DECLARE(SCANLINE_CARTRIDGE_FIELDS)
};
SCANLINE_NO_PADDING(CartridgeState, SCANLINE_CARTRIDGE_FIELDS);

SCANLINE_HD inline WrongField wrong_field(const CartridgeState& state) {
  SCANLINE_CHECK(SCANLINE_CARTRIDGE_FIELDS);
}

}  // namespace scanline
