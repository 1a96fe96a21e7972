// emitter_reads.cpp -- instructions that read: RAM, tables, pointers, ports and the TIA. See
// emitter.h.
#include "emitter.h"

namespace scanline {

void Emitter::emit_read(Mode mode) {
  if (mode == Mode::Immediate || is_family(kConstant)) return use_constant(u8(op_.operand));
  const bool in_ram = is_family(kFast) && (mode == Mode::Zero || mode == Mode::Absolute);
  if (in_ram && does_ == Does::nop) return;
  if (in_ram) {
    code_.load_byte(kRax, ram_at(op_.operand));
  } else if (is_family(kTia)) {
    emit_read_tia(op_.operand, u8(op_.operand));
  } else if (is_family(kGeneric)) {
    emit_read_generic(mode);
  } else if (mode == Mode::ZeroX || mode == Mode::ZeroY) {
    emit_read_zero_indexed(index_of(mode));
  } else if (mode == Mode::IndirectY) {
    emit_read_indirect();
  } else if (mode == Mode::IndirectX) {
    emit_read_indexed_indirect();
  } else {
    emit_read_table(index_of(mode));
  }
  apply();
}

void Emitter::emit_read_tia(u16 address, u8 data) {
  code_.load64(kRdi, SCANLINE_FRAME(tia));
  code_.set(kRsi, address);
  code_.set(kRdx, data);
  cycles_into(kRcx);
  call(kCallReadTia);
}

void Emitter::emit_read_zero_indexed(Reg index) {
  Label& back = new_label();
  const Pending pending = pending_;
  const u16 operand = op_.operand;
  code_.address(kRax, {index, operand});
  code_.copy_byte(kRax, kRax);
  code_.test_byte(kRax, kRax);
  code_.jump_if(If::kNotSign, rarely([=, &back] {
                  code_.copy(kRsi, kRax);
                  code_.load64(kRdi, SCANLINE_FRAME(tia));
                  code_.set(kRdx, u8(operand));
                  code_.address(kRcx, {kCycles, pending.cycles});
                  call(kCallReadTia);
                  code_.jump(back);
                }));
  code_.load_byte(kRax, ram_of_address(kRax));
  code_.bind(back);
}

// A table in the ROM; `operand` is the low byte of its address, for the page it may cross.
void Emitter::emit_read_table(Reg index) {
  emit_page_crossing(index);
  code_.load64(kRax, SCANLINE_FRAME(image));
  code_.load_byte(kRax, {kRax, op_.extra, index});
}

// Through a pointer in RAM, most often to the ROM.
void Emitter::emit_read_indirect() {
  Label& back = new_label();
  code_.load_word(kRcx, ram_at(op_.operand));
  code_.copy_byte(kRax, kRcx);
  code_.alu(Alu::kAdd, kRax, kY);
  code_.shift(Shift::kRight, kRax, 8);
  code_.alu(Alu::kAdd, kCycles, kRax);
  code_.address(kRsi, {kRcx, 0, kY});
  emit_read_plain(read_elsewhere(back));
  code_.bind(back);
}

// The place in the image of the address in esi, in eax.
void Emitter::emit_place_of_address(Label& elsewhere) {
  code_.copy(kRax, kRsi);
  if (!layout_.fixed) {
    code_.alu(Alu::kAnd, kRax, 0xFFF);
    emit_plain_check(elsewhere);
    code_.copy(kRax, kRsi);
    code_.shift(Shift::kRight, kRax, 10);
    code_.alu(Alu::kAnd, kRax, 15);
    code_.load64(kRdx, SCANLINE_FRAME(places));
    code_.load(kRax, {kRdx, 0, kRax, 2});
    code_.copy(kRdx, kRsi);
    code_.alu(Alu::kAnd, kRdx, 0x3FF);
    code_.alu(Alu::kAdd, kRax, kRdx);
    return;
  }
  code_.alu(Alu::kAnd, kRax, static_cast<i32>(layout_.mask));
  emit_plain_check(elsewhere);
  if (leaders_.bank_start(place_) != 0)
    code_.alu(Alu::kAdd, kRax, static_cast<i32>(leaders_.bank_start(place_)));
}

// Goes elsewhere unless the offset in eax is plain ROM.
void Emitter::emit_plain_check(Label& elsewhere) {
  if (layout_.plain_begin != 0) {
    code_.alu(Alu::kCmp, kRax, static_cast<i32>(layout_.plain_begin));
    code_.jump_if(If::kBelow, elsewhere);
  }
  if (layout_.plain_end < 0x1000) {
    code_.alu(Alu::kCmp, kRax, static_cast<i32>(layout_.plain_end));
    code_.jump_if(If::kNotBelow, elsewhere);
  }
}

// Reads the address in esi, a sum that may have left 16 bits; the pointer is in ecx.
Label& Emitter::read_elsewhere(Label& back) {
  const Pending pending = pending_;
  Label& switched = after_bank_switch();
  return rarely([=, &back, &switched] {
    code_.copy_word(kRsi, kRsi);
    code_.copy(kRdx, kRcx);
    code_.shift(Shift::kRight, kRdx, 8);
    code_.load64(kRdi, SCANLINE_FRAME(run));
    code_.address(kRcx, {kCycles, pending.cycles});
    call(kCallRead);
    emit_bank_test(switched);
    code_.jump(back);
  });
}

// After a read whose result is in rax.
void Emitter::emit_bank_test(Label& switched) {
  code_.copy64(kRdx, kRax);
  code_.shift64(Shift::kRight, kRdx, 32);
  code_.jump_if(If::kNotZero, switched);
}

// The value is used here, and the next instruction comes from wherever its address lies now.
Label& Emitter::after_bank_switch() {
  const Pending pending = pending_;
  const u32 next = next_place();
  const Does does = does_;
  return rarely([=] {
    code_.copy_byte(kRax, kRax);
    does_ = does;
    apply();
    emit_go_on_elsewhere(pending, next);
  });
}

// Whatever the ROM alone does not decide.
void Emitter::emit_read_generic(Mode mode) {
  if (mode == Mode::Absolute) {
    if (is_riot_register(op_.operand) && (op_.operand & 4) == 0)
      return emit_read_port(op_.operand & 3);
    code_.set(kRsi, op_.operand);
  } else {
    code_.address(kRsi, {index_of(mode), op_.operand});
    emit_page_crossing(index_of(mode));
  }
  code_.set(kRcx, op_.operand);
  Label& back = new_label();
  Label& elsewhere = read_elsewhere(back);
  if (is_cartridge(op_.operand)) {
    emit_read_plain(elsewhere);
  } else {
    code_.jump(elsewhere);
  }
  code_.bind(back);
}

// One cycle if the index leads to the next page.
void Emitter::emit_page_crossing(Reg index) {
  if ((op_.operand & 0xFF) == 0) return;
  code_.address(kRax, {index, op_.operand & 0xFF});
  code_.shift(Shift::kRight, kRax, 8);
  code_.alu(Alu::kAdd, kCycles, kRax);
}

// Reads the address in esi from the ROM, or goes elsewhere.
void Emitter::emit_read_plain(Label& elsewhere) {
  code_.test(kRsi, 0x1000u);
  code_.jump_if(If::kZero, elsewhere);
  emit_place_of_address(elsewhere);
  code_.load64(kRdx, SCANLINE_FRAME(image));
  code_.load_byte(kRax, {kRdx, 0, kRax});
}

// Through a pointer in a table of them; seldom used, and seldom for ROM alone.
void Emitter::emit_read_indexed_indirect() {
  Label& back = new_label();
  code_.address(kRax, {kX, op_.operand});
  code_.copy_byte(kRax, kRax);
  code_.alu(Alu::kSub, kRax, 0x80);
  code_.alu(Alu::kCmp, kRax, 0xFF - 0x80);
  code_.jump_if(If::kNotBelow, slow());
  code_.load_word(kRsi, {kRam, 0, kRax});
  code_.copy(kRcx, kRsi);
  emit_read_plain(read_elsewhere(back));
  code_.bind(back);
}

// SWCHA, SWACNT, SWCHB and SWBCNT, which are fields of the state.
void Emitter::emit_read_port(u32 port) {
  const i32 ram = offsetof(MachineState, ram);
  static const i32 kFields[3] = {offsetof(MachineState, swcha), offsetof(MachineState, ddra),
                                 offsetof(MachineState, swchb)};
  if (port == 3) return code_.set(kRax, 0);
  code_.load_byte(kRax, {kRam, kFields[port] - ram});
}

}  // namespace scanline
