// addressing.h -- how the 6507 finds its operand, and the operations that move the program
// counter or the stack.
//
// Everything here goes through a `Bus`: `u8 read(u16)`, `void write(u16, u8)` and `u32 cycles`,
// which counts the whole instruction before its first operand access. The order of accesses is
// ALE's: no dummy reads but those written out below, because reads may have effects (bank
// switches, the timer) and leave their value on the data bus.
#pragma once

#include "cpu6507.h"

namespace scanline {

enum class Mode : u8 {
  Immediate,
  Zero,
  ZeroX,
  ZeroY,
  Absolute,
  AbsoluteX,
  AbsoluteY,
  IndirectX,
  IndirectY
};

// Reads pay one cycle for an index that crosses a page; stores and modifications have it built in.
enum class Access : u8 { Read, Write };

SCANLINE_HD SCANLINE_INLINE bool crosses_page(u16 from, u16 to) {
  return ((from ^ to) & 0xFF00) != 0;
}

template <class Bus>
SCANLINE_HD SCANLINE_INLINE u16 read_word(Bus& bus, u16 low, u16 high) {
  const u16 value = bus.read(low);
  return u16(value | (bus.read(high) << 8));
}

template <class Bus>
SCANLINE_HD SCANLINE_INLINE u16 fetch_word(Registers& r, Bus& bus) {
  const u16 value = read_word(bus, r.pc, u16(r.pc + 1));
  r.pc = u16(r.pc + 2);
  return value;
}

template <Access access, class Bus>
SCANLINE_HD SCANLINE_INLINE u16 add_index(Bus& bus, u16 base, u8 index) {
  const u16 address = u16(base + index);
  if (access == Access::Read && crosses_page(base, address)) bus.cycles += 1;
  return address;
}

// The high byte of a pointer at 0xFF comes from 0x100: zero page does not wrap in ALE.
template <class Bus>
SCANLINE_HD SCANLINE_INLINE u16 read_pointer(Bus& bus, u8 pointer) {
  return read_word(bus, pointer, u16(pointer + 1));
}

template <Mode mode, Access access, class Bus>
SCANLINE_HD SCANLINE_INLINE u16 effective_address(Registers& r, Bus& bus) {
  switch (mode) {
    case Mode::Immediate:
      return r.pc++;
    case Mode::Zero:
      return bus.read(r.pc++);
    case Mode::ZeroX:
      return u8(bus.read(r.pc++) + r.x);
    case Mode::ZeroY:
      return u8(bus.read(r.pc++) + r.y);
    case Mode::Absolute:
      return fetch_word(r, bus);
    case Mode::AbsoluteX:
      return add_index<access>(bus, fetch_word(r, bus), r.x);
    case Mode::AbsoluteY:
      return add_index<access>(bus, fetch_word(r, bus), r.y);
    case Mode::IndirectX:
      return read_pointer(bus, u8(bus.read(r.pc++) + r.x));
    case Mode::IndirectY:
      break;
  }
  return add_index<access>(bus, read_pointer(bus, bus.read(r.pc++)), r.y);
}

template <class Bus>
SCANLINE_HD SCANLINE_INLINE void branch(Registers& r, Bus& bus, bool taken) {
  const i8 displacement = i8(bus.read(r.pc++));
  if (!taken) return;
  const u16 target = u16(r.pc + displacement);
  bus.cycles += crosses_page(r.pc, target) ? 2 : 1;
  r.pc = target;
}

// ---- CONTROL -----------------------------------------------------------------------------------

template <class Bus>
SCANLINE_HD SCANLINE_INLINE void push(Registers& r, Bus& bus, u8 value) {
  bus.write(u16(0x100 | r.sp), value);
  --r.sp;
}

template <class Bus>
SCANLINE_HD SCANLINE_INLINE u8 pull(Registers& r, Bus& bus) {
  ++r.sp;
  return bus.read(u16(0x100 | r.sp));
}

// Before a pull the stack is read once at the old pointer.
template <class Bus>
SCANLINE_HD SCANLINE_INLINE void touch_stack(const Registers& r, Bus& bus) {
  bus.read(u16(0x100 | r.sp));
}

template <class Bus>
SCANLINE_HD SCANLINE_INLINE u16 pull_word(Registers& r, Bus& bus) {
  const u16 low = pull(r, bus);
  return u16(low | (pull(r, bus) << 8));
}

template <class Bus>
SCANLINE_HD SCANLINE_INLINE void pha(Registers& r, Bus& bus) {
  push(r, bus, r.a);
}
template <class Bus>
SCANLINE_HD SCANLINE_INLINE void php(Registers& r, Bus& bus) {
  push(r, bus, pack_status(r));
}
template <class Bus>
SCANLINE_HD SCANLINE_INLINE void pla(Registers& r, Bus& bus) {
  touch_stack(r, bus);
  lda(r, pull(r, bus));
}
template <class Bus>
SCANLINE_HD SCANLINE_INLINE void plp(Registers& r, Bus& bus) {
  touch_stack(r, bus);
  unpack_status(r, pull(r, bus));
}
template <class Bus>
SCANLINE_HD SCANLINE_INLINE void jmp_absolute(Registers& r, Bus& bus) {
  r.pc = fetch_word(r, bus);
}
// The pointer's high byte is fetched from the same page.
template <class Bus>
SCANLINE_HD SCANLINE_INLINE void jmp_indirect(Registers& r, Bus& bus) {
  const u16 pointer = fetch_word(r, bus);
  const u16 high = u16((pointer & 0xFF00) | u8(pointer + 1));
  r.pc = read_word(bus, pointer, high);
}
// Pushes the address of its own last byte, then fetches that byte.
template <class Bus>
SCANLINE_HD SCANLINE_INLINE void jsr(Registers& r, Bus& bus) {
  const u16 low = bus.read(r.pc++);
  touch_stack(r, bus);
  push(r, bus, u8(r.pc >> 8));
  push(r, bus, u8(r.pc));
  r.pc = u16(low | (bus.read(r.pc) << 8));
}
template <class Bus>
SCANLINE_HD SCANLINE_INLINE void rts(Registers& r, Bus& bus) {
  touch_stack(r, bus);
  r.pc = pull_word(r, bus);
  bus.read(r.pc++);
}
template <class Bus>
SCANLINE_HD SCANLINE_INLINE void rti(Registers& r, Bus& bus) {
  touch_stack(r, bus);
  unpack_status(r, pull(r, bus));
  r.pc = pull_word(r, bus);
}
template <class Bus>
SCANLINE_HD SCANLINE_INLINE void brk(Registers& r, Bus& bus) {
  bus.read(r.pc++);
  push(r, bus, u8(r.pc >> 8));
  push(r, bus, u8(r.pc));
  push(r, bus, pack_status(r));
  r.interrupt_disable = 1;
  r.pc = read_word(bus, 0xFFFE, 0xFFFF);
}
// Twelve opcodes stop the processor until a reset.
template <class Bus>
SCANLINE_HD SCANLINE_INLINE void jam(Registers&, Bus& bus) {
  bus.jam();
}

}  // namespace scanline
