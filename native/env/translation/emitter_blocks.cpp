// emitter_blocks.cpp -- the way into the code and out of it, and blocks from leader to leader. See
// emitter.h.
#include "emitter.h"

namespace scanline {

void Emitter::emit() {
  emit_exits();
  for (u32 place = 0; place < leaders_.num_ops(); ++place) {
    if (leaders_.has(place) && labels_[place].place < 0) emit_blocks(place);
  }
  for (size_t i = 0; i < rare_.size(); ++i) rare_[i]();
}

void Emitter::emit_blocks(u32 place) {
  pending_ = {};
  while (true) {
    if (place >= leaders_.num_ops()) return emit_leave(Left::kSlow, place);
    if (leaders_.has(place)) {
      flush();
      if (labels_[place].place >= 0) return code_.jump(labels_[place]);
      code_.bind(labels_[place]);
    }
    if (pending_.instructions >= kMaxPendingInstructions) flush();
    if (!emit_instruction(place)) return;
    place += length_of(rom_.bytes[place]);
  }
}

void Emitter::add(Pending pending) {
  if (pending.cycles != 0) code_.alu(Alu::kAdd, kCycles, pending.cycles);
  if (pending.instructions != 0)
    code_.alu(Alu::kSub, SCANLINE_FRAME(num_left), pending.instructions);
}

// void enter(TranslatedRun*, const void* code) comes first, then the ways out.
void Emitter::emit_exits() {
  static constexpr Reg kSaved[] = {kRbx, kRbp, kR12, kR13, kR14, kR15};
  for (Reg reg : kSaved) code_.push(reg);
  code_.alu64(Alu::kSub, kRsp, kFrameBytes);
  for (i32 at = 0; at < kCopiedBytes; at += 8) {
    code_.load64(kRax, {kRdi, at});
    code_.store64({kRsp, at}, kRax);
  }
  code_.store64({kRsp, kRunPlace}, kRdi);
  code_.load64(kRam, SCANLINE_RUN(ram));
  move_registers(true);
  code_.load(kRcx, SCANLINE_RUN(pc));
  code_.jump(kRsi);

  code_.bind(missed_);
  code_.set(kRdx, static_cast<u32>(Left::kMissed));
  code_.bind(leave_);  // pc in ecx, the reason in edx
  code_.load64(kRdi, {kRsp, kRunPlace});
  code_.store(SCANLINE_RUN(pc), kRcx);
  code_.store(SCANLINE_RUN(reason), kRdx);
  for (Mem flag : {SCANLINE_FRAME(carry), SCANLINE_FRAME(overflow), SCANLINE_FRAME(decimal),
                   SCANLINE_FRAME(interrupt_disable)}) {
    code_.load_byte(kRax, flag);
    code_.store_byte({kRdi, flag.offset}, kRax);
  }
  for (Mem word : {SCANLINE_FRAME(sp), SCANLINE_FRAME(num_left)}) {
    code_.load(kRax, word);
    code_.store({kRdi, word.offset}, kRax);
  }
  move_registers(false);
  code_.alu64(Alu::kAdd, kRsp, kFrameBytes);
  for (i32 i = 5; i >= 0; --i) code_.pop(kSaved[i]);
  code_.ret();

  code_.bind(dynamic_);
  emit_dynamic_jump();
}

void Emitter::move_registers(bool in) {
  const std::pair<Reg, Mem> moved[] = {{kCycles, SCANLINE_RUN(cycles)},
                                       {kA, SCANLINE_RUN(a)},
                                       {kX, SCANLINE_RUN(x)},
                                       {kY, SCANLINE_RUN(y)},
                                       {kNz, SCANLINE_RUN(nz)}};
  for (const auto& move : moved) {
    in ? code_.load(move.first, move.second) : code_.store(move.second, move.first);
  }
}

// To the address in ecx, whatever the banks show. Outside of the cartridge nothing is translated.
void Emitter::emit_dynamic_jump() {
  Label& outside = new_label();
  code_.test(kRcx, 0x1000u);
  code_.jump_if(If::kZero, outside);
  code_.copy(kRax, kRcx);
  code_.shift(Shift::kRight, kRax, 10);
  code_.alu(Alu::kAnd, kRax, 15);
  code_.load64(kRdx, SCANLINE_FRAME(places));
  code_.load_signed64(kRax, {kRdx, 0, kRax, 2});
  code_.copy(kRdx, kRcx);
  code_.alu(Alu::kAnd, kRdx, 0x3FF);
  code_.alu(Alu::kAdd, kRax, kRdx);
  emit_jump_to_place();
  code_.bind(outside);
  code_.set(kRdx, static_cast<u32>(Left::kSlow));
  code_.jump(leave_);
}

// To the place in eax; its address is in ecx.
void Emitter::emit_jump_to_place() {
  code_.copy(kRdx, kRcx);
  code_.alu(Alu::kSub, kRdx, kRax);
  code_.store(SCANLINE_FRAME(pc_offset), kRdx);
  code_.load64(kRdx, SCANLINE_FRAME(entries));
  code_.jump(Mem{kRdx, 0, kRax, 3});
}

// Leaves the code; the program goes on at `place`.
void Emitter::emit_leave(Left reason, u32 place) {
  code_.load(kRcx, SCANLINE_FRAME(pc_offset));
  code_.alu(Alu::kAdd, kRcx, static_cast<i32>(place));
  code_.set(kRdx, static_cast<u32>(reason));
  code_.jump(leave_);
}

Label& Emitter::leaving(Left reason, u32 place, Pending pending) {
  return rarely([=] {
    add(pending);
    emit_leave(reason, place);
  });
}

// False if the program does not go on behind it.
bool Emitter::emit_instruction(u32 place) {
  if (!leaders_.can_translate(place)) {
    flush();
    emit_leave(Left::kSlow, place);
    return false;
  }
  place_ = place;
  op_ = rom_.ops[place];
  opcode_ = rom_.bytes[place];
  does_ = operation_of(opcode_);
  const OpcodeFacts facts = facts_of(opcode_);
  before_ = pending_;
  if (op_.handler >= kStoreA) return emit_special();
  pending_.cycles += facts.cycles;
  ++pending_.instructions;
  switch (facts.shape) {
    case Shape::Read:
      return emit_read(facts.mode), true;
    case Shape::Store:
      return emit_store(facts.mode), true;
    case Shape::Modify:
      return emit_modify(facts.mode), true;
    case Shape::Branch:
      return emit_branch(), true;
    case Shape::Control:
      return emit_control();
    default:
      return emit_simple(), true;
  }
}

void Emitter::call(u32 which) {
  code_.load64(kRax, SCANLINE_FRAME(calls));
  code_.call({kRax, static_cast<i32>(8 * which)});
}

}  // namespace scanline
