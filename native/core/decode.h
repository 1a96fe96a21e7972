// decode.h -- from the bytes of a cartridge to its decoded instructions.
//
// Takes a RomImage; fills one DecodedOp per byte of program, for every byte, because nobody knows
// which ones start an instruction. Whatever the ROM alone does not decide, or what may switch a
// bank, becomes kSlow. Runs once per ROM, on the host.
#pragma once

#include "addressing.h"
#include "cartridge_any.h"
#include "decoded_op.h"
#include "opcodes.h"

namespace scanline {

enum class Shape : u8 { Read, Store, Modify, Accumulator, Implied, Branch, Control };

struct OpcodeFacts {
  Shape shape;
  Mode mode;  // of the first three shapes
  u8 cycles;
};

inline OpcodeFacts facts_of(u8 opcode) {
#define SCANLINE_READ(code, operation, mode, cycles) {Shape::Read, Mode::mode, cycles},
#define SCANLINE_STORE(code, operation, mode, cycles) {Shape::Store, Mode::mode, cycles},
#define SCANLINE_MODIFY(code, operation, mode, cycles) {Shape::Modify, Mode::mode, cycles},
#define SCANLINE_ACCUMULATOR(code, operation, cycles) {Shape::Accumulator, Mode::Immediate, cycles},
#define SCANLINE_IMPLIED(code, operation, cycles) {Shape::Implied, Mode::Immediate, cycles},
#define SCANLINE_BRANCH(code, operation, cycles) {Shape::Branch, Mode::Immediate, cycles},
#define SCANLINE_CONTROL(code, operation, cycles) {Shape::Control, Mode::Immediate, cycles},
  static constexpr OpcodeFacts kFacts[256] = {
      SCANLINE_OPCODES(SCANLINE_READ, SCANLINE_STORE, SCANLINE_MODIFY, SCANLINE_ACCUMULATOR,
                       SCANLINE_IMPLIED, SCANLINE_BRANCH, SCANLINE_CONTROL)};
#undef SCANLINE_READ
#undef SCANLINE_STORE
#undef SCANLINE_MODIFY
#undef SCANLINE_ACCUMULATOR
#undef SCANLINE_IMPLIED
#undef SCANLINE_BRANCH
#undef SCANLINE_CONTROL
  return kFacts[opcode];
}

SCANLINE_HD SCANLINE_INLINE bool is_cartridge(u16 address) { return address & 0x1000; }
SCANLINE_HD SCANLINE_INLINE bool is_ram(u16 address) { return (address & 0x1280) == 0x80; }
SCANLINE_HD SCANLINE_INLINE bool is_riot_register(u16 address) {
  return (address & 0x1280) == 0x280;
}
SCANLINE_HD SCANLINE_INLINE bool is_intim(u16 address) {
  return is_riot_register(address) && (address & 5) == 4;
}
SCANLINE_HD SCANLINE_INLINE bool is_timint(u16 address) {
  return is_riot_register(address) && (address & 5) == 5;
}

constexpr DecodedOp kSlowOp = {kSlow, 0, 0};

template <class Cartridge>
class Decoder {
 public:
  explicit Decoder(const RomImage& rom) : rom_(rom) {}

  DecodedOp decode(u32 index) const {
    const u8 code = rom_.bytes[index];
    if (!is_plain_code(index, 1)) return kSlowOp;
    const OpcodeFacts facts = facts_of(code);
    switch (facts.shape) {
      case Shape::Read:
        return decode_read(index, code, facts.mode);
      case Shape::Store:
        return decode_store(index, code, facts.mode);
      case Shape::Modify:
        return decode_modify(index, code, facts.mode);
      case Shape::Branch:
        return decode_branch(index, code);
      case Shape::Control:
        return decode_control(index, code);
      default:
        return decode_implied(index, code);
    }
  }

 private:
  static constexpr u32 kRegion = Cartridge::kRegionBytes;
  // In E0 only the last slice has a fixed place, and what lies there is slice 7.
  static constexpr bool kSliced = kRegion == 0x400;

  // All bytes of the instruction, and the one behind it, lie in one region; reading the
  // instruction has no effect.
  bool is_plain_code(u32 index, u32 length) const {
    const u32 last = index + length - 1;
    if (index / kRegion != (last + 1) / kRegion) return false;
    if (kSliced) return last < 7 * 0x400 + 0x3E0;
    return (index & 0xFFF) >= Cartridge::kPlainBegin && (last & 0xFFF) < Cartridge::kPlainEnd;
  }

  u16 word_at(u32 index) const { return u16(rom_.bytes[index] | (rom_.bytes[index + 1] << 8)); }

  // Index into the image of a plain ROM address as the code at `index` sees it; -1 if the ROM alone
  // does not tell. `count` bytes from there must be contiguous.
  i32 image_index(u32 index, u16 address, u32 count) const {
    const u32 offset = address & 0xFFF;
    if (!is_cartridge(address) || offset + count > 0x1000) return -1;
    if (offset < Cartridge::kPlainBegin || offset + count > Cartridge::kPlainEnd) return -1;
    if ((offset % kRegion) + count > kRegion) return -1;
    if (kSliced) return offset >= 0xC00 ? i32(0x1000 + offset) : -1;
    MachineState machine{};
    machine.bank[0] = u8(index / 0x1000);
    return i32(Cartridge::slice(machine, window_of(address)) * 0x400 + (offset & 0x3FF));
  }

  DecodedOp op(Handler family, u8 code, u32 operand, i32 extra = 0) const {
    return {u16(family + code), u16(operand), extra};
  }

  // ---- two bytes ----

  DecodedOp decode_implied(u32 index, u8 code) const {
    if (code == opcode::kDex || code == opcode::kDey) {
      const PollLoop loop = poll_loop_behind(index, 1, 2);
      if (loop.branch == opcode::kBne || loop.branch == opcode::kBpl) {
        return {u16(code == opcode::kDex ? kCountX : kCountY), 0, pack(loop)};
      }
    }
    return op(kFast, code, 0);
  }

  DecodedOp decode_branch(u32 index, u8 code) const {
    if (!is_plain_code(index, 2)) return kSlowOp;
    const i32 step = 2 + i8(rom_.bytes[index + 1]);
    const i32 target = i32(index) + step;
    if (target < 0 || u32(target) / kRegion != (index + 2) / kRegion) return kSlowOp;
    return op(kFast, code, crosses_page(u16(index + 2), u16(target)) ? 2 : 1, step);
  }

  DecodedOp decode_zero_page(u32 index, u8 code, Handler in_tia) const {
    const u8 address = rom_.bytes[index + 1];
    if (address & 0x80) return op(kFast, code, address & 0x7F);
    return in_tia == kSlow ? kSlowOp : op(in_tia, code, address);
  }

  // A pointer at 0xFF would take its high byte from the TIA.
  DecodedOp decode_pointer(u32 index, u8 code) const {
    const u8 pointer = rom_.bytes[index + 1];
    return pointer >= 0x80 && pointer < 0xFF ? op(kFast, code, pointer & 0x7F) : kSlowOp;
  }

  // ---- reads ----

  DecodedOp decode_read(u32 index, u8 code, Mode mode) const {
    const bool is_long =
        mode == Mode::Absolute || mode == Mode::AbsoluteX || mode == Mode::AbsoluteY;
    if (!is_plain_code(index, is_long ? 3 : 2)) return kSlowOp;
    switch (mode) {
      case Mode::Zero:
        return decode_zero_page(index, code, kTia);
      case Mode::Absolute:
        return decode_absolute_read(index, code);
      case Mode::AbsoluteX:
      case Mode::AbsoluteY:
        return decode_indexed_read(index, code);
      case Mode::IndirectY:
        return decode_pointer(index, code);
      default:
        return op(kFast, code, rom_.bytes[index + 1]);
    }
  }

  DecodedOp decode_absolute_read(u32 index, u8 code) const {
    const u16 address = word_at(index + 1);
    if (is_ram(address)) return op(kFast, code, address & 0x7F);
    if (is_cartridge(address)) {
      const i32 place = image_index(index, address, 1);
      return place < 0 ? op(kGeneric, code, address) : op(kConstant, code, rom_.bytes[place]);
    }
    const i32 loop = pack(poll_loop_behind(index, 3, 4));
    if (is_intim(address)) {
      if (code == opcode::kLda) return {kTimerA, address, loop};
      if (code == opcode::kLdx) return {kTimerX, address, loop};
      if (code == opcode::kLdy) return {kTimerY, address, loop};
    }
    if (is_timint(address)) {
      if (code == opcode::kLda) return {kFlagA, address, loop};
      if (code == opcode::kBit) return {kFlagBit, address, loop};
    }
    return op(kGeneric, code, address);
  }

  DecodedOp decode_indexed_read(u32 index, u8 code) const {
    const u16 base = word_at(index + 1);
    const i32 place = image_index(index, base, 256);
    return place < 0 ? op(kGeneric, code, base) : op(kFast, code, base & 0xFF, place);
  }

  // The branch behind an instruction, if it leads back to it.
  PollLoop poll_loop_behind(u32 index, u32 length, u8 cycles) const {
    const u32 next = index + length;
    if (!is_plain_code(index, length + 2)) return {0, 0};
    if (facts_of(rom_.bytes[next]).shape != Shape::Branch) return {0, 0};
    if (i8(rom_.bytes[next + 1]) != -i32(length) - 2) return {0, 0};
    const u8 turn = crosses_page(u16(next + 2), u16(index)) ? 4 : 3;
    return {rom_.bytes[next], u8(cycles + turn)};
  }

  // ---- stores and modifications ----

  DecodedOp decode_store(u32 index, u8 code, Mode mode) const {
    switch (mode) {
      case Mode::Zero:
        return is_plain_code(index, 2) ? decode_zero_store(index, code) : kSlowOp;
      case Mode::ZeroX:
      case Mode::ZeroY:
        return is_plain_code(index, 2) ? op(kFast, code, rom_.bytes[index + 1]) : kSlowOp;
      case Mode::IndirectX:
        return kSlowOp;
      case Mode::IndirectY:
        return is_plain_code(index, 2) ? decode_pointer(index, code) : kSlowOp;
      default:
        return is_plain_code(index, 3) ? decode_long_store(index, code, mode) : kSlowOp;
    }
  }

  DecodedOp decode_zero_store(u32 index, u8 code) const {
    const u8 address = rom_.bytes[index + 1];
    if (address & 0x80) return op(kFast, code, address & 0x7F);
    const u8 target = address & 0x3F;
    if (code == opcode::kSta) return op(kStoreA, target, address);
    if (code == opcode::kStx) return op(kStoreX, target, address);
    if (code == opcode::kSty) return op(kStoreY, target, address);
    return op(kGeneric, code, address);
  }

  DecodedOp decode_long_store(u32 index, u8 code, Mode mode) const {
    const u16 address = word_at(index + 1);
    if (mode != Mode::Absolute) return op(kGeneric, code, address);
    return is_ram(address) ? op(kFast, code, address & 0x7F) : op(kGeneric, code, address);
  }

  DecodedOp decode_modify(u32 index, u8 code, Mode mode) const {
    if (mode == Mode::Zero && is_plain_code(index, 2)) return decode_zero_page(index, code, kSlow);
    if (mode == Mode::ZeroX && is_plain_code(index, 2)) {
      return op(kFast, code, rom_.bytes[index + 1]);
    }
    if (mode == Mode::Absolute && is_plain_code(index, 3) && is_ram(word_at(index + 1))) {
      return op(kFast, code, word_at(index + 1) & 0x7F);
    }
    return kSlowOp;
  }

  // ---- jumps and the stack ----

  DecodedOp decode_control(u32 index, u8 code) const {
    switch (code) {
      case opcode::kJsr:
      case opcode::kJmp:
        return decode_jump(index, code);
      case opcode::kJmpIndirect:
        return decode_indirect_jump(index, code);
      case opcode::kRts:
      case opcode::kPha:
      case opcode::kPhp:
      case opcode::kPla:
      case opcode::kPlp:
        return op(kFast, code, 0);
      default:
        return kSlowOp;
    }
  }

  DecodedOp decode_jump(u32 index, u8 code) const {
    if (!is_plain_code(index, 3)) return kSlowOp;
    const u16 target = word_at(index + 1);
    return is_cartridge(target) ? op(kFast, code, target) : kSlowOp;
  }

  DecodedOp decode_indirect_jump(u32 index, u8 code) const {
    if (!is_plain_code(index, 3)) return kSlowOp;
    const u16 low = word_at(index + 1), high = u16((low & 0xFF00) | u8(low + 1));
    if (is_ram(low) && is_ram(high)) return op(kFast, code, low & 0x7F, high & 0x7F);
    const i32 low_place = image_index(index, low, 1), high_place = image_index(index, high, 1);
    if (low_place < 0 || high_place < 0) return kSlowOp;
    const u16 target = u16(rom_.bytes[low_place] | (rom_.bytes[high_place] << 8));
    return is_cartridge(target) ? op(kConstant, code, target) : kSlowOp;
  }

  const RomImage& rom_;
};

// Bytes of program: the display data of the DPC is none.
inline u32 num_decoded_ops(const RomImage& rom) {
  if (!is_supported(rom.type)) return 0;
  return rom.type == CartridgeType::kDPC ? CartridgeDPC::kDisplay : rom.size_bytes;
}

// `ops` has room for num_decoded_ops(rom). Put it into RomImage::ops afterwards.
inline void decode_rom(const RomImage& rom, DecodedOp* ops) {
  visit_cartridge(rom.type, [&rom, ops](auto cartridge) {
    const Decoder<decltype(cartridge)> decoder(rom);
    for (u32 index = 0; index < num_decoded_ops(rom); ++index) ops[index] = decoder.decode(index);
  });
}

}  // namespace scanline
