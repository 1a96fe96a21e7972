// opcodes.h -- the 256 opcodes of the 6507: operation, addressing mode, cycles.
//
// In the order of their codes, one list for every dispatcher (switch, pre-decoded, translated,
// device). A user defines the seven macros; each entry calls the one for the shape of its bus
// accesses:
//   READ         operation(registers, operand)         operand read once at the effective address
//   STORE        value = operation(registers, address)  written once
//   MODIFY       value = operation(registers, operand)  read once, written once
//   ACCUMULATOR  a = operation(registers, a)            no access
//   IMPLIED      operation(registers)                   no access
//   BRANCH       condition(registers)                   displacement byte
//   CONTROL      operation(registers, bus)              its own accesses
// Operations: cpu6507.h and addressing.h. Cycles are without the extras of page crossings and
// taken branches. They are those of ALE, including 4 for 0xa7 where the chip takes 3.
#pragma once

namespace scanline {

// clang-format off
#define SCANLINE_OPCODES(READ, STORE, MODIFY, ACCUMULATOR, IMPLIED, BRANCH, CONTROL) \
  CONTROL(0x00, brk, 7) \
  READ(0x01, ora, IndirectX, 6) \
  CONTROL(0x02, jam, 2) \
  MODIFY(0x03, slo, IndirectX, 8) \
  READ(0x04, nop, Zero, 3) \
  READ(0x05, ora, Zero, 3) \
  MODIFY(0x06, asl, Zero, 5) \
  MODIFY(0x07, slo, Zero, 5) \
  CONTROL(0x08, php, 3) \
  READ(0x09, ora, Immediate, 2) \
  ACCUMULATOR(0x0a, asl, 2) \
  READ(0x0b, anc, Immediate, 2) \
  READ(0x0c, nop, Absolute, 4) \
  READ(0x0d, ora, Absolute, 4) \
  MODIFY(0x0e, asl, Absolute, 6) \
  MODIFY(0x0f, slo, Absolute, 6) \
  BRANCH(0x10, bpl, 2) \
  READ(0x11, ora, IndirectY, 5) \
  CONTROL(0x12, jam, 2) \
  MODIFY(0x13, slo, IndirectY, 8) \
  READ(0x14, nop, ZeroX, 4) \
  READ(0x15, ora, ZeroX, 4) \
  MODIFY(0x16, asl, ZeroX, 6) \
  MODIFY(0x17, slo, ZeroX, 6) \
  IMPLIED(0x18, clc, 2) \
  READ(0x19, ora, AbsoluteY, 4) \
  IMPLIED(0x1a, idle, 2) \
  MODIFY(0x1b, slo, AbsoluteY, 7) \
  READ(0x1c, nop, AbsoluteX, 4) \
  READ(0x1d, ora, AbsoluteX, 4) \
  MODIFY(0x1e, asl, AbsoluteX, 7) \
  MODIFY(0x1f, slo, AbsoluteX, 7) \
  CONTROL(0x20, jsr, 6) \
  READ(0x21, and_, IndirectX, 6) \
  CONTROL(0x22, jam, 2) \
  MODIFY(0x23, rla, IndirectX, 8) \
  READ(0x24, bit, Zero, 3) \
  READ(0x25, and_, Zero, 3) \
  MODIFY(0x26, rol, Zero, 5) \
  MODIFY(0x27, rla, Zero, 5) \
  CONTROL(0x28, plp, 4) \
  READ(0x29, and_, Immediate, 2) \
  ACCUMULATOR(0x2a, rol, 2) \
  READ(0x2b, anc, Immediate, 2) \
  READ(0x2c, bit, Absolute, 4) \
  READ(0x2d, and_, Absolute, 4) \
  MODIFY(0x2e, rol, Absolute, 6) \
  MODIFY(0x2f, rla, Absolute, 6) \
  BRANCH(0x30, bmi, 2) \
  READ(0x31, and_, IndirectY, 5) \
  CONTROL(0x32, jam, 2) \
  MODIFY(0x33, rla, IndirectY, 8) \
  READ(0x34, nop, ZeroX, 4) \
  READ(0x35, and_, ZeroX, 4) \
  MODIFY(0x36, rol, ZeroX, 6) \
  MODIFY(0x37, rla, ZeroX, 6) \
  IMPLIED(0x38, sec, 2) \
  READ(0x39, and_, AbsoluteY, 4) \
  IMPLIED(0x3a, idle, 2) \
  MODIFY(0x3b, rla, AbsoluteY, 7) \
  READ(0x3c, nop, AbsoluteX, 4) \
  READ(0x3d, and_, AbsoluteX, 4) \
  MODIFY(0x3e, rol, AbsoluteX, 7) \
  MODIFY(0x3f, rla, AbsoluteX, 7) \
  CONTROL(0x40, rti, 6) \
  READ(0x41, eor, IndirectX, 6) \
  CONTROL(0x42, jam, 2) \
  MODIFY(0x43, sre, IndirectX, 8) \
  READ(0x44, nop, Zero, 3) \
  READ(0x45, eor, Zero, 3) \
  MODIFY(0x46, lsr, Zero, 5) \
  MODIFY(0x47, sre, Zero, 5) \
  CONTROL(0x48, pha, 3) \
  READ(0x49, eor, Immediate, 2) \
  ACCUMULATOR(0x4a, lsr, 2) \
  READ(0x4b, asr, Immediate, 2) \
  CONTROL(0x4c, jmp_absolute, 3) \
  READ(0x4d, eor, Absolute, 4) \
  MODIFY(0x4e, lsr, Absolute, 6) \
  MODIFY(0x4f, sre, Absolute, 6) \
  BRANCH(0x50, bvc, 2) \
  READ(0x51, eor, IndirectY, 5) \
  CONTROL(0x52, jam, 2) \
  MODIFY(0x53, sre, IndirectY, 8) \
  READ(0x54, nop, ZeroX, 4) \
  READ(0x55, eor, ZeroX, 4) \
  MODIFY(0x56, lsr, ZeroX, 6) \
  MODIFY(0x57, sre, ZeroX, 6) \
  IMPLIED(0x58, cli, 2) \
  READ(0x59, eor, AbsoluteY, 4) \
  IMPLIED(0x5a, idle, 2) \
  MODIFY(0x5b, sre, AbsoluteY, 7) \
  READ(0x5c, nop, AbsoluteX, 4) \
  READ(0x5d, eor, AbsoluteX, 4) \
  MODIFY(0x5e, lsr, AbsoluteX, 7) \
  MODIFY(0x5f, sre, AbsoluteX, 7) \
  CONTROL(0x60, rts, 6) \
  READ(0x61, adc, IndirectX, 6) \
  CONTROL(0x62, jam, 2) \
  MODIFY(0x63, rra, IndirectX, 8) \
  READ(0x64, nop, Zero, 3) \
  READ(0x65, adc, Zero, 3) \
  MODIFY(0x66, ror, Zero, 5) \
  MODIFY(0x67, rra, Zero, 5) \
  CONTROL(0x68, pla, 4) \
  READ(0x69, adc, Immediate, 2) \
  ACCUMULATOR(0x6a, ror, 2) \
  READ(0x6b, arr, Immediate, 2) \
  CONTROL(0x6c, jmp_indirect, 5) \
  READ(0x6d, adc, Absolute, 4) \
  MODIFY(0x6e, ror, Absolute, 6) \
  MODIFY(0x6f, rra, Absolute, 6) \
  BRANCH(0x70, bvs, 2) \
  READ(0x71, adc, IndirectY, 5) \
  CONTROL(0x72, jam, 2) \
  MODIFY(0x73, rra, IndirectY, 8) \
  READ(0x74, nop, ZeroX, 4) \
  READ(0x75, adc, ZeroX, 4) \
  MODIFY(0x76, ror, ZeroX, 6) \
  MODIFY(0x77, rra, ZeroX, 6) \
  IMPLIED(0x78, sei, 2) \
  READ(0x79, adc, AbsoluteY, 4) \
  IMPLIED(0x7a, idle, 2) \
  MODIFY(0x7b, rra, AbsoluteY, 7) \
  READ(0x7c, nop, AbsoluteX, 4) \
  READ(0x7d, adc, AbsoluteX, 4) \
  MODIFY(0x7e, ror, AbsoluteX, 7) \
  MODIFY(0x7f, rra, AbsoluteX, 7) \
  READ(0x80, nop, Immediate, 2) \
  STORE(0x81, sta, IndirectX, 6) \
  READ(0x82, nop, Immediate, 2) \
  STORE(0x83, sax, IndirectX, 6) \
  STORE(0x84, sty, Zero, 3) \
  STORE(0x85, sta, Zero, 3) \
  STORE(0x86, stx, Zero, 3) \
  STORE(0x87, sax, Zero, 3) \
  IMPLIED(0x88, dey, 2) \
  READ(0x89, nop, Immediate, 2) \
  IMPLIED(0x8a, txa, 2) \
  READ(0x8b, ane, Immediate, 2) \
  STORE(0x8c, sty, Absolute, 4) \
  STORE(0x8d, sta, Absolute, 4) \
  STORE(0x8e, stx, Absolute, 4) \
  STORE(0x8f, sax, Absolute, 4) \
  BRANCH(0x90, bcc, 2) \
  STORE(0x91, sta, IndirectY, 6) \
  CONTROL(0x92, jam, 2) \
  STORE(0x93, sha, IndirectY, 6) \
  STORE(0x94, sty, ZeroX, 4) \
  STORE(0x95, sta, ZeroX, 4) \
  STORE(0x96, stx, ZeroY, 4) \
  STORE(0x97, sax, ZeroY, 4) \
  IMPLIED(0x98, tya, 2) \
  STORE(0x99, sta, AbsoluteY, 5) \
  IMPLIED(0x9a, txs, 2) \
  STORE(0x9b, shs, AbsoluteY, 5) \
  STORE(0x9c, shy, AbsoluteX, 5) \
  STORE(0x9d, sta, AbsoluteX, 5) \
  STORE(0x9e, shx, AbsoluteY, 5) \
  STORE(0x9f, sha, AbsoluteY, 5) \
  READ(0xa0, ldy, Immediate, 2) \
  READ(0xa1, lda, IndirectX, 6) \
  READ(0xa2, ldx, Immediate, 2) \
  READ(0xa3, lax, IndirectX, 6) \
  READ(0xa4, ldy, Zero, 3) \
  READ(0xa5, lda, Zero, 3) \
  READ(0xa6, ldx, Zero, 3) \
  READ(0xa7, lax, Zero, 4) \
  IMPLIED(0xa8, tay, 2) \
  READ(0xa9, lda, Immediate, 2) \
  IMPLIED(0xaa, tax, 2) \
  READ(0xab, lxa, Immediate, 2) \
  READ(0xac, ldy, Absolute, 4) \
  READ(0xad, lda, Absolute, 4) \
  READ(0xae, ldx, Absolute, 4) \
  READ(0xaf, lax, Absolute, 4) \
  BRANCH(0xb0, bcs, 2) \
  READ(0xb1, lda, IndirectY, 5) \
  CONTROL(0xb2, jam, 2) \
  READ(0xb3, lax, IndirectY, 5) \
  READ(0xb4, ldy, ZeroX, 4) \
  READ(0xb5, lda, ZeroX, 4) \
  READ(0xb6, ldx, ZeroY, 4) \
  READ(0xb7, lax, ZeroY, 4) \
  IMPLIED(0xb8, clv, 2) \
  READ(0xb9, lda, AbsoluteY, 4) \
  IMPLIED(0xba, tsx, 2) \
  READ(0xbb, las, AbsoluteY, 4) \
  READ(0xbc, ldy, AbsoluteX, 4) \
  READ(0xbd, lda, AbsoluteX, 4) \
  READ(0xbe, ldx, AbsoluteY, 4) \
  READ(0xbf, lax, AbsoluteY, 4) \
  READ(0xc0, cpy, Immediate, 2) \
  READ(0xc1, cmp, IndirectX, 6) \
  READ(0xc2, nop, Immediate, 2) \
  MODIFY(0xc3, dcp, IndirectX, 8) \
  READ(0xc4, cpy, Zero, 3) \
  READ(0xc5, cmp, Zero, 3) \
  MODIFY(0xc6, dec, Zero, 5) \
  MODIFY(0xc7, dcp, Zero, 5) \
  IMPLIED(0xc8, iny, 2) \
  READ(0xc9, cmp, Immediate, 2) \
  IMPLIED(0xca, dex, 2) \
  READ(0xcb, sbx, Immediate, 2) \
  READ(0xcc, cpy, Absolute, 4) \
  READ(0xcd, cmp, Absolute, 4) \
  MODIFY(0xce, dec, Absolute, 6) \
  MODIFY(0xcf, dcp, Absolute, 6) \
  BRANCH(0xd0, bne, 2) \
  READ(0xd1, cmp, IndirectY, 5) \
  CONTROL(0xd2, jam, 2) \
  MODIFY(0xd3, dcp, IndirectY, 8) \
  READ(0xd4, nop, ZeroX, 4) \
  READ(0xd5, cmp, ZeroX, 4) \
  MODIFY(0xd6, dec, ZeroX, 6) \
  MODIFY(0xd7, dcp, ZeroX, 6) \
  IMPLIED(0xd8, cld, 2) \
  READ(0xd9, cmp, AbsoluteY, 4) \
  IMPLIED(0xda, idle, 2) \
  MODIFY(0xdb, dcp, AbsoluteY, 7) \
  READ(0xdc, nop, AbsoluteX, 4) \
  READ(0xdd, cmp, AbsoluteX, 4) \
  MODIFY(0xde, dec, AbsoluteX, 7) \
  MODIFY(0xdf, dcp, AbsoluteX, 7) \
  READ(0xe0, cpx, Immediate, 2) \
  READ(0xe1, sbc, IndirectX, 6) \
  READ(0xe2, nop, Immediate, 2) \
  MODIFY(0xe3, isb, IndirectX, 8) \
  READ(0xe4, cpx, Zero, 3) \
  READ(0xe5, sbc, Zero, 3) \
  MODIFY(0xe6, inc, Zero, 5) \
  MODIFY(0xe7, isb, Zero, 5) \
  IMPLIED(0xe8, inx, 2) \
  READ(0xe9, sbc, Immediate, 2) \
  IMPLIED(0xea, idle, 2) \
  READ(0xeb, sbc, Immediate, 2) \
  READ(0xec, cpx, Absolute, 4) \
  READ(0xed, sbc, Absolute, 4) \
  MODIFY(0xee, inc, Absolute, 6) \
  MODIFY(0xef, isb, Absolute, 6) \
  BRANCH(0xf0, beq, 2) \
  READ(0xf1, sbc, IndirectY, 5) \
  CONTROL(0xf2, jam, 2) \
  MODIFY(0xf3, isb, IndirectY, 8) \
  READ(0xf4, nop, ZeroX, 4) \
  READ(0xf5, sbc, ZeroX, 4) \
  MODIFY(0xf6, inc, ZeroX, 6) \
  MODIFY(0xf7, isb, ZeroX, 6) \
  IMPLIED(0xf8, sed, 2) \
  READ(0xf9, sbc, AbsoluteY, 4) \
  IMPLIED(0xfa, idle, 2) \
  MODIFY(0xfb, isb, AbsoluteY, 7) \
  READ(0xfc, nop, AbsoluteX, 4) \
  READ(0xfd, sbc, AbsoluteX, 4) \
  MODIFY(0xfe, inc, AbsoluteX, 7) \
  MODIFY(0xff, isb, AbsoluteX, 7)
// clang-format on

}  // namespace scanline
