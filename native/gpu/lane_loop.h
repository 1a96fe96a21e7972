// lane_loop.h -- one frame attempt of many consoles at once: one sequence for every instruction.
//
// Takes and leaves the same state as core/loop_plain.h, which also executes what has no control
// words (bank switches, code in RAM, decimal sums, rare opcodes). The lanes of a warp go through
// the sequence together, each with the words of its own instruction; what only some lanes need
// (stores, branches, pointers) is a short detour. Stores to the TIA are logged and drained by all
// lanes together (store_log.h): a lane that reads a collision waits for that.
#pragma once

#include "../core/idle_skip.h"
#include "../core/loop_plain.h"
#include "control_word.h"
#include "lane_cpu.h"
#include "warp.h"

namespace scanline::gpu {

template <class Cartridge, class Tia, bool draws>
class LaneRun {
 public:
  SCANLINE_HD LaneRun(MachineState& machine, CartridgeState& cartridge, const RomImage& rom,
                      Tia& tia)
      : machine_(machine),
        cartridge_(cartridge),
        rom_(rom),
        tia_(tia),
        log_(machine, rom.properties, tia) {}

  SCANLINE_HD SCANLINE_NOINLINE void run() {
    const Warp warp{};
    LaneCpu cpu = begin();
    const bool is_off = machine_.jammed != 0;
    const Memory memory{machine_.ram, rom_.bytes};
    const ControlWord* words =
        reinterpret_cast<const ControlWord*>(memory.image + control_words_offset(rom_.size_bytes));
    for (;;) {
      const ControlWord word = fetch(words, cpu.pc);
      const bool waits = waits_for_drain(cpu, word.control);
      const bool goes = cpu.left != 0 && !waits && !cpu.stores.is_parked;
      if (goes) step(cpu, word, memory);
      if (!warp.any(cpu.stores.is_full()) && warp.any(goes)) continue;
      if (!warp.any(goes)) cpu.stores.is_parked = false;
      if (warp.any(waits || cpu.stores.is_full())) answer(cpu, word, waits);
      if (!warp.any(cpu.left != 0)) break;
    }
    log_.finish(cpu.stores);
    if (is_off) return;
    machine_.cycles = cpu.cycles;
    store_registers(machine_, cpu.given());
  }

 private:
  // Where bytes are read and written without effects.
  struct Memory {
    u8* ram;
    const u8* image;
  };

  // One read: `data` is what the data lines hold before it.
  struct Reader {
    u32 address, data, cycles;
    bool is_there;
  };

  SCANLINE_HD LaneCpu begin() const {
    LaneCpu cpu{};
    cpu.take(load_registers(machine_));
    cpu.cycles = machine_.cycles;
    cpu.left = machine_.jammed ? 0 : kMaxInstructionsPerFrame;
    cpu.answer = LaneCpu::kNoAnswer;
    cpu.stores = log_.begin(rom_.properties);
    return cpu;
  }

  // ---- the program ----

  SCANLINE_HD SCANLINE_INLINE u32 place_of(u32 address) const {
    return Cartridge::slice(machine_, window_of(u16(address))) * 0x400 + (address & 0x3FF);
  }

  SCANLINE_HD SCANLINE_INLINE static bool is_plain(u32 address) {
    return (address & 0x1000) && (address & 0xFFF) - Cartridge::kPlainBegin <
                                     Cartridge::kPlainEnd - Cartridge::kPlainBegin;
  }

  SCANLINE_HD SCANLINE_INLINE ControlWord fetch(const ControlWord* words, u32 pc) const {
    ControlWord word = words[place_of(pc)];
    if (!(pc & 0x1000)) word.control = control::kSpecial;
    return word;
  }

  SCANLINE_HD SCANLINE_INLINE static u32 alone_of(u32 control) {
    return (control >> control::kAlone) & control::kAloneMask;
  }
  SCANLINE_HD SCANLINE_INLINE static Special special_of(u32 control) {
    return static_cast<Special>(alone_of(control));
  }

  SCANLINE_HD SCANLINE_INLINE static bool waits_for_drain(const LaneCpu& cpu, u32 control) {
    constexpr u32 kMask = control::kSpecial | (control::kAloneMask << control::kAlone);
    constexpr u32 kLatch =
        control::kSpecial | (static_cast<u32>(Special::kLatch) << control::kAlone);
    return cpu.left != 0 && (control & kMask) == kLatch && cpu.answer == LaneCpu::kNoAnswer;
  }

  // ---- joint work ----

  SCANLINE_HD SCANLINE_INLINE void answer(LaneCpu& cpu, ControlWord word, bool waits) {
    Reader reader{0x1000, 0, 0, false};
    if (waits) reader = reader_of(cpu, word);
    const u32 found = meet(cpu.stores, reader);
    cpu.answer = waits ? found : cpu.answer;
    if (!(reader.address & 0x1080)) cpu.stores.touch(clock_of(reader.cycles));
    cpu.stores.num = 0;
    cpu.stores.has_vblank = false;
  }

  SCANLINE_HD SCANLINE_INLINE static Reader reader_of(const LaneCpu& cpu, ControlWord word) {
    const u32 index = pick_byte(cpu.registers, 0, (word.control >> control::kIndexShift) & 7);
    const u32 operand = word.operand & 0xFFFF;
    const bool is_long = ((word.control >> control::kLengthShift) & 3) == 3;
    return {is_long ? operand : (operand + index) & 0xFF, is_long ? operand >> 8 : operand & 0xFF,
            cpu.cycles + (word.control & control::kCycles), true};
  }

  // All lanes apply their stores; those that wait for a collision get it.
  SCANLINE_HD SCANLINE_NOINLINE u32 meet(const StoreFront& stores, const Reader& reader) {
    log_.drain(stores.num, stores.reach);
    if (!reader.is_there) return LaneCpu::kNoAnswer;
    if (!(reader.address & 0x1088))
      return tia_.read(u16(reader.address), u8(reader.data), reader.cycles);
    StoreFront drained = stores;
    drained.num = 0;
    return read(drained, reader);
  }

  // ---- accesses ----

  SCANLINE_HD CartridgeSlot slot(u32 cycles) {
    return {rom_.bytes, machine_, cartridge_, cycles, rom_.type};
  }

  // Anything, with its effects.
  SCANLINE_HD SCANLINE_NOINLINE u32 read(StoreFront& stores, Reader reader) {
    const u32 address = reader.address, data = reader.data, cycles = reader.cycles;
    if (address & 0x1000) return Cartridge::read(slot(cycles), u16(address));
    if (!(address & 0x80)) {
      const bool is_latch = !(address & 8), is_paddle = (address & 0xC) == 8;
      if (is_latch || (is_paddle && stores.has_vblank)) {
        log_.drain(stores);
      }
      if (is_latch) return tia_.read(u16(address), u8(data), cycles);
      stores.touch(clock_of(cycles));
      return read_register(machine_, address, cycles) | (data & 0x3F);
    }
    if (!(address & 0x200)) return machine_.ram[address & 0x7F];
    return read_riot(machine_, u16(address), cycles);
  }

  // Not RAM, not the TIA.
  SCANLINE_HD SCANLINE_NOINLINE void write(u32 address, u32 value, u32 cycles) {
    if (address & 0x1000) return Cartridge::write(slot(cycles), u16(address), u8(value));
    write_riot(machine_, u16(address), u8(value), cycles);
  }

  // ---- one instruction ----

  SCANLINE_HD SCANLINE_INLINE void step(LaneCpu& cpu, const ControlWord word,
                                        const Memory& memory) {
    using namespace control;
    const u32 bits = word.control;
    u8* const ram = memory.ram;
    u32 cycles = cpu.cycles + (bits & kCycles);
    u32 operand = word.operand & 0xFFFF, m = operand & 0xFF, address = 0;
    bool is_slow = (bits & kSetV) && (bits & kSetC) && (cpu.modes & 1);
    if (bits & kSpecial) {
      is_slow = special_of(bits) == Special::kSlow;
      if (!is_slow) m = prepare(cpu, bits, operand, cycles);
    } else if (bits & (kLoad | kStore)) {
      if (bits & kPointer) operand = ram[operand & 0x7F] | (u32(ram[(operand + 1) & 0x7F]) << 8);
      const u32 index = pick_byte(cpu.registers, 0, (bits >> kIndexShift) & 7);
      address = operand + index;
      cycles += bits & kPenalty ? ((operand & 0xFF) + index) >> 8 : 0;
      address &= bits & kWrap ? 0xFF : 0xFFFF;
      if (bits & kImage) {
        m = memory.image[address];
      } else if ((address & 0x1280) == 0x80) {
        m = ram[address & 0x7F];
      } else if (bits & kLoad) {
        is_slow = is_slow || (bits & kStore);
        const u32 data = bits & kWrap ? operand & 0xFF : operand >> 8;
        if (!is_slow) m = read_elsewhere(cpu, {address, data, cycles, true}, memory);
      }
    }
    if (is_slow) {
      LaneCpu copy = cpu;
      step_slowly(copy);
      cpu = copy;
      return;
    }

    // The sum. Branches change nothing by it.
    const u32 left = pick_byte(cpu.registers, m, (bits >> kLeftShift) & 7);
    const u32 right = (bits & kOperand ? m : 0) ^ (bits & kInvert ? 0xFF : 0);
    const u32 carry = (bits & kCarryIn ? cpu.carry : 0) + ((bits >> 22) & 1);
    const u32 factor = u32(i32(bits << (30 - kSignShift)) >> 30);
    const u32 halve = (bits >> 23) & 1;
    const u32 sum =
        left * ((bits >> kTimesShift) & 3) + right + (carry << (halve * 8)) + factor * (left & m);
    const u32 result = (sum >> halve) & 0xFF;
    cpu.nz = bits & kSetNZ ? result : cpu.nz;
    cpu.carry = bits & kSetC ? (halve ? sum & 1 : (sum >> 8) & 1) : cpu.carry;
    if (bits & kSetV) {
      const bool is_test = !(bits & kSetC) && ((bits >> kSignShift) & 3);
      cpu.overflow = is_test ? (m >> 6) & 1 : (((left ^ sum) & (right ^ sum)) >> 7) & 1;
      if (is_test) cpu.nz = result | ((m & 0x80) << 1);
    }
    cpu.registers = pick_bytes(cpu.registers, result, word.operand >> 16);
    cpu.pc = (cpu.pc + ((bits >> kLengthShift) & 3)) & 0xFFFF;
    cpu.left -= 1;

    if (bits & kStore) {
      if ((address & 0x1280) == 0x80) {
        ram[address & 0x7F] = u8(result);
      } else if (!(address & 0x1080)) {
        if (log_.store(cpu.stores, address, result, cycles)) cpu.left = 0;
      } else {
        write(address, result, cycles);
      }
    } else if (bits & kFlow) {
      if (!flow(cpu, bits, operand, cycles, memory)) return;
    }
    cpu.cycles = cycles;
  }

  SCANLINE_HD SCANLINE_INLINE u32 read_elsewhere(LaneCpu& cpu, const Reader& reader,
                                                 const Memory& memory) {
    if (is_plain(reader.address)) return memory.image[place_of(reader.address)];
    StoreFront copy = cpu.stores;
    const u32 value = read(copy, reader);
    cpu.stores = copy;
    return value;
  }

  // The operand of an instruction that is Special; waiting loops are skipped.
  SCANLINE_HD SCANLINE_INLINE u32 prepare(LaneCpu& cpu, u32 bits, u32 operand, u32& cycles) {
    const Special which = special_of(bits);
    if (which == Special::kLatch) {
      const u32 value = cpu.answer;
      cpu.answer = LaneCpu::kNoAnswer;
      return value;
    }
    const PollLoop loop = unpack_poll_loop(i32(operand));
    u32 turns = 0;
    if (which == Special::kCount) {
      const u32 shift = ((bits >> control::kLeftShift) & 7) * 8;
      if (loop.branch) turns = bounded(cpu, count_turns(u8(cpu.registers >> shift), loop));
      const u32 count = (cpu.registers >> shift) - turns;
      cpu.registers = (cpu.registers & ~(0xFFu << shift)) | ((count & 0xFF) << shift);
    } else if (loop.branch) {
      turns = bounded(cpu, which == Special::kTimer ? timer_turns(machine_, loop, cycles)
                                                    : timer_flag_turns(machine_, loop, cycles));
    }
    cpu.left -= 2 * turns;
    cycles += turns * loop.period_cycles;
    if (which == Special::kCount) return 0;
    return which == Special::kTimer ? read_timer(machine_, cycles)
                                    : read_timer_flag(machine_, cycles);
  }

  // Turns after which one instruction is left at least.
  SCANLINE_HD SCANLINE_INLINE static u32 bounded(const LaneCpu& cpu, u32 turns) {
    const u32 room = (cpu.left - 1) / 2;
    return turns < room ? turns : room;
  }

  // False if the instruction was executed byte by byte after all.
  SCANLINE_HD SCANLINE_INLINE bool flow(LaneCpu& cpu, u32 bits, u32 operand, u32& cycles,
                                        const Memory& memory) {
    const Flow which = static_cast<Flow>((bits >> control::kFlowShift) & 7);
    if (which == Flow::kBranch) {
      const u32 zero = (cpu.nz & 0xFF) == 0 ? 8 : 0;
      const u32 negative = ((cpu.nz >> 7) | (cpu.nz >> 8)) & 1;
      const u32 all = negative | (cpu.overflow << 1) | (cpu.carry << 2) | zero;
      const bool taken = ((all >> ((bits >> 14) & 3)) & 1) == ((bits >> 16) & 1);
      cpu.pc = taken ? (cpu.pc - 2 + operand) & 0xFFFF : cpu.pc;
      cycles += taken ? (bits >> 17) & 3 : 0;
      return true;
    }
    if (which == Flow::kJump) {
      cpu.pc = operand;
      return true;
    }
    if (use_stack(cpu, which, operand, memory.ram)) return true;
    LaneCpu copy = cpu;
    step_slowly(copy);
    cpu = copy;
    return false;
  }

  // False if the stack lies over the TIA, or a return leads elsewhere: then nothing has happened.
  SCANLINE_HD SCANLINE_INLINE bool use_stack(LaneCpu& cpu, Flow which, u32 operand, u8* ram) {
    const u32 sp = cpu.registers >> 24;
    const u32 back = cpu.pc - 1;  // last byte of a call
    const bool pushes = which == Flow::kCall || which == Flow::kPush;
    const u32 low = ram[(sp + 1) & 0x7F];
    const u32 last = low | (u32(ram[(sp + 2) & 0x7F]) << 8);
    bool is_slow = sp < 0x81 || (!pushes && sp > 0xFD);
    is_slow = is_slow || (which == Flow::kReturn && (!is_plain(last) || !((last + 1) & 0x1000)));
    if (is_slow) {
      cpu.pc = (back - (which == Flow::kCall ? 2 : 0)) & 0xFFFF;
      cpu.left += 1;
      return false;
    }
    if (pushes) ram[sp & 0x7F] = u8(which == Flow::kCall ? back >> 8 : cpu.registers);
    if (which == Flow::kCall) ram[(sp - 1) & 0x7F] = u8(back);
    if (which == Flow::kPull) {
      cpu.registers = (cpu.registers & ~0xFFu) | low;
      cpu.nz = low;
    }
    cpu.pc = which == Flow::kCall ? operand : which == Flow::kReturn ? (last + 1) & 0xFFFF : cpu.pc;
    const u32 step = which == Flow::kCall || which == Flow::kReturn ? 2 : 1;
    const u32 next = pushes ? sp - step : sp + step;
    cpu.registers = (cpu.registers & 0xFFFFFF) | (next << 24);
    return true;
  }

  // The TIA as the plain loop sees it: its stores are logged like all others.
  struct LoggedTia {
    LaneRun& lane;
    StoreFront& stores;

    SCANLINE_HD u8 read(u16 address, u8 data, u32 cycles) {
      return u8(lane.read(stores, {address, data, cycles, true}));
    }
    SCANLINE_HD bool write(u16 address, u8 value, u32& cycles, bool after_read) {
      if (stores.is_full()) lane.log_.drain(stores);
      return lane.log_.store(stores, address, value, cycles, after_read);
    }
  };

  // By the plain loop, until the program is in the cartridge again.
  SCANLINE_HD SCANLINE_NOINLINE void step_slowly(LaneCpu& cpu) {
    Registers r = cpu.given();
    LoggedTia tia{*this, cpu.stores};
    Bus<Cartridge, LoggedTia> bus{machine_, cartridge_, rom_, tia, cpu.cycles};
    const u32 num = run_instructions(r, bus, cpu.left, RunUntil::kInCartridge);
    cpu.left = bus.stopped ? 0 : cpu.left - num;
    cpu.cycles = bus.cycles;
    cpu.take(r);
  }

  MachineState& machine_;
  CartridgeState& cartridge_;
  const RomImage& rom_;
  Tia& tia_;
  StoreLog<Tia, draws> log_;
};

struct LaneLoop {
  template <class Cartridge, class Tia>
  SCANLINE_HD static void run(MachineState& machine, CartridgeState& cartridge, const RomImage& rom,
                              Tia& tia) {
    LaneRun<Cartridge, Tia, Tia::kDraws> lane(machine, cartridge, rom, tia);
    lane.run();
  }
};

}  // namespace scanline::gpu
