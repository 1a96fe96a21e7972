// translator.cpp -- decoded instructions to x86-64, block by block.
//
// A block runs from a place that somebody jumps to (a leader) up to the next one. Within it, cycles
// and instructions are known in advance: they are added where the block is left, or handed to the
// functions it calls. A, X, Y, N and Z, the cycles and the RAM's address live in registers that
// calls preserve; the other flags and the stack pointer in the stack frame, which begins with a
// copy of TranslatedRun. Rare cases are put behind all blocks.
#include "translator.h"

#include <cstddef>
#include <deque>
#include <functional>

#include "../core/decode.h"
#include "../core/tia_registers.h"
#include "x64_code.h"

#if defined(__x86_64__) && (defined(__linux__) || defined(__APPLE__))
#define SCANLINE_TRANSLATES 1
#include <sys/mman.h>
#else
#define SCANLINE_TRANSLATES 0
#endif

namespace scanline {

#if SCANLINE_TRANSLATES

// Pages that hold code: written once, executable afterwards.
class ExecutableBytes {
 public:
  explicit ExecutableBytes(const std::vector<u8>& bytes) : size_(bytes.size()) {
    void* pages = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return;
    for (size_t i = 0; i < size_; ++i) static_cast<u8*>(pages)[i] = bytes[i];
    if (mprotect(pages, size_, PROT_READ | PROT_EXEC) == 0) {
      start_ = static_cast<const u8*>(pages);
    } else {
      munmap(pages, size_);
    }
  }
  ~ExecutableBytes() {
    if (start_ != nullptr) munmap(const_cast<u8*>(start_), size_);
  }
  ExecutableBytes(const ExecutableBytes&) = delete;
  ExecutableBytes& operator=(const ExecutableBytes&) = delete;

  const u8* start() const { return start_; }  // null if the system refused

 private:
  size_t size_;
  const u8* start_ = nullptr;
};

namespace {

// ---- what an opcode does
// -------------------------------------------------------------------------

enum class Does : u8 {  // clang-format off
  adc, sbc, lda, ldx, ldy, lax, and_, ora, eor, nop, cmp, cpx, cpy, bit, anc, asr, arr, ane, lxa, las,
  sbx, sta, stx, sty, sax, sha, shs, shx, shy, asl, lsr, rol, ror, inc, dec, slo, rla, sre, rra, dcp,
  isb, idle, clc, sec, cli, sei, clv, cld, sed, tax, tay, tsx, txa, txs, tya, dex, dey, inx, iny, bpl,
  bmi, bvc, bvs, bcc, bcs, bne, beq, jsr, jmp_absolute, jmp_indirect, rts, rti, brk, jam, pha, php, pla,
  plp
};  // clang-format on

Does operation_of(u8 opcode) {
#define SCANLINE_FOUR(code, operation, mode, cycles) Does::operation,
#define SCANLINE_THREE(code, operation, cycles) Does::operation,
  static constexpr Does kOperations[256] = {
      SCANLINE_OPCODES(SCANLINE_FOUR, SCANLINE_FOUR, SCANLINE_FOUR, SCANLINE_THREE, SCANLINE_THREE,
                       SCANLINE_THREE, SCANLINE_THREE)};
#undef SCANLINE_FOUR
#undef SCANLINE_THREE
  return kOperations[opcode];
}

u32 length_of(u8 opcode) {
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

// Operations that have code below; the others are executed byte by byte.
bool is_translated(Does does) {
  if (does <= Does::bit) return true;
  if (does >= Does::sta && does <= Does::sax) return true;
  if (does >= Does::asl && does <= Does::dec) return true;
  if (does >= Does::idle && does <= Does::rts) return true;
  return does == Does::dcp || does >= Does::pha;
}

// ---- where things are while the code runs
// -----------------------------------------------------------

constexpr Reg kCycles = kRbx, kRam = kRbp, kA = kR12, kX = kR13, kY = kR14, kNz = kR15;
constexpr i32 kCopiedBytes = offsetof(TranslatedRun, ram), kFrameBytes = 104;
constexpr i32 kRunPlace = kCopiedBytes;  // where the frame keeps the address of the TranslatedRun
static_assert(kCopiedBytes + 8 <= kFrameBytes && kFrameBytes % 16 == 8, "calls need rsp aligned");

#define SCANLINE_FRAME(field) (Mem{kRsp, offsetof(TranslatedRun, field)})
#define SCANLINE_RUN(field) (Mem{kRdi, offsetof(TranslatedRun, field)})

Mem ram_at(u32 place) { return {kRam, static_cast<i32>(place)}; }
Mem ram_of_address(Reg address) { return {kRam, -0x80, address}; }  // 0x80..0xFF
Reg index_of(Mode mode) { return mode == Mode::ZeroX || mode == Mode::AbsoluteX ? kX : kY; }

// Cycles and instructions of a block that are not yet added.
struct Pending {
  i32 cycles = 0;
  i32 instructions = 0;
};
constexpr i32 kMaxPendingInstructions = 100;

// How the image lies in the slot.
struct Layout {
  u32 region_bytes, plain_begin, plain_end;
  bool fixed;  // code in a bank sees that bank: not so in E0 and FE
  u32 mask;    // of an address, giving its place in the bank
};

// ---- one version of the code
// -------------------------------------------------------------------------

class Emitter {
 public:
  Emitter(const RomImage& rom, const std::vector<u8>& wanted)
      : rom_(rom),
        num_ops_(num_decoded_ops(rom)),
        is_leader_(num_ops_, 0),
        is_seen_(num_ops_, 0),
        labels_(num_ops_) {
    visit_cartridge(rom.type, [this](auto cartridge) {
      using Cartridge = decltype(cartridge);
      layout_ = {Cartridge::kRegionBytes, Cartridge::kPlainBegin, Cartridge::kPlainEnd,
                 rom_.type != CartridgeType::kE0 && rom_.type != CartridgeType::kFE,
                 rom_.type == CartridgeType::k2K ? 0x7FFu : 0xFFFu};
    });
    find_leaders(wanted);
    emit();
  }

  const std::vector<u8>& bytes() const { return code_.bytes(); }
  u32 entry(u32 place) const {
    const Label& label = is_leader_[place] ? labels_[place] : missed_;
    return static_cast<u32>(label.place);
  }

 private:
  // ---- leaders: what can be reached from the reset vectors and from the places wanted ----

  void find_leaders(const std::vector<u8>& wanted) {
    const u32 step = rom_.type == CartridgeType::kE0 ? num_ops_ : layout_.region_bytes;
    for (u32 end = step; end <= num_ops_; end += step) {
      const u16 start = u16(rom_.bytes[end - 4] | (rom_.bytes[end - 3] << 8));
      if (is_cartridge(start)) add_leader(place_seen_from(end - 1, start));
    }
    for (u32 place = 0; place < num_ops_; ++place) {
      if (wanted[place]) add_leader(static_cast<i32>(place));
    }
    while (!to_follow_.empty()) {
      const u32 place = to_follow_.back();
      to_follow_.pop_back();
      follow(place);
    }
  }

  void add_leader(i32 place) {
    if (place < 0 || static_cast<u32>(place) >= num_ops_ || is_leader_[static_cast<u32>(place)])
      return;
    is_leader_[static_cast<u32>(place)] = 1;
    to_follow_.push_back(static_cast<u32>(place));
  }

  // Where an address of the cartridge lies as the code at `place` sees it; -1 if that depends.
  i32 place_seen_from(u32 place, u16 address) const {
    if (layout_.fixed) return static_cast<i32>(bank_start(place) + (address & layout_.mask));
    if (rom_.type == CartridgeType::kFE) return (address & 0xFFF) + (address & 0x2000 ? 0 : 0x1000);
    return (address & 0xFFF) >= 0xC00 ? 0x1000 + (address & 0xFFF) : -1;
  }
  u32 bank_start(u32 place) const { return place & ~layout_.mask; }

  void follow(u32 place) {
    while (place < num_ops_ && !is_seen_[place]) {
      is_seen_[place] = 1;
      if (!note_targets(place)) return;
      place += length_of(rom_.bytes[place]);
    }
  }

  // Marks where the program may go from here; false if not to the next instruction.
  bool note_targets(u32 place) {
    const DecodedOp& op = rom_.ops[place];
    const u8 code = rom_.bytes[place];
    const u32 next = place + length_of(code);
    if (!can_translate(place)) return add_leader(static_cast<i32>(next)), false;
    if (op.handler == kStoreA || op.handler == kStoreX || op.handler == kStoreY)
      add_leader(static_cast<i32>(next));  // VSYNC: here the next frame begins
    if (op.handler / 256u * 256u == kGeneric && is_cartridge(op.operand))
      note_bank_switch(op, next);
    const OpcodeFacts facts = facts_of(code);
    if (facts.shape == Shape::Branch) add_leader(static_cast<i32>(place) + op.extra);
    return facts.shape != Shape::Control || note_control(operation_of(code), op, place);
  }

  bool note_control(Does does, const DecodedOp& op, u32 place) {
    const bool constant = op.handler >= kConstant && op.handler < kTia;
    if (does == Does::jsr) add_leader(static_cast<i32>(place) + 3);
    if (does == Does::jsr || does == Does::jmp_absolute || constant)
      add_leader(place_seen_from(place, op.operand));
    return does >= Does::pha;
  }

  // The program goes on in any bank.
  void note_bank_switch(const DecodedOp& op, u32 next) {
    if (!layout_.fixed || (op.operand & 0xFFFu) < layout_.plain_end) return;
    for (u32 bank = 0; bank < num_ops_; bank += 0x1000)
      add_leader(static_cast<i32>(bank + (next & 0xFFF)));
  }

  bool can_translate(u32 place) const {
    const u16 handler = rom_.ops[place].handler;
    const u8 code = rom_.bytes[place];
    return handler != kSlow && is_translated(operation_of(code));
  }

  // ---- all of it ----

  void emit() {
    emit_exits();
    for (u32 place = 0; place < num_ops_; ++place) {
      if (is_leader_[place] && labels_[place].place < 0) emit_blocks(place);
    }
    for (size_t i = 0; i < rare_.size(); ++i) rare_[i]();
  }

  void emit_blocks(u32 place) {
    pending_ = {};
    while (true) {
      if (place >= num_ops_) return emit_leave(Left::kSlow, place);
      if (is_leader_[place]) {
        flush();
        if (labels_[place].place >= 0) return code_.jump(labels_[place]);
        code_.bind(labels_[place]);
      }
      if (pending_.instructions >= kMaxPendingInstructions) flush();
      if (!emit_instruction(place)) return;
      place += length_of(rom_.bytes[place]);
    }
  }

  // Adds what is pending. The sign flag then says whether the margin is reached, if there was any.
  void flush() {
    add(pending_);
    pending_ = {};
  }
  void add(Pending pending) {
    if (pending.cycles != 0) code_.alu(Alu::kAdd, kCycles, pending.cycles);
    if (pending.instructions != 0)
      code_.alu(Alu::kSub, SCANLINE_FRAME(num_left), pending.instructions);
  }

  Label& new_label() {
    others_.emplace_back();
    return others_.back();
  }

  // Code behind the blocks; it may come back to `back`.
  template <class Emit>
  Label& rarely(Emit emit) {
    Label& label = new_label();
    rare_.push_back([this, &label, emit] {
      code_.bind(label);
      emit();
    });
    return label;
  }

  // ---- entering and leaving ----

  // void enter(TranslatedRun*, const void* code) comes first, then the ways out.
  void emit_exits() {
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

  void move_registers(bool in) {
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
  void emit_dynamic_jump() {
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
  void emit_jump_to_place() {
    code_.copy(kRdx, kRcx);
    code_.alu(Alu::kSub, kRdx, kRax);
    code_.store(SCANLINE_FRAME(pc_offset), kRdx);
    code_.load64(kRdx, SCANLINE_FRAME(entries));
    code_.jump(Mem{kRdx, 0, kRax, 3});
  }

  // Leaves the code; the program goes on at `place`.
  void emit_leave(Left reason, u32 place) {
    code_.load(kRcx, SCANLINE_FRAME(pc_offset));
    code_.alu(Alu::kAdd, kRcx, static_cast<i32>(place));
    code_.set(kRdx, static_cast<u32>(reason));
    code_.jump(leave_);
  }

  Label& leaving(Left reason, u32 place, Pending pending) {
    return rarely([=] {
      add(pending);
      emit_leave(reason, place);
    });
  }

  // ---- one instruction ----

  // False if the program does not go on behind it.
  bool emit_instruction(u32 place) {
    if (!can_translate(place)) {
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

  u32 next_place() const { return place_ + length_of(opcode_); }
  bool is_family(u16 family) const { return op_.handler / 256u * 256u == family; }
  // The instruction as a whole is left to the byte-wise path; nothing of it has happened yet.
  Label& slow() { return leaving(Left::kSlow, place_, before_); }

  void call(u32 which) {
    code_.load64(kRax, SCANLINE_FRAME(calls));
    code_.call({kRax, static_cast<i32>(8 * which)});
  }
  void cycles_into(Reg reg) { code_.address(reg, {kCycles, pending_.cycles}); }

  // ---- reads ----

  void emit_read(Mode mode) {
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

  void emit_read_tia(u16 address, u8 data) {
    code_.load64(kRdi, SCANLINE_FRAME(tia));
    code_.set(kRsi, address);
    code_.set(kRdx, data);
    cycles_into(kRcx);
    call(kCallReadTia);
  }

  void emit_read_zero_indexed(Reg index) {
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
  void emit_read_table(Reg index) {
    emit_page_crossing(index);
    code_.load64(kRax, SCANLINE_FRAME(image));
    code_.load_byte(kRax, {kRax, op_.extra, index});
  }

  // Through a pointer in RAM, most often to the ROM.
  void emit_read_indirect() {
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
  void emit_place_of_address(Label& elsewhere) {
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
    if (bank_start(place_) != 0) code_.alu(Alu::kAdd, kRax, static_cast<i32>(bank_start(place_)));
  }

  // Goes elsewhere unless the offset in eax is plain ROM.
  void emit_plain_check(Label& elsewhere) {
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
  Label& read_elsewhere(Label& back) {
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
  void emit_bank_test(Label& switched) {
    code_.copy64(kRdx, kRax);
    code_.shift64(Shift::kRight, kRdx, 32);
    code_.jump_if(If::kNotZero, switched);
  }

  // The value is used here, and the next instruction comes from wherever its address lies now.
  Label& after_bank_switch() {
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
  void emit_read_generic(Mode mode) {
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
  void emit_page_crossing(Reg index) {
    if ((op_.operand & 0xFF) == 0) return;
    code_.address(kRax, {index, op_.operand & 0xFF});
    code_.shift(Shift::kRight, kRax, 8);
    code_.alu(Alu::kAdd, kCycles, kRax);
  }

  // Reads the address in esi from the ROM, or goes elsewhere.
  void emit_read_plain(Label& elsewhere) {
    code_.test(kRsi, 0x1000u);
    code_.jump_if(If::kZero, elsewhere);
    emit_place_of_address(elsewhere);
    code_.load64(kRdx, SCANLINE_FRAME(image));
    code_.load_byte(kRax, {kRdx, 0, kRax});
  }

  // Through a pointer in a table of them; seldom used, and seldom for ROM alone.
  void emit_read_indexed_indirect() {
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
  void emit_read_port(u32 port) {
    const i32 ram = offsetof(MachineState, ram);
    static const i32 kFields[3] = {offsetof(MachineState, swcha), offsetof(MachineState, ddra),
                                   offsetof(MachineState, swchb)};
    if (port == 3) return code_.set(kRax, 0);
    code_.load_byte(kRax, {kRam, kFields[port] - ram});
  }

  // ---- what a read does with its value ----

  void use_constant(u8 value) {
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
  void set_register(Reg reg, u8 value) {
    code_.set(reg, value);
    code_.set(kNz, value);
  }

  // The next instruction is in another bank.
  void emit_go_on_elsewhere(Pending pending, u32 next) {
    add(pending);
    code_.load(kRcx, SCANLINE_FRAME(pc_offset));
    code_.alu(Alu::kAdd, kRcx, static_cast<i32>(next));
    code_.copy_word(kRcx, kRcx);
    emit_margin_test_at_ecx();
    code_.jump(dynamic_);
  }

  // Does what the instruction does with the value in eax.
  void apply() {
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

  void load_register(Reg reg) {
    code_.copy(reg, kRax);
    code_.copy(kNz, kRax);
  }
  void logic(Alu operation) {
    code_.alu(operation, kA, kRax);
    code_.copy(kNz, kA);
  }
  void compare(Reg reg) {
    code_.copy(kNz, reg);
    code_.alu_byte(Alu::kSub, kNz, kRax);
    code_.store_condition(If::kNotBelow, SCANLINE_FRAME(carry));
  }
  void test_bits() {
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
  void arithmetic(Alu operation, Call decimal) {
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
    code_.store_condition(operation == Alu::kAdc ? If::kBelow : If::kNotBelow,
                          SCANLINE_FRAME(carry));
    code_.store_condition(If::kOverflow, SCANLINE_FRAME(overflow));
    code_.bind(back);
    code_.copy(kNz, kA);
  }

  // The processor's carry becomes ours, or its opposite.
  void carry_into_flag(bool same) {
    code_.alu_byte(Alu::kCmp, SCANLINE_FRAME(carry), 1);
    if (same) code_.flip_carry();
  }

  // ---- stores ----

  void value_into(Reg target) {
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

  void emit_store(Mode mode) {
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
  void emit_write_call() {
    code_.load64(kRdi, SCANLINE_FRAME(run));
    call(kCallWrite);
  }

  // The frame ended, or the banks were switched; which of them is in eax.
  Label& after_unusual_write() {
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

  void emit_store_zero_indexed(Reg index) {
    Label& back = new_label();
    const Pending pending = pending_;
    Label& unusual = after_unusual_write();
    code_.address(kRsi, {index, op_.operand});
    code_.copy_byte(kRsi, kRsi);
    value_into(kRdx);
    code_.test_byte(kRsi, kRsi);
    code_.jump_if(If::kNotSign, rarely([=, &back, &unusual] {
                    code_.address(kRcx, {kCycles, pending.cycles});
                    emit_write_call();
                    code_.address(kCycles, {kRax, -pending.cycles});
                    code_.shift64(Shift::kRight, kRax, 32);
                    code_.jump_if(If::kNotZero, unusual);
                    code_.jump(back);
                  }));
    code_.store_byte(ram_of_address(kRsi), kRdx);
    code_.bind(back);
  }

  // ---- modifications ----

  void emit_modify(Mode mode) {
    if (mode == Mode::ZeroX) {
      code_.address(kRdx, {kX, op_.operand});
      code_.copy_byte(kRdx, kRdx);
      code_.test_byte(kRdx, kRdx);
      code_.jump_if(If::kNotSign, slow());
      return modify(ram_of_address(kRdx));
    }
    modify(ram_at(op_.operand));
  }

  void modify(Mem at) {
    code_.load_byte(kRax, at);
    change();
    code_.store_byte(at, kRax);
    if (does_ == Does::dcp) return compare(kA);
    code_.copy_byte(kNz, kRax);
  }

  void change() {
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
  void shift(Shift how) {
    code_.shift_byte(how, kRax);
    code_.store_condition(If::kBelow, SCANLINE_FRAME(carry));
  }

  // ---- accumulator and implied ----

  void emit_simple() {
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

  void emit_transfer() {
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
  void transfer(Reg target, Reg source) {
    code_.copy(target, source);
    code_.copy(kNz, source);
  }
  void step(Reg reg, bool up) {
    up ? code_.increment_byte(reg) : code_.decrement_byte(reg);
    code_.copy(kNz, reg);
  }

  // ---- branches ----

  // Tests the condition; the branch is taken if the processor's condition holds.
  If emit_condition() {
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
  static If opposite(If condition) { return static_cast<If>(static_cast<u8>(condition) ^ 1); }

  void emit_branch() {
    Label& not_taken = new_label();
    const i32 target = static_cast<i32>(place_) + op_.extra;
    code_.jump_if(opposite(emit_condition()), not_taken);
    add({pending_.cycles + op_.operand, pending_.instructions});
    emit_jump_inside(static_cast<u32>(target),
                     leaving(Left::kMargin, static_cast<u32>(target), {}));
    code_.bind(not_taken);
  }

  // The sign flag says whether the margin was reached. Tested where the program goes back: forward
  // it can go no further than the end of its bank.
  void emit_jump_inside(u32 target, Label& margin) {
    if (target <= place_ || target / 0x1000 != place_ / 0x1000) code_.jump_if(If::kSign, margin);
    code_.jump(labels_[target]);
  }

  // ---- jumps and the stack ----

  bool emit_control() {
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

  void emit_margin_test_at_ecx() {
    code_.alu(Alu::kCmp, SCANLINE_FRAME(num_left), 0);
    code_.jump_if(If::kSign, rarely([=] {
                    code_.set(kRdx, static_cast<u32>(Left::kMargin));
                    code_.jump(leave_);
                  }));
  }

  void emit_jump_to(u16 address) {
    flush();
    const i32 target = place_seen_from(place_, address);
    if (target < 0 || static_cast<u32>(target) >= num_ops_) {
      code_.set(kRcx, address);
      emit_margin_test_at_ecx();
      return code_.jump(dynamic_);
    }
    code_.store_set(SCANLINE_FRAME(pc_offset), static_cast<u32>(i32(address) - target));
    emit_jump_inside(static_cast<u32>(target),
                     leaving(Left::kMargin, static_cast<u32>(target), {}));
  }

  void emit_indirect_jump() {
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
  void emit_jump_in_bank() {
    if (!layout_.fixed) return code_.jump(dynamic_);
    code_.copy(kRax, kRcx);
    code_.alu(Alu::kAnd, kRax, static_cast<i32>(layout_.mask));
    if (bank_start(place_) != 0) code_.alu(Alu::kAdd, kRax, static_cast<i32>(bank_start(place_)));
    emit_jump_to_place();
  }

  void emit_call() {
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

  void emit_return() {
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
  void emit_push() {
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
                    code_.address(kRcx, {kCycles, pending.cycles});
                    emit_write_call();
                    code_.address(kCycles, {kRax, -pending.cycles});
                    code_.shift64(Shift::kRight, kRax, 32);
                    code_.jump_if(If::kNotZero, unusual);
                    code_.jump(back);
                  }));
    code_.store_byte(ram_of_address(kRsi), kRdx);
    code_.bind(back);
  }

  // With the stack pointer in edx.
  Label& pull_elsewhere(Label& back) {
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

  void emit_pull() {
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

  // ---- TIA stores and waiting loops ----

  bool emit_special() {
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

  void emit_tia_store(Reg source, u32 target) {
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

  void flush_instructions() {
    add({0, pending_.instructions});
    pending_.instructions = 0;
  }

  void emit_timer(Call which) {
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

  void emit_countdown(Reg index) {
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

  static constexpr u32 kEndedAbove = 1;  // kEnded of loop_decoded.h, above the cycles

  const RomImage& rom_;
  u32 num_ops_;
  Layout layout_{};
  std::vector<u8> is_leader_, is_seen_;
  std::vector<u32> to_follow_;
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

}  // namespace

// ---- the versions
// --------------------------------------------------------------------------------------

Translator::Translator(const RomImage& rom) : rom_(rom), wanted_(num_decoded_ops(rom), 0) {
  shared_.owner = this;
  if (rom.ops == nullptr || !translate()) return;
  shared_.public_part.missed = &Translator::missed;
}

Translator::~Translator() = default;

bool Translator::translate() {
  const Emitter emitter(rom_, wanted_);
  auto version = std::make_unique<Version>();
  version->code = std::make_unique<ExecutableBytes>(emitter.bytes());
  const u8* start = version->code->start();
  if (start == nullptr) return false;
  for (u32 place = 0; place < wanted_.size(); ++place)
    version->entries.push_back(start + emitter.entry(place));
  Translation& translation = shared_.public_part;
  // The way in is the same in every version.
  if (versions_.empty())
    translation.enter =
        reinterpret_cast<void (*)(TranslatedRun*, const void*)>(reinterpret_cast<size_t>(start));
  __atomic_store_n(&translation.entries, version->entries.data(), __ATOMIC_RELEASE);
  versions_.push_back(std::move(version));
  return true;
}

void Translator::missed(Translation* translation, u32 place) {
  reinterpret_cast<Shared*>(translation)->owner->note_miss(place);
}

// Each version waits for more misses than the one before, so that there are few.
void Translator::note_miss(u32 place) {
  constexpr size_t kMissesPerVersion = 64, kMaxVersions = 24;
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || versions_.size() == kMaxVersions) return;
  has_new_places_ |= !wanted_[place];
  wanted_[place] = 1;
  if (++num_misses_ < kMissesPerVersion * versions_.size() || !has_new_places_) return;
  num_misses_ = 0;
  has_new_places_ = false;
  translate();
}

#else

class ExecutableBytes {};

Translator::Translator(const RomImage& rom) : rom_(rom) {}
Translator::~Translator() = default;

#endif

}  // namespace scanline
