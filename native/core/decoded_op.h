// decoded_op.h -- one instruction of a cartridge, resolved as far as the ROM alone allows.
//
// `decode_rom` makes one per byte of the image, once per ROM; every console shares them. The
// handler is a number: loop_decoded.h has one label for each.
#pragma once

#include "types.h"

namespace scanline {

struct DecodedOp {
  u16 handler;
  u16 operand;
  i32 extra;
};

// Handlers: four families by opcode, TIA stores by register, then single ones. What an op keeps:
//   fast      the usual case of its addressing mode; operand and extra as loop_decoded.h reads them
//   constant  absolute read of ROM: operand is the value; JMP: operand is the target
//   tia       zero-page read of the TIA: operand is the address
//   generic   anything else off the cartridge: operand is the address or base address
enum Handler : u16 {
  kFast = 0,
  kConstant = 256,
  kTia = 512,
  kGeneric = 768,
  kStoreA = 1024,  // + TIA register
  kStoreX = kStoreA + 64,
  kStoreY = kStoreX + 64,
  kSlow = kStoreY + 64,  // byte by byte
  kTimerA,               // load of INTIM; extra: PollLoop
  kTimerX,
  kTimerY,
  kFlagA,  // load of TIMINT; extra: PollLoop
  kFlagBit,
  kCountX,  // DEX or DEY before a branch to itself; extra: PollLoop
  kCountY,
  kNumHandlers
};

namespace opcode {
constexpr u8 kJsr = 0x20, kJmp = 0x4C, kJmpIndirect = 0x6C, kRts = 0x60;
constexpr u8 kPha = 0x48, kPhp = 0x08, kPla = 0x68, kPlp = 0x28;
constexpr u8 kBne = 0xD0, kBpl = 0x10, kBmi = 0x30;
constexpr u8 kDex = 0xCA, kDey = 0x88;
constexpr u8 kLda = 0xAD, kLdx = 0xAE, kLdy = 0xAC, kBit = 0x2C;  // absolute
constexpr u8 kSta = 0x85, kStx = 0x86, kSty = 0x84;               // zero page
}  // namespace opcode

// A branch back to the instruction before it: which branch, and the cycles of one turn.
struct PollLoop {
  u8 branch;  // its opcode, 0 if there is none
  u8 period_cycles;
};

SCANLINE_HD SCANLINE_INLINE i32 pack(PollLoop loop) {
  return loop.branch | (loop.period_cycles << 8);
}
SCANLINE_HD SCANLINE_INLINE PollLoop unpack_poll_loop(i32 extra) {
  return {u8(extra), u8(extra >> 8)};
}

}  // namespace scanline
