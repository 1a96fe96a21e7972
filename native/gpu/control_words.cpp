// control_words.cpp -- sums of every operation, and addresses of every decoded instruction.
#include "control_words.h"

namespace scanline::gpu {
namespace {

using namespace control;

constexpr u32 kNoSum = 0;

// What an operation computes: bits of ControlWord::control, and which registers take the result.
struct Sum {
  u32 bits = kNoSum;
  u32 target = kKeepRegisters;
  bool is_known = false;
};

constexpr u32 left(RegisterByte byte, u32 times = 1) {
  return (byte << kLeftShift) | (times << kTimesShift);
}
constexpr u32 sign(i32 factor) { return (static_cast<u32>(factor) & 3) << kSignShift; }
constexpr u32 into(RegisterByte byte) {
  return (kKeepRegisters & ~(0xFu << (4 * byte))) | (4u << (4 * byte));
}

constexpr u32 kNothing = left(kByte0, 0);
constexpr u32 kCopy = left(kByte0, 0) | kOperand | kSetNZ;
constexpr u32 kAdd = left(kByteA) | kOperand | kCarryIn | kSetNZ | kSetC | kSetV;
constexpr u32 kCompare = kOperand | kInvert | kOneIn | kSetNZ | kSetC;

constexpr Sum sum(u32 bits, u32 target = kKeepRegisters) { return {bits, target, true}; }
constexpr Sum moved(RegisterByte from, RegisterByte to, u32 flags = kSetNZ) {
  return sum(left(from) | flags, into(to));
}
constexpr Sum counted_up(RegisterByte byte) {
  return sum(left(byte) | kOneIn | kSetNZ, byte == kByteM ? kKeepRegisters : into(byte));
}
constexpr Sum counted_down(RegisterByte byte) {
  return sum(left(byte) | kInvert | kSetNZ, byte == kByteM ? kKeepRegisters : into(byte));
}

// By the names of core/opcodes.h. Those that are not here run byte by byte.
namespace sums {
constexpr Sum lda = sum(kCopy, into(kByteA)), ldx = sum(kCopy, into(kByteX));
constexpr Sum ldy = sum(kCopy, into(kByteY)), lax = sum(kCopy, 0x3244);
constexpr Sum nop = sum(kNothing), idle = sum(kNothing);
constexpr Sum adc = sum(kAdd, into(kByteA)), sbc = sum(kAdd | kInvert, into(kByteA));
constexpr Sum and_ = sum(left(kByteA, 0) | sign(1) | kSetNZ, into(kByteA));
constexpr Sum ora = sum(left(kByteA) | kOperand | sign(-1) | kSetNZ, into(kByteA));
constexpr Sum eor = sum(left(kByteA) | kOperand | sign(-2) | kSetNZ, into(kByteA));
constexpr Sum cmp = sum(left(kByteA) | kCompare), cpx = sum(left(kByteX) | kCompare);
constexpr Sum cpy = sum(left(kByteY) | kCompare);
constexpr Sum bit = sum(left(kByteA, 0) | sign(1) | kSetNZ | kSetV);
constexpr Sum sta = sum(left(kByteA)), stx = sum(left(kByteX)), sty = sum(left(kByteY));
constexpr Sum asl = sum(left(kByteM, 2) | kSetNZ | kSetC);
constexpr Sum rol = sum(left(kByteM, 2) | kCarryIn | kSetNZ | kSetC);
constexpr Sum lsr = sum(left(kByteM) | kHalve | kSetNZ | kSetC);
constexpr Sum ror = sum(left(kByteM) | kHalve | kCarryIn | kSetNZ | kSetC);
constexpr Sum inc = counted_up(kByteM), dec = counted_down(kByteM);
constexpr Sum inx = counted_up(kByteX), iny = counted_up(kByteY);
constexpr Sum dex = counted_down(kByteX), dey = counted_down(kByteY);
constexpr Sum tax = moved(kByteA, kByteX), tay = moved(kByteA, kByteY);
constexpr Sum txa = moved(kByteX, kByteA), tya = moved(kByteY, kByteA);
constexpr Sum tsx = moved(kByteSP, kByteX), txs = moved(kByteX, kByteSP, 0);
constexpr Sum clc = sum(kNothing | kSetC), clv = sum(kNothing | kSetV);
constexpr Sum sec = sum(kNothing | kInvert | kOneIn | kSetC);
constexpr Sum pla = lda;
constexpr Sum anc{}, asr{}, arr{}, ane{}, lxa{}, las{}, sbx{}, sax{}, sha{}, shs{}, shx{}, shy{};
constexpr Sum slo{}, rla{}, sre{}, rra{}, dcp{}, isb{}, cli{}, sei{}, cld{}, sed{};
constexpr Sum bpl{}, bmi{}, bvc{}, bvs{}, bcc{}, bcs{}, bne{}, beq{};
constexpr Sum brk{}, jam{}, php{}, plp{}, jsr{}, rti{}, rts{}, jmp_absolute{}, jmp_indirect{},
    pha{};
}  // namespace sums

Sum sum_of(u8 code) {
#define SCANLINE_FOUR(code, operation, mode, cycles) sums::operation,
#define SCANLINE_THREE(code, operation, cycles) sums::operation,
  static constexpr Sum kSums[256] = {SCANLINE_OPCODES(SCANLINE_FOUR, SCANLINE_FOUR, SCANLINE_FOUR,
                                                      SCANLINE_THREE, SCANLINE_THREE,
                                                      SCANLINE_THREE, SCANLINE_THREE)};
#undef SCANLINE_FOUR
#undef SCANLINE_THREE
  return kSums[code];
}

constexpr ControlWord kSlowWord = {kKeepRegisters << 16, kSpecial};

u32 length_of(const OpcodeFacts& facts) {
  switch (facts.shape) {
    case Shape::Accumulator:
    case Shape::Implied:
      return 1;
    case Shape::Branch:
      return 2;
    default:
      break;
  }
  const Mode mode = facts.mode;
  return mode == Mode::Absolute || mode == Mode::AbsoluteX || mode == Mode::AbsoluteY ? 3 : 2;
}

u32 index_of(Mode mode) {
  if (mode == Mode::ZeroX || mode == Mode::AbsoluteX) return kByteX;
  if (mode == Mode::ZeroY || mode == Mode::AbsoluteY || mode == Mode::IndirectY) return kByteY;
  return kByte0;
}

class WordOf {
 public:
  WordOf(u8 code, const DecodedOp& op)
      : code_(code), op_(op), facts_(facts_of(code)), sum_(sum_of(code)) {
    fixed_ = facts_.cycles | (length_of(facts_) << kLengthShift);
  }

  ControlWord word() const {
    if (op_.handler == kSlow) return kSlowWord;
    if (op_.handler >= kTimerA) return poll();
    if (op_.handler >= kStoreA) return with_address(op_.operand, kWrap | kStore);
    switch (facts_.shape) {
      case Shape::Branch:
        return branch();
      case Shape::Control:
        return flow();
      case Shape::Accumulator:
        return accumulator();
      case Shape::Implied:
        return sum_.is_known ? literal(0) : kSlowWord;
      default:
        return sum_.is_known ? access() : kSlowWord;
    }
  }

 private:
  ControlWord make(u32 operand, u32 bits) const {
    return {(operand & 0xFFFF) | (sum_.target << 16), fixed_ | sum_.bits | bits};
  }
  ControlWord literal(u32 value) const { return make(value, kByte0 << kIndexShift); }
  ControlWord with_address(u32 operand, u32 bits) const {
    return make(operand, bits | (index_of(facts_.mode) << kIndexShift));
  }

  // A takes the place of the operand, and of the target.
  ControlWord accumulator() const {
    const u32 bits = (sum_.bits & ~(7u << kLeftShift)) | (u32(kByteA) << kLeftShift);
    return {into(kByteA) << 16, fixed_ | bits | (u32(kByte0) << kIndexShift)};
  }

  ControlWord special(Special which, u32 operand, u32 bits = 0) const {
    return make(operand, kSpecial | (static_cast<u32>(which) << kAlone) | bits);
  }

  ControlWord poll() const {
    const u32 loop = static_cast<u32>(op_.extra);
    if (op_.handler == kCountX || op_.handler == kCountY) return special(Special::kCount, loop);
    const bool is_flag = op_.handler == kFlagA || op_.handler == kFlagBit;
    return special(is_flag ? Special::kFlag : Special::kTimer, loop);
  }

  // Reads, stores and modifications by addressing mode.
  ControlWord access() const {
    const u32 way = facts_.shape == Shape::Read    ? kLoad
                    : facts_.shape == Shape::Store ? kStore
                                                   : kLoad | kStore;
    const u32 family = op_.handler & ~0xFFu;
    if (family == kConstant) return literal(op_.operand);
    if (family == kTia) return tia_read();
    switch (facts_.mode) {
      case Mode::Immediate:
        return literal(op_.operand);
      case Mode::Zero:
        return with_address(0x80u | op_.operand, way | kWrap);
      case Mode::ZeroX:
      case Mode::ZeroY:
        if (way == (kLoad | kStore) && op_.operand < 0x80) return kSlowWord;
        return way == kLoad && op_.operand < 0x80 ? tia_read() : indexed_zero(way);
      case Mode::IndirectX:
        return kSlowWord;
      case Mode::IndirectY:
        return with_address(0x80u | op_.operand, way | kPointer | (way == kLoad ? kPenalty : 0));
      default:
        return absolute(way, family);
    }
  }

  // A modification that wraps round into the TIA is noticed when it occurs.
  ControlWord indexed_zero(u32 way) const { return with_address(op_.operand, way | kWrap); }

  ControlWord absolute(u32 way, u32 family) const {
    const u32 penalty = way == kLoad && facts_.mode != Mode::Absolute ? kPenalty : 0;
    if (family == kFast && facts_.mode == Mode::Absolute)
      return with_address(0x80u | op_.operand, way);
    if (family == kFast) return with_address(u32(op_.extra), way | kImage | penalty);
    if (way == kLoad && !(op_.operand & 0x1080)) return tia_read();
    return with_address(op_.operand, way | penalty);
  }

  // A read that is, or may be, of the TIA; a collision is known once stores are drained.
  ControlWord tia_read() const {
    const bool is_latch = facts_.mode != Mode::Zero || !(op_.operand & 8);
    if (!is_latch) return with_address(op_.operand, kLoad | kWrap);
    const bool may_cross = facts_.mode == Mode::AbsoluteX || facts_.mode == Mode::AbsoluteY;
    const bool may_be_decimal = (sum_.bits & kSetV) && (sum_.bits & kSetC);
    if (may_cross || may_be_decimal) return kSlowWord;
    return special(Special::kLatch, op_.operand, index_of(facts_.mode) << kIndexShift);
  }

  ControlWord branch() const {
    // By opcode: bits 6-7 choose N, V, C, Z; bit 5 is the value that takes it.
    const u32 flag = (code_ >> 6) & 3, wanted = (code_ >> 5) & 1;
    const u32 bits = kFlow | (static_cast<u32>(Flow::kBranch) << kFlowShift) | (flag << 14) |
                     (wanted << 16) | (u32(op_.operand) << 17);
    return {(static_cast<u32>(op_.extra) & 0xFFFF) | (kKeepRegisters << 16), fixed_ | bits};
  }

  ControlWord flow_word(Flow which, u32 operand, u32 length) const {
    const u32 bits =
        kFlow | (static_cast<u32>(which) << kFlowShift) | facts_.cycles | (length << kLengthShift);
    return {(operand & 0xFFFF) | (kKeepRegisters << 16), bits};
  }

  ControlWord flow() const {
    const bool is_constant = (op_.handler & ~0xFFu) == kConstant;
    switch (code_) {
      case opcode::kJmp:
        return flow_word(Flow::kJump, op_.operand, 3);
      case opcode::kJmpIndirect:
        return is_constant ? flow_word(Flow::kJump, op_.operand, 3) : kSlowWord;
      case opcode::kJsr:
        return flow_word(Flow::kCall, op_.operand, 3);
      case opcode::kRts:
        return flow_word(Flow::kReturn, 0, 1);
      case opcode::kPha:
        return flow_word(Flow::kPush, 0, 1);
      case opcode::kPla:
        return flow_word(Flow::kPull, 0, 1);
      default:
        return kSlowWord;
    }
  }

  u8 code_;
  const DecodedOp& op_;
  OpcodeFacts facts_;
  Sum sum_;
  u32 fixed_;
};

}  // namespace

std::vector<ControlWord> control_words(const RomImage& rom) {
  std::vector<ControlWord> words(rom.size_bytes, kSlowWord);
  for (u32 place = 0; place < num_decoded_ops(rom); ++place)
    words[place] = WordOf(rom.bytes[place], rom.ops[place]).word();
  return words;
}

}  // namespace scanline::gpu
