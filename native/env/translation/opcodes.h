// opcodes.h -- what an opcode does, how long it is, and whether there is code for it.
//
// Takes a byte of the ROM; gives facts that core/opcodes.h does not state in this form.
#pragma once

#include "../../core/decode.h"

namespace scanline {

enum class Does : u8 {  // clang-format off
  adc, sbc, lda, ldx, ldy, lax, and_, ora, eor, nop, cmp, cpx, cpy, bit, anc, asr, arr, ane, lxa, las,
  sbx, sta, stx, sty, sax, sha, shs, shx, shy, asl, lsr, rol, ror, inc, dec, slo, rla, sre, rra, dcp,
  isb, idle, clc, sec, cli, sei, clv, cld, sed, tax, tay, tsx, txa, txs, tya, dex, dey, inx, iny, bpl,
  bmi, bvc, bvs, bcc, bcs, bne, beq, jsr, jmp_absolute, jmp_indirect, rts, rti, brk, jam, pha, php, pla,
  plp
};  // clang-format on

inline Does operation_of(u8 opcode) {
#define SCANLINE_FOUR(code, operation, mode, cycles) Does::operation,
#define SCANLINE_THREE(code, operation, cycles) Does::operation,
  static constexpr Does kOperations[256] = {
      SCANLINE_OPCODES(SCANLINE_FOUR, SCANLINE_FOUR, SCANLINE_FOUR, SCANLINE_THREE, SCANLINE_THREE,
                       SCANLINE_THREE, SCANLINE_THREE)};
#undef SCANLINE_FOUR
#undef SCANLINE_THREE
  return kOperations[opcode];
}

inline u32 length_of(u8 opcode) {
  const OpcodeFacts facts = facts_of(opcode);
  const Does does = operation_of(opcode);
  switch (facts.shape) {
    case Shape::Branch:
      return 2;
    case Shape::Control:
      return does == Does::jsr || does == Does::jmp_absolute || does == Does::jmp_indirect ? 3 : 1;
    case Shape::Implied:
    case Shape::Accumulator:
      return 1;
    default:
      return facts.mode == Mode::Absolute || facts.mode == Mode::AbsoluteX ||
                     facts.mode == Mode::AbsoluteY
                 ? 3
                 : 2;
  }
}

// Operations that the emitter has code for; the others are executed byte by byte.
inline bool is_translated(Does does) {
  if (does <= Does::bit) return true;
  if (does >= Does::sta && does <= Does::sax) return true;
  if (does >= Does::asl && does <= Does::dec) return true;
  if (does >= Does::idle && does <= Does::rts) return true;
  return does == Does::dcp || does >= Does::pha;
}

}  // namespace scanline
