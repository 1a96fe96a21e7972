// emitter_stores.cpp -- instructions that write, and waiting loops. See emitter.h.
#include "emitter.h"

namespace scanline {

void Emitter::value_into(Reg target) {
  switch (does_) {
    case Does::sta:
      return code_.copy(target, kA);
    case Does::stx:
      return code_.copy(target, kX);
    case Does::sty:
      return code_.copy(target, kY);
    default:  // sax
      code_.copy(target, kA);
      code_.alu(Alu::kAnd, target, kX);
  }
}

void Emitter::emit_store(Mode mode) {
  if (is_family(kFast) && (mode == Mode::Zero || mode == Mode::Absolute)) {
    value_into(kRdx);
    return code_.store_byte(ram_at(op_.operand), kRdx);
  }
  if (mode == Mode::ZeroX || mode == Mode::ZeroY) return emit_store_zero_indexed(index_of(mode));
  if (mode == Mode::IndirectY) {
    code_.load_word(kRsi, ram_at(op_.operand));
    code_.alu(Alu::kAdd, kRsi, kY);
    code_.copy_word(kRsi, kRsi);
  } else if (mode == Mode::Zero || mode == Mode::Absolute) {
    code_.set(kRsi, op_.operand);
  } else {
    code_.address(kRsi, {index_of(mode), op_.operand});
    code_.copy_word(kRsi, kRsi);
  }
  value_into(kRdx);
  cycles_into(kRcx);
  emit_write_call();
  code_.copy(kCycles, kRax);
  pending_.cycles = 0;
  code_.shift64(Shift::kRight, kRax, 32);
  code_.jump_if(If::kNotZero, after_unusual_write());
}

// Address in esi, value in edx, cycles in ecx; gives cycles and what happened above them.
void Emitter::emit_write_call() {
  code_.load64(kRdi, SCANLINE_FRAME(run));
  call(kCallWrite);
}

// Such a write in rare code, which goes back if nothing unusual happened.
void Emitter::emit_rare_write(Pending pending, Label& unusual, Label& back) {
  code_.address(kRcx, {kCycles, pending.cycles});
  emit_write_call();
  code_.address(kCycles, {kRax, -pending.cycles});
  code_.shift64(Shift::kRight, kRax, 32);
  code_.jump_if(If::kNotZero, unusual);
  code_.jump(back);
}

// The frame ended, or the banks were switched; which of them is in eax.
Label& Emitter::after_unusual_write() {
  const Pending pending = pending_;
  const u32 next = next_place();
  return rarely([=] {
    Label& elsewhere = new_label();
    code_.test(kRax, u32(kEndedAbove));
    code_.jump_if(If::kZero, elsewhere);
    add(pending);
    emit_leave(Left::kStopped, next);
    code_.bind(elsewhere);
    emit_go_on_elsewhere(pending, next);
  });
}

void Emitter::emit_store_zero_indexed(Reg index) {
  Label& back = new_label();
  const Pending pending = pending_;
  Label& unusual = after_unusual_write();
  code_.address(kRsi, {index, op_.operand});
  code_.copy_byte(kRsi, kRsi);
  value_into(kRdx);
  code_.test_byte(kRsi, kRsi);
  code_.jump_if(If::kNotSign,
                rarely([=, &back, &unusual] { emit_rare_write(pending, unusual, back); }));
  code_.store_byte(ram_of_address(kRsi), kRdx);
  code_.bind(back);
}

void Emitter::emit_modify(Mode mode) {
  if (mode == Mode::ZeroX) {
    code_.address(kRdx, {kX, op_.operand});
    code_.copy_byte(kRdx, kRdx);
    code_.test_byte(kRdx, kRdx);
    code_.jump_if(If::kNotSign, slow());
    return modify(ram_of_address(kRdx));
  }
  modify(ram_at(op_.operand));
}

void Emitter::modify(Mem at) {
  code_.load_byte(kRax, at);
  change();
  code_.store_byte(at, kRax);
  if (does_ == Does::dcp) return compare(kA);
  code_.copy_byte(kNz, kRax);
}

bool Emitter::emit_special() {
  if (op_.handler < kSlow) {
    static constexpr Reg kSources[3] = {kA, kX, kY};
    pending_.cycles += 3;
    ++pending_.instructions;
    emit_tia_store(kSources[(op_.handler - kStoreA) / 64], (op_.handler - kStoreA) % 64);
  } else if (op_.handler == kCountX || op_.handler == kCountY) {
    emit_countdown(op_.handler == kCountX ? kX : kY);
  } else {
    emit_timer(op_.handler <= kTimerY ? kCallTimer : kCallTimerFlag);
  }
  return true;
}

void Emitter::emit_tia_store(Reg source, u32 target) {
  code_.load64(kRdi, SCANLINE_FRAME(tia));
  code_.copy(kRsi, source);
  cycles_into(kRdx);
  call(kCallStore + target);
  if (target == WSYNC) {
    code_.copy(kCycles, kRax);
    pending_.cycles = 0;
    code_.shift64(Shift::kRight, kRax, 32);
  } else {
    code_.test(kRax, kRax);
  }
  code_.jump_if(If::kNotZero, leaving(Left::kStopped, next_place(), pending_));
}

void Emitter::emit_timer(Call which) {
  flush_instructions();
  code_.load64(kRdi, SCANLINE_FRAME(run));
  code_.set(kRsi, static_cast<u32>(op_.extra));
  cycles_into(kRdx);
  code_.address64(kRcx, SCANLINE_FRAME(num_left));
  call(which);
  code_.copy(kCycles, kRax);
  pending_ = {0, 1};
  code_.shift64(Shift::kRight, kRax, 32);
  apply();
}

void Emitter::emit_countdown(Reg index) {
  flush_instructions();
  code_.copy(kRdi, index);
  code_.set(kRsi, static_cast<u32>(op_.extra));
  code_.address64(kRdx, SCANLINE_FRAME(num_left));
  call(kCallCount);
  code_.alu_byte(Alu::kSub, index, kRax);
  code_.shift64(Shift::kRight, kRax, 32);
  code_.alu(Alu::kAdd, kCycles, kRax);
  pending_.cycles += 2;
  pending_.instructions = 1;
  step(index, false);
}

}  // namespace scanline
