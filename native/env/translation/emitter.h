// emitter.h -- one version of a ROM's code: decoded instructions to x86-64, block by block.
//
// Takes a decoded ROM and the places wanted; gives bytes, and where each place's code begins.
// A block runs from a place that somebody jumps to (a leader) up to the next one. Within it, cycles
// and instructions are known in advance: they are added where the block is left, or handed to the
// functions it calls. A, X, Y, N and Z, the cycles and the RAM's address live in registers that
// calls preserve; the other flags and the stack pointer in the stack frame, which begins with a
// copy of TranslatedRun. Rare cases are put behind all blocks.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "../../core/decode.h"
#include "../../core/tia_registers.h"
#include "../../core/translation.h"
#include "leaders.h"
#include "x64_code.h"

namespace scanline {

// Where things are while the code runs.
constexpr Reg kCycles = kRbx, kRam = kRbp, kA = kR12, kX = kR13, kY = kR14, kNz = kR15;
constexpr i32 kCopiedBytes = offsetof(TranslatedRun, ram), kFrameBytes = 104;
constexpr i32 kRunPlace = kCopiedBytes;  // where the frame keeps the address of the TranslatedRun
static_assert(kCopiedBytes + 8 <= kFrameBytes && kFrameBytes % 16 == 8, "calls need rsp aligned");

#define SCANLINE_FRAME(field) (Mem{kRsp, offsetof(TranslatedRun, field)})
#define SCANLINE_RUN(field) (Mem{kRdi, offsetof(TranslatedRun, field)})

inline Mem ram_at(u32 place) { return {kRam, static_cast<i32>(place)}; }
inline Mem ram_of_address(Reg address) { return {kRam, -0x80, address}; }  // 0x80..0xFF
inline Reg index_of(Mode mode) { return mode == Mode::ZeroX || mode == Mode::AbsoluteX ? kX : kY; }

// Cycles and instructions of a block that are not yet added.
struct Pending {
  i32 cycles = 0;
  i32 instructions = 0;
};
constexpr i32 kMaxPendingInstructions = 100;

class Emitter {
 public:
  Emitter(const RomImage& rom, const std::vector<u8>& wanted)
      : rom_(rom), leaders_(rom, wanted), layout_(leaders_.layout()), labels_(leaders_.num_ops()) {
    emit();
  }

  const std::vector<u8>& bytes() const { return code_.bytes(); }
  u32 entry(u32 place) const {
    const Label& label = leaders_.has(place) ? labels_[place] : missed_;
    return static_cast<u32>(label.place);
  }

 private:
  // Blocks (emitter_blocks.cpp).
  void emit();
  void emit_blocks(u32 place);
  void add(Pending pending);
  void emit_exits();
  void move_registers(bool in);
  void emit_dynamic_jump();
  void emit_jump_to_place();
  void emit_leave(Left reason, u32 place);
  Label& leaving(Left reason, u32 place, Pending pending);
  bool emit_instruction(u32 place);
  void call(u32 which);

  // Reads (emitter_reads.cpp).
  void emit_read(Mode mode);
  void emit_read_tia(u16 address, u8 data);
  void emit_read_zero_indexed(Reg index);
  void emit_read_table(Reg index);
  void emit_read_indirect();
  void emit_place_of_address(Label& elsewhere);
  void emit_plain_check(Label& elsewhere);
  Label& read_elsewhere(Label& back);
  void emit_bank_test(Label& switched);
  Label& after_bank_switch();
  void emit_read_generic(Mode mode);
  void emit_page_crossing(Reg index);
  void emit_read_plain(Label& elsewhere);
  void emit_read_indexed_indirect();
  void emit_read_port(u32 port);

  // Writes (emitter_stores.cpp).
  void value_into(Reg target);
  void emit_store(Mode mode);
  void emit_write_call();
  void emit_rare_write(Pending pending, Label& unusual, Label& back);
  Label& after_unusual_write();
  void emit_store_zero_indexed(Reg index);
  void emit_modify(Mode mode);
  void modify(Mem at);
  bool emit_special();
  void emit_tia_store(Reg source, u32 target);
  void emit_timer(Call which);
  void emit_countdown(Reg index);

  // Values (emitter_values.cpp).
  void change();
  void shift(Shift how);
  void use_constant(u8 value);
  void set_register(Reg reg, u8 value);
  void apply();
  void load_register(Reg reg);
  void logic(Alu operation);
  void compare(Reg reg);
  void test_bits();
  void arithmetic(Alu operation, Call decimal);
  void carry_into_flag(bool same);
  void emit_simple();
  void emit_transfer();
  void transfer(Reg target, Reg source);
  void step(Reg reg, bool up);

  // Control (emitter_control.cpp).
  void emit_go_on_elsewhere(Pending pending, u32 next);
  If emit_condition();
  void emit_branch();
  void emit_jump_inside(u32 target, Label& margin);
  bool emit_control();
  void emit_margin_test_at_ecx();
  void emit_jump_to(u16 address);
  void emit_indirect_jump();
  void emit_jump_in_bank();
  void emit_call();
  void emit_return();
  void emit_push();
  Label& pull_elsewhere(Label& back);
  void emit_pull();

  // Adds what is pending. The sign flag then says whether the margin is reached, if there was any.
  void flush() {
    add(pending_);
    pending_ = {};
  }

  void flush_instructions() {
    add({0, pending_.instructions});
    pending_.instructions = 0;
  }

  Label& new_label() {
    others_.emplace_back();
    return others_.back();
  }

  // Code behind the blocks; it may come back to one of them.
  template <class Emit>
  Label& rarely(Emit emit) {
    Label& label = new_label();
    rare_.push_back([this, &label, emit] {
      code_.bind(label);
      emit();
    });
    return label;
  }

  u32 next_place() const { return place_ + length_of(opcode_); }
  bool is_family(u16 family) const { return op_.handler / 256u * 256u == family; }
  // The instruction as a whole is left to the byte-wise path; nothing of it has happened yet.
  Label& slow() { return leaving(Left::kSlow, place_, before_); }
  void cycles_into(Reg reg) { code_.address(reg, {kCycles, pending_.cycles}); }
  static If opposite(If condition) { return static_cast<If>(static_cast<u8>(condition) ^ 1); }

  static constexpr u32 kEndedAbove = 1;  // kEnded of loop_decoded.h, above the cycles

  const RomImage& rom_;
  const Leaders leaders_;
  const Layout& layout_;
  X64Code code_;
  std::vector<Label> labels_;  // by place
  std::deque<Label> others_;
  Label missed_, leave_, dynamic_;
  std::deque<std::function<void()>> rare_;  // grows while it is worked off
  // The instruction at hand.
  u32 place_ = 0;
  DecodedOp op_{};
  u8 opcode_ = 0;
  Does does_ = Does::nop;
  Pending pending_, before_;
};

}  // namespace scanline
