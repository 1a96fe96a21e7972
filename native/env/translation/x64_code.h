// x64_code.h -- writes the x86-64 instructions that emitter.h uses, and no others.
//
// Takes registers, memory operands and labels; gives position-independent bytes. 32-bit operations
// unless a name says otherwise. Knows nothing of what the code is for.
#pragma once

#include <vector>

#include "../../core/types.h"

namespace scanline {

enum Reg : u8 {
  kRax,
  kRcx,
  kRdx,
  kRbx,
  kRsp,
  kRbp,
  kRsi,
  kRdi,  // clang-format off
  kR8, kR9, kR10, kR11, kR12, kR13, kR14, kR15  // clang-format on
};

// Numbers of the conditions and of the arithmetic operations are those of the encoding.
enum class If : u8 {
  kOverflow = 0,
  kBelow = 2,
  kNotBelow = 3,
  kZero = 4,
  kNotZero = 5,
  kSign = 8,
  kNotSign = 9
};
enum class Alu : u8 { kAdd, kOr, kAdc, kSbb, kAnd, kSub, kXor, kCmp };
enum class Shift : u8 {
  kRotateThroughCarryLeft = 2,
  kRotateThroughCarryRight = 3,
  kLeft = 4,
  kRight = 5
};

// [base + index * scale + offset]; an index of kRsp is none, as in the encoding.
struct Mem {
  Reg base;
  i32 offset = 0;
  Reg index = kRsp;
  u8 log2_scale = 0;
};

// A place in the code, jumped to before or after it is known.
struct Label {
  i64 place = -1;
  std::vector<u32> uses;  // places of the displacements that wait for it
};

class X64Code {
 public:
  const std::vector<u8>& bytes() const { return bytes_; }
  u32 size() const { return static_cast<u32>(bytes_.size()); }

  void bind(Label& label) {
    label.place = size();
    for (u32 use : label.uses) patch(use, label);
    label.uses.clear();
  }

  // ---- moves ----
  void set(Reg target, u32 value) {
    rex(false, 0, 0, target);
    byte(0xB8 | (target & 7));
    word32(value);
  }
  void copy(Reg target, Reg source) { registers(0x89, source, target); }
  void copy64(Reg target, Reg source) { registers(0x89, source, target, true); }
  void copy_byte(Reg target, Reg source) { registers2(0xB6, target, source, true); }  // extends
  void copy_word(Reg target, Reg source) { registers2(0xB7, target, source, false); }
  void load_byte(Reg target, Mem from) { memory2(0xB6, target, from); }
  void load_word(Reg target, Mem from) { memory2(0xB7, target, from); }
  void load(Reg target, Mem from) { memory(0x8B, target, from); }
  void load64(Reg target, Mem from) { memory(0x8B, target, from, true); }
  void load_signed64(Reg target, Mem from) { memory(0x63, target, from, true); }
  void store_byte(Mem to, Reg source) { memory(0x88, source, to); }
  void store_word(Mem to, Reg source) {
    byte(0x66);
    memory(0x89, source, to);
  }
  void store(Mem to, Reg source) { memory(0x89, source, to); }
  void store64(Mem to, Reg source) { memory(0x89, source, to, true); }
  void store_set(Mem to, u32 value) {
    memory(0xC7, kRax, to);
    word32(value);
  }
  void store_byte_set(Mem to, u8 value) {
    memory(0xC6, kRax, to);
    byte(value);
  }
  void address(Reg target, Mem of) { memory(0x8D, target, of); }
  void address64(Reg target, Mem of) { memory(0x8D, target, of, true); }

  // ---- arithmetic ----
  void alu(Alu operation, Reg target, Reg source) {
    registers(number(operation) | 1, source, target);
  }
  void alu_byte(Alu operation, Reg target, Reg source) {
    registers(number(operation), source, target, false, true);
  }
  void alu(Alu operation, Reg target, i32 value) {
    const bool is_short = value >= -128 && value < 128;
    rex(false, 0, 0, target);
    byte(is_short ? 0x83 : 0x81);
    byte(0xC0 | static_cast<u32>(operation) << 3 | (target & 7));
    constant(value, is_short);
  }
  void alu64(Alu operation, Reg target, i32 value) {
    rex(true, 0, 0, target);
    byte(0x81);
    byte(0xC0 | static_cast<u32>(operation) << 3 | (target & 7));
    word32(static_cast<u32>(value));
  }
  void alu(Alu operation, Reg target, Mem from) { memory(number(operation) | 3, target, from); }
  void alu(Alu operation, Mem to, i32 value) {
    const bool is_short = value >= -128 && value < 128;
    memory(is_short ? 0x83 : 0x81, static_cast<Reg>(operation), to);
    constant(value, is_short);
  }
  void alu_byte(Alu operation, Mem to, u8 value) {
    memory(0x80, static_cast<Reg>(operation), to);
    byte(value);
  }
  void test_byte(Reg a, Reg b) { registers(0x84, b, a, false, true); }
  void test(Reg a, Reg b) { registers(0x85, b, a); }
  void test(Reg target, u32 value) {
    rex(false, 0, 0, target);
    byte(0xF7);
    byte(0xC0 | (target & 7));
    word32(value);
  }
  void increment_byte(Reg target) { single(0xFE, 0, target); }
  void decrement_byte(Reg target) { single(0xFE, 1, target); }
  void shift_byte(Shift how, Reg target) { single(0xD0, static_cast<u32>(how), target); }
  void shift(Shift how, Reg target, u8 count) {
    rex(false, 0, 0, target);
    byte(0xC1);
    byte(0xC0 | static_cast<u32>(how) << 3 | (target & 7));
    byte(count);
  }
  void shift64(Shift how, Reg target, u8 count) {
    rex(true, 0, 0, target);
    byte(0xC1);
    byte(0xC0 | static_cast<u32>(how) << 3 | (target & 7));
    byte(count);
  }
  void flip_carry() { byte(0xF5); }
  void store_condition(If condition, Mem to) {
    memory2(0x90 | static_cast<u32>(condition), kRax, to);
  }

  // ---- control ----
  void jump(Label& to) {
    byte(0xE9);
    displacement(to);
  }
  void jump_if(If condition, Label& to) {
    byte(0x0F);
    byte(0x80 | static_cast<u32>(condition));
    displacement(to);
  }
  void jump(Mem to) { memory(0xFF, static_cast<Reg>(4), to); }
  void jump(Reg to) { single(0xFF, 4, to); }
  void call(Mem to) { memory(0xFF, static_cast<Reg>(2), to); }
  void push(Reg reg) {
    rex(false, 0, 0, reg);
    byte(0x50 | (reg & 7));
  }
  void pop(Reg reg) {
    rex(false, 0, 0, reg);
    byte(0x58 | (reg & 7));
  }
  void ret() { byte(0xC3); }

 private:
  static u32 number(Alu operation) { return static_cast<u32>(operation) << 3; }

  void byte(u32 value) { bytes_.push_back(static_cast<u8>(value)); }
  void word32(u32 value) {
    for (u32 shift = 0; shift < 32; shift += 8) byte(value >> shift);
  }
  void constant(i32 value, bool is_short) {
    if (is_short) return byte(static_cast<u32>(value));
    word32(static_cast<u32>(value));
  }

  // The prefix, where one is needed.
  void rex(bool wide, u32 reg, u32 index, u32 base, bool always = false) {
    const u32 bits = (wide ? 8u : 0u) | (reg & 8) >> 1 | (index & 8) >> 2 | (base & 8) >> 3;
    if (bits != 0 || always) byte(0x40 | bits);
  }

  // Byte registers other than the first four need the prefix.
  void registers(u32 opcode, Reg reg, Reg rm, bool wide = false, bool bytes = false) {
    rex(wide, reg, 0, rm, bytes && (reg >= 4 || rm >= 4));
    byte(opcode);
    byte(0xC0u | (reg & 7u) << 3 | (rm & 7u));
  }
  void registers2(u32 opcode, Reg reg, Reg rm, bool bytes) {
    rex(false, reg, 0, rm, bytes && rm >= 4);
    byte(0x0F);
    byte(opcode);
    byte(0xC0u | (reg & 7u) << 3 | (rm & 7u));
  }
  void single(u32 opcode, u32 extension, Reg rm) {
    rex(false, 0, 0, rm, opcode != 0xFF && rm >= 4);
    byte(opcode);
    byte(0xC0u | extension << 3 | (rm & 7u));
  }

  void memory(u32 opcode, Reg reg, Mem at, bool wide = false) {
    rex(wide, reg, at.index, at.base);
    byte(opcode);
    operand(reg, at);
  }
  void memory2(u32 opcode, Reg reg, Mem at) {
    rex(false, reg, at.index, at.base);
    byte(0x0F);
    byte(opcode);
    operand(reg, at);
  }
  void operand(Reg reg, Mem at) {
    const bool is_short = at.offset >= -128 && at.offset < 128;
    const bool indexed = at.index != kRsp || (at.base & 7) == kRsp;
    byte((is_short ? 0x40u : 0x80u) | (reg & 7u) << 3 | (indexed ? 4u : at.base & 7u));
    if (indexed) byte(u32(at.log2_scale) << 6 | (at.index & 7u) << 3 | (at.base & 7u));
    constant(at.offset, is_short);
  }

  void displacement(Label& to) {
    const u32 place = size();
    word32(0);
    if (to.place < 0) {
      to.uses.push_back(place);
    } else {
      patch(place, to);
    }
  }
  void patch(u32 place, const Label& label) {
    const u32 value = static_cast<u32>(label.place - (i64(place) + 4));
    for (u32 i = 0; i < 4; ++i) bytes_[place + i] = static_cast<u8>(value >> (8 * i));
  }

  std::vector<u8> bytes_;
};

}  // namespace scanline
