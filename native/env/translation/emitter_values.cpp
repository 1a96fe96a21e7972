// emitter_values.cpp -- what instructions do with values in registers. See emitter.h.
#include "emitter.h"

namespace scanline {

void Emitter::change() {
  switch (does_) {
    case Does::inc:
      return code_.increment_byte(kRax);
    case Does::dec:
    case Does::dcp:
      return code_.decrement_byte(kRax);
    case Does::asl:
      return shift(Shift::kLeft);
    case Does::lsr:
      return shift(Shift::kRight);
    case Does::rol:
      carry_into_flag(true);
      return shift(Shift::kRotateThroughCarryLeft);
    default:  // ror
      carry_into_flag(true);
      return shift(Shift::kRotateThroughCarryRight);
  }
}

void Emitter::shift(Shift how) {
  code_.shift_byte(how, kRax);
  code_.store_condition(If::kBelow, SCANLINE_FRAME(carry));
}

void Emitter::use_constant(u8 value) {
  switch (does_) {
    case Does::lda:
      return set_register(kA, value);
    case Does::ldx:
      return set_register(kX, value);
    case Does::ldy:
      return set_register(kY, value);
    case Does::nop:
      return;
    default:
      code_.set(kRax, value);
      apply();
  }
}

void Emitter::set_register(Reg reg, u8 value) {
  code_.set(reg, value);
  code_.set(kNz, value);
}

// Does what the instruction does with the value in eax.
void Emitter::apply() {
  switch (does_) {
    case Does::lda:
      return load_register(kA);
    case Does::ldx:
      return load_register(kX);
    case Does::ldy:
      return load_register(kY);
    case Does::lax:
      code_.copy(kX, kRax);
      return load_register(kA);
    case Does::and_:
      return logic(Alu::kAnd);
    case Does::ora:
      return logic(Alu::kOr);
    case Does::eor:
      return logic(Alu::kXor);
    case Does::cmp:
      return compare(kA);
    case Does::cpx:
      return compare(kX);
    case Does::cpy:
      return compare(kY);
    case Does::bit:
      return test_bits();
    case Does::adc:
      return arithmetic(Alu::kAdc, kCallAddDecimal);
    case Does::sbc:
      return arithmetic(Alu::kSbb, kCallSubtractDecimal);
    default:
      return;  // nop
  }
}

void Emitter::load_register(Reg reg) {
  code_.copy(reg, kRax);
  code_.copy(kNz, kRax);
}

void Emitter::logic(Alu operation) {
  code_.alu(operation, kA, kRax);
  code_.copy(kNz, kA);
}

void Emitter::compare(Reg reg) {
  code_.copy(kNz, reg);
  code_.alu_byte(Alu::kSub, kNz, kRax);
  code_.store_condition(If::kNotBelow, SCANLINE_FRAME(carry));
}

void Emitter::test_bits() {
  code_.copy(kRcx, kRax);
  code_.alu(Alu::kAnd, kRcx, 0x80);
  code_.alu(Alu::kAdd, kRcx, kRcx);
  code_.copy(kNz, kA);
  code_.alu(Alu::kAnd, kNz, kRax);
  code_.alu(Alu::kOr, kNz, kRcx);
  code_.shift(Shift::kRight, kRax, 6);
  code_.alu(Alu::kAnd, kRax, 1);
  code_.store_byte(SCANLINE_FRAME(overflow), kRax);
}

// x86 borrows where the 6507 has its carry clear.
void Emitter::arithmetic(Alu operation, Call decimal) {
  Label& back = new_label();
  code_.alu_byte(Alu::kCmp, SCANLINE_FRAME(decimal), 0);
  code_.jump_if(If::kNotZero, rarely([=, &back] {
                  code_.copy64(kRdi, kRsp);
                  code_.copy(kRsi, kA);
                  code_.copy(kRdx, kRax);
                  call(decimal);
                  code_.copy(kA, kRax);
                  code_.jump(back);
                }));
  carry_into_flag(operation == Alu::kAdc);
  code_.alu_byte(operation, kA, kRax);
  code_.store_condition(operation == Alu::kAdc ? If::kBelow : If::kNotBelow, SCANLINE_FRAME(carry));
  code_.store_condition(If::kOverflow, SCANLINE_FRAME(overflow));
  code_.bind(back);
  code_.copy(kNz, kA);
}

// The processor's carry becomes ours, or its opposite.
void Emitter::carry_into_flag(bool same) {
  code_.alu_byte(Alu::kCmp, SCANLINE_FRAME(carry), 1);
  if (same) code_.flip_carry();
}

void Emitter::emit_simple() {
  switch (does_) {
    case Does::asl:
    case Does::lsr:
    case Does::rol:
    case Does::ror:
      code_.copy(kRax, kA);
      change();
      code_.copy_byte(kA, kRax);
      return code_.copy(kNz, kA);
    case Does::clc:
      return code_.store_byte_set(SCANLINE_FRAME(carry), 0);
    case Does::sec:
      return code_.store_byte_set(SCANLINE_FRAME(carry), 1);
    case Does::cli:
      return code_.store_byte_set(SCANLINE_FRAME(interrupt_disable), 0);
    case Does::sei:
      return code_.store_byte_set(SCANLINE_FRAME(interrupt_disable), 1);
    case Does::clv:
      return code_.store_byte_set(SCANLINE_FRAME(overflow), 0);
    case Does::cld:
      return code_.store_byte_set(SCANLINE_FRAME(decimal), 0);
    case Does::sed:
      return code_.store_byte_set(SCANLINE_FRAME(decimal), 1);
    default:
      return emit_transfer();
  }
}

void Emitter::emit_transfer() {
  switch (does_) {
    case Does::tax:
      return transfer(kX, kA);
    case Does::tay:
      return transfer(kY, kA);
    case Does::txa:
      return transfer(kA, kX);
    case Does::tya:
      return transfer(kA, kY);
    case Does::tsx:
      code_.load(kX, SCANLINE_FRAME(sp));
      return code_.copy(kNz, kX);
    case Does::txs:
      return code_.store(SCANLINE_FRAME(sp), kX);
    case Does::inx:
      return step(kX, true);
    case Does::iny:
      return step(kY, true);
    case Does::dex:
      return step(kX, false);
    case Does::dey:
      return step(kY, false);
    default:
      return;  // idle
  }
}

void Emitter::transfer(Reg target, Reg source) {
  code_.copy(target, source);
  code_.copy(kNz, source);
}

void Emitter::step(Reg reg, bool up) {
  up ? code_.increment_byte(reg) : code_.decrement_byte(reg);
  code_.copy(kNz, reg);
}

}  // namespace scanline
