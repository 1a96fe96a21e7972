// loop_translated.h -- the loop that runs a ROM translated to machine code.
//
// Takes and leaves the same state as loop_plain.h, which executes what was not translated: one
// instruction at a time, and the last instructions before the limit of a frame. Needs
// RomImage::translation; without it, it is the decoded loop. The generated code calls the
// functions below for whatever leaves registers and RAM. Host only, no standard headers.
#pragma once

#include "loop_decoded.h"
#include "translation.h"

namespace scanline {

constexpr i32 kTranslatedLimit = i32(kMaxInstructionsPerFrame - kInstructionMargin);

// ---- functions that the code calls -------------------------------------------------------------

template <class Tia>
struct TranslatedCalls {
  using Run = DecodedRun<Tia>;

  // Not zero if the frame ended; WSYNC gives the cycles as well.
  template <u32 target>
  static u64 store(Tia* tia, u32 value, u32 cycles) {
    const u64 ended = tia->template write_now<target>(u8(value), cycles, true) ? kEnded : 0;
    return target == WSYNC ? ended | cycles : ended >> 32;
  }

  static u32 read_tia(Tia* tia, u32 address, u32 data, u32 cycles) {
    return tia->read(u16(address), u8(data), cycles);
  }
  static u64 read(Run* run, u32 address, u32 data, u32 cycles) {
    return read_chip(*run, u16(address), u8(data), cycles);
  }
  // Where the stack lies over the TIA: one read at the old place, one at the new.
  static u32 pull(Run* run, u32 sp, u32 opcode, u32 cycles) {
    const u64 before = read_chip(*run, u16(0x100 | sp), u8(opcode), cycles);
    return u8(read_chip(*run, u16(0x100 | u8(sp + 1)), u8(before), cycles));
  }
  static u64 write(Run* run, u32 address, u32 value, u32 cycles) {
    return write_chip(*run, u16(address), u8(value), cycles);
  }

  static u64 timer(Run* run, i32 packed, u32 cycles, i32* num_left) {
    const PollLoop loop = unpack_poll_loop(packed);
    cycles += 4;
    if (loop.branch != 0) {
      const u32 turns = bounded(timer_turns(run->machine, loop, cycles), num_left);
      cycles += turns * loop.period_cycles;
    }
    return cycles | u64(read_timer(run->machine, cycles)) << 32;
  }
  static u64 timer_flag(Run* run, i32 packed, u32 cycles, i32* num_left) {
    const PollLoop loop = unpack_poll_loop(packed);
    cycles += 4;
    if (loop.branch != 0) {
      const u32 turns = bounded(timer_flag_turns(run->machine, loop, cycles), num_left);
      cycles += turns * loop.period_cycles;
    }
    return cycles | u64(read_timer_flag(run->machine, cycles)) << 32;
  }
  static u64 count(u32 value, i32 packed, i32* num_left) {
    const PollLoop loop = unpack_poll_loop(packed);
    const u32 turns = bounded(count_turns(u8(value), loop), num_left);
    return turns | u64(turns * loop.period_cycles) << 32;
  }

  // Turns that fit before the margin, taken off it.
  static u32 bounded(u32 num_turns, i32* num_left) {
    const u32 room = *num_left > 0 ? u32(*num_left) / 2 : 0;
    const u32 turns = num_turns < room ? num_turns : room;
    *num_left -= i32(2 * turns);
    return turns;
  }

  // The flags lie at the front of a TranslatedRun, or of the code's copy of it.
  static u32 add_decimal(TranslatedRun* flags, u32 a, u32 operand) {
    Registers r = registers_of(*flags, a);
    adc_decimal(r, u8(operand));
    return arithmetic_result(*flags, r);
  }
  static u32 subtract_decimal(TranslatedRun* flags, u32 a, u32 operand) {
    Registers r = registers_of(*flags, a);
    sbc_decimal(r, u8(operand));
    return arithmetic_result(*flags, r);
  }
  static Registers registers_of(const TranslatedRun& flags, u32 a) {
    Registers r{};
    r.a = u8(a);
    r.carry = flags.carry.value;
    return r;
  }
  static u32 arithmetic_result(TranslatedRun& flags, const Registers& r) {
    flags.carry.value = r.carry;
    flags.overflow.value = r.overflow;
    return r.a;
  }

  static u32 pack(const TranslatedRun* flags, u32 nz) {
    Registers r{};
    r.nz = u16(nz);
    load_flags(r, *flags);
    return pack_status(r);
  }
  static u32 unpack(TranslatedRun* flags, u32 status) {
    Registers r{};
    unpack_status(r, u8(status));
    store_flags(*flags, r);
    return r.nz;
  }
  static void load_flags(Registers& r, const TranslatedRun& from) {
    r.carry = from.carry.value;
    r.overflow = from.overflow.value;
    r.decimal = from.decimal.value;
    r.interrupt_disable = from.interrupt_disable.value;
  }
  static void store_flags(TranslatedRun& to, const Registers& r) {
    to.carry.value = r.carry;
    to.overflow.value = r.overflow;
    to.decimal.value = r.decimal;
    to.interrupt_disable.value = r.interrupt_disable;
  }

  static const void* const* table() {
#define SCANLINE_STORE_CALL(target) reinterpret_cast<const void*>(&store<target>),
    static const void* const kTable[kNumCalls] = {
        SCANLINE_REGISTERS(SCANLINE_STORE_CALL) reinterpret_cast<const void*>(&read_tia),
        reinterpret_cast<const void*>(&read),
        reinterpret_cast<const void*>(&pull),
        reinterpret_cast<const void*>(&write),
        reinterpret_cast<const void*>(&timer),
        reinterpret_cast<const void*>(&timer_flag),
        reinterpret_cast<const void*>(&count),
        reinterpret_cast<const void*>(&add_decimal),
        reinterpret_cast<const void*>(&subtract_decimal),
        reinterpret_cast<const void*>(&pack),
        reinterpret_cast<const void*>(&unpack)};
#undef SCANLINE_STORE_CALL
    return kTable;
  }
};

// ---- the loop ----------------------------------------------------------------------------------

template <class Tia>
TranslatedRun translated_run(DecodedRun<Tia>& run) {
  TranslatedRun code{};
  code.run = &run;
  code.tia = &run.tia;
  code.calls = TranslatedCalls<Tia>::table();
  code.places = run.view.place;
  code.image = run.rom.bytes;
  code.ram = run.machine.ram;
  return code;
}

template <class Tia>
void put_point(TranslatedRun& code, const RunPoint& point) {
  const Registers& r = point.registers;
  TranslatedCalls<Tia>::store_flags(code, r);
  code.a = r.a;
  code.x = r.x;
  code.y = r.y;
  code.nz = r.nz;
  code.sp = r.sp;
  code.pc = r.pc;
  code.cycles = u32(point.count);
  code.num_left = kTranslatedLimit - i32(point.count >> 32);
}

template <class Tia>
void take_point(RunPoint& point, const TranslatedRun& code) {
  Registers& r = point.registers;
  TranslatedCalls<Tia>::load_flags(r, code);
  r.a = u8(code.a);
  r.x = u8(code.x);
  r.y = u8(code.y);
  r.nz = u16(code.nz);
  r.sp = u8(code.sp);
  r.pc = u16(code.pc);
  point.count = u64(u32(kTranslatedLimit - code.num_left)) * kOneInstruction + code.cycles;
  point.stopped = code.reason == Left::kStopped;
}

// Runs the code from where the point is until it gives control back.
template <class Tia>
SCANLINE_INLINE void run_code(DecodedRun<Tia>& run, TranslatedRun& code, RunPoint& point) {
  Translation& translation = *run.rom.translation;
  const u32 place = u32(run.view.image_place(point.registers.pc));
  put_point<Tia>(code, point);
  code.pc_offset = i32(point.registers.pc) - i32(place);
  code.entries = __atomic_load_n(&translation.entries, __ATOMIC_ACQUIRE);
  translation.enter(&code, code.entries[place]);
  take_point<Tia>(point, code);
}

template <class Tia>
SCANLINE_NOINLINE void run_translated(DecodedRun<Tia>& run, RunPoint& point) {
  TranslatedRun code = translated_run(run);
  while (!point.stopped) {
    if (is_cartridge(point.registers.pc)) {
      run_code(run, code, point);
      if (point.stopped) return;
      if (code.reason == Left::kMissed)
        run.rom.translation->missed(run.rom.translation,
                                    u32(run.view.image_place(point.registers.pc)));
    }
    const bool near_limit = (point.count >> 32) >= u32(kTranslatedLimit);
    run_bytewise(run, point, near_limit ? RunUntil::kFrameEnds : RunUntil::kInCartridge);
  }
}

struct TranslatedLoop {
  template <class Cartridge, class Tia>
  static void run(MachineState& machine, CartridgeState& cartridge, const RomImage& rom, Tia& tia) {
    if (rom.translation == nullptr || machine.cycles > kMaxStartCycles)
      return SkippingLoop::run<Cartridge>(machine, cartridge, rom, tia);
    if (machine.jammed) return;
    DecodedRun<Tia> decoded{machine, cartridge, rom, tia, {}, &renew_view<Cartridge>};
    RunPoint point{load_registers(machine), machine.cycles, false};
    renew_view<Cartridge>(decoded.view, machine);
    run_translated(decoded, point);
    machine.cycles = u32(point.count);
    store_registers(machine, point.registers);
  }
};

}  // namespace scanline
