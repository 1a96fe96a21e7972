// cpu6507.h -- the registers of the 6507 and what its operations compute.
//
// Pure functions of registers and one operand: no bus, no cycles, no decoding. Every dispatcher
// (switch, pre-decoded, translated, device) calls these, so that dispatch may differ and
// semantics never do. Shapes of the functions: opcodes.h. Behaviour is ALE's "low" 6502,
// undocumented operations included.
#pragma once

#include "state.h"

namespace scanline {

// N and Z share one word, so that most operations store a single value: Z is "low byte is 0",
// N is bit 7 or bit 8. Only BIT and PLP need bit 8.
struct Registers {
  u16 pc;
  u16 nz;
  u8 a, x, y, sp;
  u8 carry, overflow, decimal, interrupt_disable;  // 0 or 1
};

SCANLINE_HD SCANLINE_INLINE bool is_zero(const Registers& r) { return (r.nz & 0xFF) == 0; }
SCANLINE_HD SCANLINE_INLINE bool is_negative(const Registers& r) { return (r.nz & 0x180) != 0; }

// B is always set on the 6507, bit 5 always reads as 1.
SCANLINE_HD SCANLINE_INLINE u8 pack_status(const Registers& r) {
  return u8((is_negative(r) ? 0x80 : 0) | (r.overflow << 6) | 0x30 | (r.decimal << 3) |
            (r.interrupt_disable << 2) | (is_zero(r) ? 2 : 0) | r.carry);
}

SCANLINE_HD SCANLINE_INLINE void unpack_status(Registers& r, u8 p) {
  r.nz = u16(((p & 0x80) << 1) | ((p & 2) ? 0 : 1));
  r.overflow = (p >> 6) & 1;
  r.decimal = (p >> 3) & 1;
  r.interrupt_disable = (p >> 2) & 1;
  r.carry = p & 1;
}

SCANLINE_HD SCANLINE_INLINE Registers load_registers(const MachineState& s) {
  Registers r{};
  r.pc = s.pc;
  r.a = s.a;
  r.x = s.x;
  r.y = s.y;
  r.sp = s.sp;
  unpack_status(r, s.p);
  return r;
}

SCANLINE_HD SCANLINE_INLINE void store_registers(MachineState& s, const Registers& r) {
  s.pc = r.pc;
  s.a = r.a;
  s.x = r.x;
  s.y = r.y;
  s.sp = r.sp;
  s.p = pack_status(r);
}

// ---- decimal arithmetic: two conversions, wrong for digits above 9 in ALE's own way ----------

SCANLINE_HD SCANLINE_INLINE i32 from_bcd(i32 value) { return (value >> 4) * 10 + (value & 15); }
SCANLINE_HD SCANLINE_INLINE u8 to_bcd(i32 value) {
  return u8((((value % 100) / 10) << 4) | (value % 10));
}

SCANLINE_HD SCANLINE_INLINE u8 decimal_overflow(u8 before, u8 after, u8 operand) {
  return u8(((before ^ after) & (after ^ operand)) >> 7);
}

SCANLINE_HD SCANLINE_INLINE void adc_decimal(Registers& r, u8 operand) {
  const u8 before = r.a;
  const i32 sum = from_bcd(before) + from_bcd(operand) + r.carry;
  r.carry = sum > 99;
  r.a = to_bcd(sum & 0xFF);
  r.nz = r.a;
  r.overflow = decimal_overflow(before, r.a, operand);
}

SCANLINE_HD SCANLINE_INLINE void sbc_decimal(Registers& r, u8 operand) {
  const u8 before = r.a;
  const i32 borrow = 1 - r.carry;
  i32 difference = from_bcd(before) - from_bcd(operand) - borrow;
  if (difference < 0) difference += 100;
  // Below -100 ALE looks up its second table with a negative index, which lands at the end of
  // the first one.
  r.a = difference >= 0 ? to_bcd(difference) : u8(from_bcd(256 + difference));
  r.nz = r.a;
  r.carry = before >= operand + borrow;
  r.overflow = decimal_overflow(before, r.a, operand);
}

SCANLINE_HD SCANLINE_INLINE void add_binary(Registers& r, u8 operand) {
  const u32 sum = u32(r.a) + operand + r.carry;
  r.overflow = u8(((r.a ^ sum) & (operand ^ sum) & 0x80) >> 7);
  r.carry = u8(sum >> 8);
  r.a = u8(sum);
  r.nz = r.a;
}

// ---- READ ------------------------------------------------------------------------------------

SCANLINE_HD SCANLINE_INLINE void adc(Registers& r, u8 operand) {
  if (r.decimal) return adc_decimal(r, operand);
  add_binary(r, operand);
}
SCANLINE_HD SCANLINE_INLINE void sbc(Registers& r, u8 operand) {
  if (r.decimal) return sbc_decimal(r, operand);
  add_binary(r, u8(~operand));
}
SCANLINE_HD SCANLINE_INLINE void lda(Registers& r, u8 operand) { r.nz = r.a = operand; }
SCANLINE_HD SCANLINE_INLINE void ldx(Registers& r, u8 operand) { r.nz = r.x = operand; }
SCANLINE_HD SCANLINE_INLINE void ldy(Registers& r, u8 operand) { r.nz = r.y = operand; }
SCANLINE_HD SCANLINE_INLINE void lax(Registers& r, u8 operand) { r.nz = r.a = r.x = operand; }
SCANLINE_HD SCANLINE_INLINE void and_(Registers& r, u8 operand) { r.nz = r.a &= operand; }
SCANLINE_HD SCANLINE_INLINE void ora(Registers& r, u8 operand) { r.nz = r.a |= operand; }
SCANLINE_HD SCANLINE_INLINE void eor(Registers& r, u8 operand) { r.nz = r.a ^= operand; }
SCANLINE_HD SCANLINE_INLINE void nop(Registers&, u8) {}

SCANLINE_HD SCANLINE_INLINE void compare(Registers& r, u8 left, u8 right) {
  r.nz = u8(left - right);
  r.carry = left >= right;
}
SCANLINE_HD SCANLINE_INLINE void cmp(Registers& r, u8 operand) { compare(r, r.a, operand); }
SCANLINE_HD SCANLINE_INLINE void cpx(Registers& r, u8 operand) { compare(r, r.x, operand); }
SCANLINE_HD SCANLINE_INLINE void cpy(Registers& r, u8 operand) { compare(r, r.y, operand); }

SCANLINE_HD SCANLINE_INLINE void bit(Registers& r, u8 operand) {
  r.nz = u16((r.a & operand) | ((operand & 0x80) << 1));
  r.overflow = (operand >> 6) & 1;
}
SCANLINE_HD SCANLINE_INLINE void anc(Registers& r, u8 operand) {
  and_(r, operand);
  r.carry = r.a >> 7;
}
SCANLINE_HD SCANLINE_INLINE void asr(Registers& r, u8 operand) {
  r.a &= operand;
  r.carry = r.a & 1;
  r.nz = r.a >>= 1;
}
SCANLINE_HD SCANLINE_INLINE void arr_binary(Registers& r, u8 operand) {
  r.nz = r.a = u8(((r.a & operand) >> 1) | (r.carry << 7));
  r.carry = (r.a >> 6) & 1;
  r.overflow = ((r.a >> 6) ^ (r.a >> 5)) & 1;
}
SCANLINE_HD SCANLINE_INLINE void arr_decimal(Registers& r, u8 operand) {
  const u8 value = r.a & operand;
  u8 rotated = u8((value >> 1) | (r.carry << 7));
  r.nz = rotated;
  r.overflow = ((value ^ rotated) >> 6) & 1;
  if ((value & 0x0F) + (value & 0x01) > 0x05) rotated = (rotated & 0xF0) | ((rotated + 6) & 0x0F);
  r.carry = (value & 0xF0) + (value & 0x10) > 0x50;
  r.a = r.carry ? u8(rotated + 0x60) : rotated;
}
SCANLINE_HD SCANLINE_INLINE void arr(Registers& r, u8 operand) {
  if (r.decimal) return arr_decimal(r, operand);
  arr_binary(r, operand);
}
SCANLINE_HD SCANLINE_INLINE void ane(Registers& r, u8 operand) {
  r.nz = r.a = (r.a | 0xEE) & r.x & operand;
}
SCANLINE_HD SCANLINE_INLINE void lxa(Registers& r, u8 operand) { lax(r, (r.a | 0xEE) & operand); }
SCANLINE_HD SCANLINE_INLINE void las(Registers& r, u8 operand) {
  r.sp &= operand;
  lax(r, r.sp);
}
SCANLINE_HD SCANLINE_INLINE void sbx(Registers& r, u8 operand) {
  const u8 masked = r.a & r.x;
  r.carry = masked >= operand;
  r.nz = r.x = u8(masked - operand);
}

// ---- STORE: the value to write; the address matters to the unstable ones only ------------------

SCANLINE_HD SCANLINE_INLINE u8 sta(Registers& r, u16) { return r.a; }
SCANLINE_HD SCANLINE_INLINE u8 stx(Registers& r, u16) { return r.x; }
SCANLINE_HD SCANLINE_INLINE u8 sty(Registers& r, u16) { return r.y; }
SCANLINE_HD SCANLINE_INLINE u8 sax(Registers& r, u16) { return r.a & r.x; }
SCANLINE_HD SCANLINE_INLINE u8 next_page(u16 address) { return u8((address >> 8) + 1); }
SCANLINE_HD SCANLINE_INLINE u8 sha(Registers& r, u16 address) {
  return r.a & r.x & next_page(address);
}
SCANLINE_HD SCANLINE_INLINE u8 shs(Registers& r, u16 address) {
  r.sp = r.a & r.x;
  return r.sp & next_page(address);
}
SCANLINE_HD SCANLINE_INLINE u8 shx(Registers& r, u16 address) { return r.x & next_page(address); }
SCANLINE_HD SCANLINE_INLINE u8 shy(Registers& r, u16 address) { return r.y & next_page(address); }

// ---- MODIFY and ACCUMULATOR: the new value -----------------------------------------------------

SCANLINE_HD SCANLINE_INLINE u8 asl(Registers& r, u8 operand) {
  r.carry = operand >> 7;
  r.nz = u8(operand << 1);
  return u8(r.nz);
}
SCANLINE_HD SCANLINE_INLINE u8 lsr(Registers& r, u8 operand) {
  r.carry = operand & 1;
  r.nz = operand >> 1;
  return u8(r.nz);
}
SCANLINE_HD SCANLINE_INLINE u8 rol(Registers& r, u8 operand) {
  const u8 value = u8((operand << 1) | r.carry);
  r.carry = operand >> 7;
  r.nz = value;
  return value;
}
SCANLINE_HD SCANLINE_INLINE u8 ror(Registers& r, u8 operand) {
  const u8 value = u8((operand >> 1) | (r.carry << 7));
  r.carry = operand & 1;
  r.nz = value;
  return value;
}
SCANLINE_HD SCANLINE_INLINE u8 inc(Registers& r, u8 operand) {
  r.nz = u8(operand + 1);
  return u8(r.nz);
}
SCANLINE_HD SCANLINE_INLINE u8 dec(Registers& r, u8 operand) {
  r.nz = u8(operand - 1);
  return u8(r.nz);
}
SCANLINE_HD SCANLINE_INLINE u8 slo(Registers& r, u8 operand) {
  const u8 value = asl(r, operand);
  ora(r, value);
  return value;
}
SCANLINE_HD SCANLINE_INLINE u8 rla(Registers& r, u8 operand) {
  const u8 value = rol(r, operand);
  and_(r, value);
  return value;
}
SCANLINE_HD SCANLINE_INLINE u8 sre(Registers& r, u8 operand) {
  const u8 value = lsr(r, operand);
  eor(r, value);
  return value;
}
SCANLINE_HD SCANLINE_INLINE u8 rra(Registers& r, u8 operand) {
  const u8 value = ror(r, operand);
  adc(r, value);
  return value;
}
SCANLINE_HD SCANLINE_INLINE u8 dcp(Registers& r, u8 operand) {
  const u8 value = u8(operand - 1);
  cmp(r, value);
  return value;
}
SCANLINE_HD SCANLINE_INLINE u8 isb(Registers& r, u8 operand) {
  const u8 value = u8(operand + 1);
  sbc(r, value);
  return value;
}

// ---- IMPLIED -----------------------------------------------------------------------------------

SCANLINE_HD SCANLINE_INLINE void idle(Registers&) {}
SCANLINE_HD SCANLINE_INLINE void clc(Registers& r) { r.carry = 0; }
SCANLINE_HD SCANLINE_INLINE void sec(Registers& r) { r.carry = 1; }
SCANLINE_HD SCANLINE_INLINE void cli(Registers& r) { r.interrupt_disable = 0; }
SCANLINE_HD SCANLINE_INLINE void sei(Registers& r) { r.interrupt_disable = 1; }
SCANLINE_HD SCANLINE_INLINE void clv(Registers& r) { r.overflow = 0; }
SCANLINE_HD SCANLINE_INLINE void cld(Registers& r) { r.decimal = 0; }
SCANLINE_HD SCANLINE_INLINE void sed(Registers& r) { r.decimal = 1; }
SCANLINE_HD SCANLINE_INLINE void tax(Registers& r) { r.nz = r.x = r.a; }
SCANLINE_HD SCANLINE_INLINE void tay(Registers& r) { r.nz = r.y = r.a; }
SCANLINE_HD SCANLINE_INLINE void tsx(Registers& r) { r.nz = r.x = r.sp; }
SCANLINE_HD SCANLINE_INLINE void txa(Registers& r) { r.nz = r.a = r.x; }
SCANLINE_HD SCANLINE_INLINE void txs(Registers& r) { r.sp = r.x; }
SCANLINE_HD SCANLINE_INLINE void tya(Registers& r) { r.nz = r.a = r.y; }
SCANLINE_HD SCANLINE_INLINE void dex(Registers& r) { r.nz = --r.x; }
SCANLINE_HD SCANLINE_INLINE void dey(Registers& r) { r.nz = --r.y; }
SCANLINE_HD SCANLINE_INLINE void inx(Registers& r) { r.nz = ++r.x; }
SCANLINE_HD SCANLINE_INLINE void iny(Registers& r) { r.nz = ++r.y; }

// ---- BRANCH: is it taken? ----------------------------------------------------------------------

SCANLINE_HD SCANLINE_INLINE bool bpl(const Registers& r) { return !is_negative(r); }
SCANLINE_HD SCANLINE_INLINE bool bmi(const Registers& r) { return is_negative(r); }
SCANLINE_HD SCANLINE_INLINE bool bvc(const Registers& r) { return !r.overflow; }
SCANLINE_HD SCANLINE_INLINE bool bvs(const Registers& r) { return r.overflow; }
SCANLINE_HD SCANLINE_INLINE bool bcc(const Registers& r) { return !r.carry; }
SCANLINE_HD SCANLINE_INLINE bool bcs(const Registers& r) { return r.carry; }
SCANLINE_HD SCANLINE_INLINE bool bne(const Registers& r) { return !is_zero(r); }
SCANLINE_HD SCANLINE_INLINE bool beq(const Registers& r) { return is_zero(r); }

}  // namespace scanline
