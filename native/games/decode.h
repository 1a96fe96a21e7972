// decode.h -- how games write a number into one byte of memory.
#pragma once

#include "../core/types.h"

namespace scanline::games {

enum class Decoder : u8 {
  kRaw,
  kBcd,            // two decimal digits; nibbles above 9 count as 10..15, as ALE lets them
  kLowNibble,      // one digit
  kHighNibble,     //
  kLowDigit,       // one digit, where A stands for a blank zero
  kHighDigit,      //
  kKnockout,       // as kBcd, but C0 is 100 points
  kEighth,         // digit times 8; 80 is a blank zero
  kEighthOrBlank,  // digit times 8; whatever is no digit is a zero
};

SCANLINE_HD constexpr i32 bcd_of(u8 byte) { return 10 * (byte >> 4) + (byte & 15); }

SCANLINE_HD constexpr i32 digit_of(i32 nibble) { return nibble == 10 ? 0 : nibble; }

SCANLINE_HD constexpr i32 decode(Decoder decoder, u8 byte) {
  switch (decoder) {
    case Decoder::kBcd:
      return bcd_of(byte);
    case Decoder::kLowNibble:
      return byte & 15;
    case Decoder::kHighNibble:
      return byte >> 4;
    case Decoder::kLowDigit:
      return digit_of(byte & 15);
    case Decoder::kHighDigit:
      return digit_of(byte >> 4);
    case Decoder::kKnockout:
      return byte == 0xC0 ? 100 : bcd_of(byte);
    case Decoder::kEighth:
      return byte == 0x80 ? 0 : byte >> 3;
    case Decoder::kEighthOrBlank:
      return byte % 8 == 0 && byte <= 72 ? byte / 8 : 0;
    default:
      return byte;
  }
}

}  // namespace scanline::games
