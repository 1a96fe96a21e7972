// translation.h -- what a ROM translated to machine code looks like to the loop that runs it.
//
// The struct below is the whole interface between the generated code (env/translation/) and
// loop_translated.h: the code keeps a copy of its first part on the stack while it runs, the rest
// in registers. Both sides use the offsets of the fields. Host only; knows no processor.
#pragma once

#include "types.h"

namespace scanline {

// Why the code gave control back; `pc` is where the program goes on.
enum class Left : u32 {
  kStopped,  // the frame ended
  kSlow,     // the instruction at pc must be executed byte by byte
  kMissed,   // the same, because nobody knew that the program goes there
  kMargin,   // the instructions of the frame are nearly used up
};

// One byte that the code writes as a byte, and reads as one.
struct TranslatedFlag {
  u8 value;
  u8 unused[3];
};

struct TranslatedRun {
  // Copied to the stack on entry; the first two rows are copied back.
  TranslatedFlag carry, overflow, decimal, interrupt_disable;
  u32 sp;
  i32 pc_offset;  // program counter minus place in the image
  i32 num_left;   // instructions until the margin
  Left reason;
  void* run;                   // DecodedRun of loop_decoded.h
  void* tia;                   // its TIA
  const void* const* calls;    // functions, by number (Call)
  const void* const* entries;  // where the code of each place of the image begins
  const i32* places;           // ProgramView::place
  const u8* image;
  // In registers while the code runs.
  u8* ram;
  u32 cycles;
  u32 a, x, y, nz;
  u32 pc;
};

// Functions that the code calls: a store for each TIA register first.
enum Call : u32 {
  kCallStore = 0,
  kCallReadTia = 64,  // (tia, address, data, cycles): value
  kCallRead,          // (run, address, data, cycles): value, kBanksSwitched
  kCallPull,          // (run, stack pointer, opcode, cycles): value
  kCallWrite,         // (run, address, value, cycles): cycles, kEnded, kBanksSwitched
  kCallTimer,         // (run, poll loop, cycles, &num_left): cycles | value << 32
  kCallTimerFlag,     // the same
  kCallCount,         // (value, poll loop, &num_left): turns | cycles << 32
  kCallAddDecimal,    // (flags, a, operand): a
  kCallSubtractDecimal,
  kCallPackStatus,    // (flags, nz): status
  kCallUnpackStatus,  // (flags, status): nz
  kNumCalls
};

// The code of one ROM. `entries` is replaced when places were missed often: read it atomically.
struct Translation {
  void (*enter)(TranslatedRun* run, const void* code);
  const void* const* entries;
  // Notes that the program went to a place that has no code.
  void (*missed)(Translation* self, u32 place);
};

}  // namespace scanline
