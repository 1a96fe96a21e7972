// emitter_control.cpp -- branches, jumps, calls and the stack. See emitter.h.
#include "emitter.h"

namespace scanline {

// The next instruction is in another bank.
void Emitter::emit_go_on_elsewhere(Pending pending, u32 next) {
  add(pending);
  code_.load(kRcx, SCANLINE_FRAME(pc_offset));
  code_.alu(Alu::kAdd, kRcx, static_cast<i32>(next));
  code_.copy_word(kRcx, kRcx);
  emit_margin_test_at_ecx();
  code_.jump(dynamic_);
}

// Tests the condition; the branch is taken if the processor's condition holds.
If Emitter::emit_condition() {
  switch (does_) {
    case Does::bne:
    case Does::beq:
      code_.test_byte(kNz, kNz);
      return does_ == Does::bne ? If::kNotZero : If::kZero;
    case Does::bmi:
    case Does::bpl:
      code_.test(kNz, 0x180u);
      return does_ == Does::bmi ? If::kNotZero : If::kZero;
    case Does::bcs:
    case Does::bcc:
      code_.alu_byte(Alu::kCmp, SCANLINE_FRAME(carry), 0);
      return does_ == Does::bcs ? If::kNotZero : If::kZero;
    default:
      code_.alu_byte(Alu::kCmp, SCANLINE_FRAME(overflow), 0);
      return does_ == Does::bvs ? If::kNotZero : If::kZero;
  }
}

void Emitter::emit_branch() {
  Label& not_taken = new_label();
  const i32 target = static_cast<i32>(place_) + op_.extra;
  code_.jump_if(opposite(emit_condition()), not_taken);
  add({pending_.cycles + op_.operand, pending_.instructions});
  emit_jump_inside(static_cast<u32>(target), leaving(Left::kMargin, static_cast<u32>(target), {}));
  code_.bind(not_taken);
}

// The sign flag says whether the margin was reached. Tested where the program goes back: forward
// it can go no further than the end of its bank.
void Emitter::emit_jump_inside(u32 target, Label& margin) {
  if (target <= place_ || target / 0x1000 != place_ / 0x1000) code_.jump_if(If::kSign, margin);
  code_.jump(labels_[target]);
}

bool Emitter::emit_control() {
  switch (does_) {
    case Does::jmp_absolute:
      return emit_jump_to(op_.operand), false;
    case Does::jmp_indirect:
      if (is_family(kConstant)) return emit_jump_to(op_.operand), false;
      return emit_indirect_jump(), false;
    case Does::jsr:
      return emit_call(), false;
    case Does::rts:
      return emit_return(), false;
    case Does::pha:
    case Does::php:
      return emit_push(), true;
    default:
      return emit_pull(), true;
  }
}

void Emitter::emit_margin_test_at_ecx() {
  code_.alu(Alu::kCmp, SCANLINE_FRAME(num_left), 0);
  code_.jump_if(If::kSign, rarely([=] {
                  code_.set(kRdx, static_cast<u32>(Left::kMargin));
                  code_.jump(leave_);
                }));
}

void Emitter::emit_jump_to(u16 address) {
  flush();
  const i32 target = leaders_.place_seen_from(place_, address);
  if (target < 0 || static_cast<u32>(target) >= leaders_.num_ops()) {
    code_.set(kRcx, address);
    emit_margin_test_at_ecx();
    return code_.jump(dynamic_);
  }
  code_.store_set(SCANLINE_FRAME(pc_offset), static_cast<u32>(i32(address) - target));
  emit_jump_inside(static_cast<u32>(target), leaving(Left::kMargin, static_cast<u32>(target), {}));
}

void Emitter::emit_indirect_jump() {
  code_.load_byte(kRcx, ram_at(op_.operand));
  code_.load_byte(kRax, ram_at(static_cast<u32>(op_.extra)));
  code_.shift(Shift::kLeft, kRax, 8);
  code_.alu(Alu::kOr, kRcx, kRax);
  code_.test(kRcx, 0x1000u);
  code_.jump_if(If::kZero, slow());
  flush();
  emit_margin_test_at_ecx();
  emit_jump_in_bank();
}

// To the address in ecx, which is in the cartridge.
void Emitter::emit_jump_in_bank() {
  if (!layout_.fixed) return code_.jump(dynamic_);
  code_.copy(kRax, kRcx);
  code_.alu(Alu::kAnd, kRax, static_cast<i32>(layout_.mask));
  if (leaders_.bank_start(place_) != 0)
    code_.alu(Alu::kAdd, kRax, static_cast<i32>(leaders_.bank_start(place_)));
  emit_jump_to_place();
}

void Emitter::emit_call() {
  code_.load(kRax, SCANLINE_FRAME(sp));
  code_.alu(Alu::kCmp, kRax, 0x81);
  code_.jump_if(If::kBelow, slow());
  code_.load(kRcx, SCANLINE_FRAME(pc_offset));
  code_.alu(Alu::kAdd, kRcx, static_cast<i32>(place_ + 2));
  code_.store_word({kRam, -0x81, kRax}, kRcx);
  code_.alu(Alu::kSub, kRax, 2);
  code_.store(SCANLINE_FRAME(sp), kRax);
  emit_jump_to(op_.operand);
}

void Emitter::emit_return() {
  Label& not_here = slow();
  code_.load(kRdx, SCANLINE_FRAME(sp));
  code_.address(kRax, {kRdx, -0x80});
  code_.alu(Alu::kCmp, kRax, 0xFE - 0x80);
  code_.jump_if(If::kNotBelow, not_here);
  code_.load_word(kRcx, {kRam, -0x7F, kRdx});
  if (layout_.plain_begin != 0 || layout_.plain_end < 0x1000) {
    code_.copy(kRax, kRcx);
    code_.alu(Alu::kAnd, kRax, 0xFFF);
    emit_plain_check(not_here);
  }
  code_.address(kRax, {kRcx, 1});
  code_.alu(Alu::kAnd, kRax, kRcx);
  code_.test(kRax, 0x1000u);
  code_.jump_if(If::kZero, not_here);
  code_.address(kRcx, {kRcx, 1});
  code_.alu(Alu::kAdd, kRdx, 2);
  code_.store(SCANLINE_FRAME(sp), kRdx);
  flush();
  emit_margin_test_at_ecx();
  emit_jump_in_bank();
}

// The stack may lie over the TIA.
void Emitter::emit_push() {
  Label& back = new_label();
  const Pending pending = pending_;
  Label& unusual = after_unusual_write();
  if (does_ == Does::php) {
    code_.copy64(kRdi, kRsp);
    code_.copy(kRsi, kNz);
    call(kCallPackStatus);
    code_.copy(kRdx, kRax);
  } else {
    code_.copy(kRdx, kA);
  }
  code_.load(kRsi, SCANLINE_FRAME(sp));
  code_.copy(kRax, kRsi);
  code_.decrement_byte(kRax);
  code_.store(SCANLINE_FRAME(sp), kRax);
  code_.test_byte(kRsi, kRsi);
  code_.jump_if(If::kNotSign, rarely([=, &back, &unusual] {
                  code_.alu(Alu::kOr, kRsi, 0x100);
                  emit_rare_write(pending, unusual, back);
                }));
  code_.store_byte(ram_of_address(kRsi), kRdx);
  code_.bind(back);
}

// With the stack pointer in edx.
Label& Emitter::pull_elsewhere(Label& back) {
  const Pending pending = pending_;
  const u8 opcode = opcode_;
  return rarely([=, &back] {
    code_.copy(kRsi, kRdx);
    code_.increment_byte(kRdx);
    code_.store(SCANLINE_FRAME(sp), kRdx);
    code_.load64(kRdi, SCANLINE_FRAME(run));
    code_.set(kRdx, opcode);
    code_.address(kRcx, {kCycles, pending.cycles});
    call(kCallPull);
    code_.jump(back);
  });
}

void Emitter::emit_pull() {
  Label& back = new_label();
  code_.load(kRdx, SCANLINE_FRAME(sp));
  code_.address(kRax, {kRdx, -0x80});
  code_.alu(Alu::kCmp, kRax, 0xFF - 0x80);
  code_.jump_if(If::kNotBelow, pull_elsewhere(back));
  code_.alu(Alu::kAdd, kRdx, 1);
  code_.store(SCANLINE_FRAME(sp), kRdx);
  code_.load_byte(kRax, ram_of_address(kRdx));
  code_.bind(back);
  if (does_ == Does::pla) return load_register(kA);
  code_.copy64(kRdi, kRsp);
  code_.copy(kRsi, kRax);
  call(kCallUnpackStatus);
  code_.copy(kNz, kRax);
}

}  // namespace scanline
