// control_word.h -- what one instruction of a cartridge does, as bits that drive one sequence.
//
// Lanes of a warp execute together only what they all do. So an instruction is not a number to jump
// by but two words that say, for the one sequence of lane_loop.h, where its operand is, what is
// added to what, which flags change and where the result goes. Made once per ROM on the host
// (control_words.h). Host and device; no pointers.
#pragma once

#include "../core/types.h"

namespace scanline::gpu {

struct ControlWord {
  u32 operand;  // bits 0-15: address, place in the image, value or step of a branch;
                // bits 16-31: which byte of A, X, Y, SP or the result each register becomes
  u32 control;  // the fields below
};
static_assert(sizeof(ControlWord) == 8, "read as one pair of words");

// Registers by number: bytes of one word. kOperand and kZero are the bytes behind them.
enum RegisterByte : u32 { kByteA = 0, kByteX = 1, kByteY = 2, kByteSP = 3, kByteM = 4, kByte0 = 5 };

// result = left * times + right + carry + sign * (left & operand), halved with kHalve.
// right is the operand or 0, inverted with kInvert: loads, sums, differences and counts need no
// more, and with the last term |, ^ and & are sums too.
namespace control {
constexpr u32 kCycles = 0xF;        // before the extras of branches and page crossings
constexpr u32 kLengthShift = 4;     // 2 bits
constexpr u32 kIndexShift = 6;      // 3 bits: RegisterByte added to the address
constexpr u32 kLoad = 1u << 9;      // reads its operand at the address; without it, a literal
constexpr u32 kImage = 1u << 10;    // the address is a place in the image: plain ROM
constexpr u32 kWrap = 1u << 11;     // the address stays in zero page
constexpr u32 kPenalty = 1u << 12;  // a page crossing costs a cycle
constexpr u32 kPointer = 1u << 13;  // the operand is the place of a pointer in RAM
constexpr u32 kLeftShift = 14;      // 3 bits: RegisterByte
constexpr u32 kTimesShift = 17;     // 2 bits: 0, 1 or 2
constexpr u32 kOperand = 1u << 19;  // right is the operand
constexpr u32 kInvert = 1u << 20;
constexpr u32 kCarryIn = 1u << 21;
constexpr u32 kOneIn = 1u << 22;
constexpr u32 kHalve = 1u << 23;  // the carry comes in from above and goes out below
constexpr u32 kSignShift = 24;    // 2 bits: 0, 1, -2, -1
constexpr u32 kSetNZ = 1u << 26;
constexpr u32 kSetC = 1u << 27;
constexpr u32 kSetV = 1u << 28;
constexpr u32 kStore = 1u << 29;    // writes the result to the address
constexpr u32 kFlow = 1u << 30;     // a Flow: the fields of addresses and sums mean nothing
constexpr u32 kSpecial = 1u << 31;  // a Special, in the place of kLoad to kPointer
constexpr u32 kAlone = 9;           // where Special begins
constexpr u32 kAloneMask = 0x1F;
constexpr u32 kFlowShift = 19;  // 3 bits: Flow, in the place of what a sum is made of
}  // namespace control

// Instructions that need something of their own before the common sequence.
enum class Special : u32 {
  kSlow = 0,   // byte by byte, by the plain loop
  kTimer = 1,  // reads INTIM; operand: PollLoop
  kFlag = 2,   // reads TIMINT; operand: PollLoop
  kCount = 3,  // DEX or DEY; operand: PollLoop
  kLatch = 4   // may read a collision; operand: address, kImage in the place of its index
};

// Instructions that move the program counter or the stack. Conditions: bits 14-15 choose N, V, C or
// Z, bit 16 what it must be; bits 17-18 are the cycles of a taken branch.
enum class Flow : u32 { kBranch, kJump, kCall, kReturn, kPush, kPull };

constexpr u32 kKeepRegisters = 0x3210;

// The table lies behind the image, in one buffer.
SCANLINE_HD constexpr u32 control_words_offset(u32 rom_bytes) { return (rom_bytes + 7) & ~7u; }

}  // namespace scanline::gpu
