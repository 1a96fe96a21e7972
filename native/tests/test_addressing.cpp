// Which addresses an instruction touches, in which order, and how many cycles it takes.
#include <string>
#include <vector>

#include "../core/loop_plain.h"
#include "check.h"

using namespace scanline;

namespace {

struct RecordingBus {
  std::vector<u8> memory = std::vector<u8>(0x10000, 0xEA);
  std::string log;
  u32 cycles = 0;
  bool jammed = false;

  u8 read(u16 address) {
    note('r', address);
    return memory[address];
  }
  void write(u16 address, u8 value) {
    note('w', address);
    memory[address] = value;
  }
  void jam() { jammed = true; }
  void note(char kind, u16 address) {
    char text[8];
    std::snprintf(text, sizeof text, "%c%04X ", kind, address);
    log += text;
  }
};

struct Expected {
  const char* accesses;  // behind the opcode's own fetch
  u32 cycles;
};

// Runs one instruction at F000 with X = 0x20, Y = 0x30, SP = 0xFD.
Registers run(RecordingBus& bus, std::vector<u8> program) {
  for (size_t i = 0; i < program.size(); ++i) bus.memory[0xF000 + i] = program[i];
  Registers r{};
  r.pc = 0xF000;
  r.x = 0x20;
  r.y = 0x30;
  r.sp = 0xFD;
  execute_instruction(r, bus);
  return r;
}

void expect(std::vector<u8> program, Expected expected) {
  RecordingBus bus;
  bus.memory[0x80] = 0x00, bus.memory[0x81] = 0x12;  // a pointer to 1200
  bus.memory[0x90] = 0xF0, bus.memory[0x91] = 0x12;  // a pointer that Y carries over the page
  run(bus, program);
  CHECK(bus.log == std::string("rF000 ") + expected.accesses);
  CHECK(bus.cycles == expected.cycles);
  if (bus.log != std::string("rF000 ") + expected.accesses) std::printf("  %s\n", bus.log.c_str());
}

void test_reads() {
  expect({0xA9, 1}, {"rF001 ", 2});
  expect({0xA5, 0x80}, {"rF001 r0080 ", 3});
  expect({0xB5, 0xF0}, {"rF001 r0010 ", 4});  // the index wraps within page zero
  expect({0xAD, 0x34, 0x12}, {"rF001 rF002 r1234 ", 4});
  expect({0xBD, 0x34, 0x12}, {"rF001 rF002 r1254 ", 4});
  expect({0xBD, 0xF0, 0x12}, {"rF001 rF002 r1310 ", 5});
  expect({0xB1, 0x80}, {"rF001 r0080 r0081 r1230 ", 5});
  expect({0xB1, 0x90}, {"rF001 r0090 r0091 r1320 ", 6});
  expect({0xA1, 0x60}, {"rF001 r0080 r0081 r1200 ", 6});
  expect({0xB1, 0xFF}, {"rF001 r00FF r0100 rEB1A ", 6});  // no wrap of the pointer
  expect({0xA7, 0x80}, {"rF001 r0080 ", 4});
  expect({0x1C, 0xF0, 0x12}, {"rF001 rF002 r1310 ", 5});
}

void test_writes() {
  expect({0x85, 0x80}, {"rF001 w0080 ", 3});
  expect({0x9D, 0xF0, 0x12}, {"rF001 rF002 w1310 ", 5});
  expect({0x91, 0x90}, {"rF001 r0090 r0091 w1320 ", 6});
  expect({0xE6, 0x80}, {"rF001 r0080 w0080 ", 5});
  expect({0xFE, 0xF0, 0x12}, {"rF001 rF002 r1310 w1310 ", 7});
}

void test_control() {
  expect({0x48}, {"w01FD ", 3});
  expect({0x68}, {"r01FD r01FE ", 4});
  expect({0x20, 0x34, 0x12}, {"rF001 r01FD w01FD w01FC rF002 ", 6});
  expect({0x60}, {"r01FD r01FE r01FF rEAEA ", 6});
  expect({0x40}, {"r01FD r01FE r01FF r0100 ", 6});
  expect({0x00}, {"rF001 w01FD w01FC w01FB rFFFE rFFFF ", 7});
  expect({0x4C, 0x34, 0x12}, {"rF001 rF002 ", 3});
  expect({0x6C, 0xFF, 0x12}, {"rF001 rF002 r12FF r1200 ", 5});
}

void test_branches() {
  RecordingBus bus;
  Registers r = run(bus, {0xF0, 0x10});
  CHECK(r.pc == 0xF012 && bus.cycles == 3);
  RecordingBus crossing;
  r = run(crossing, {0xF0, 0x80});
  CHECK(r.pc == 0xEF82 && crossing.cycles == 4);
  RecordingBus straight;
  r = run(straight, {0x30, 0x10});
  CHECK(r.pc == 0xF002 && straight.cycles == 2);
}

void test_jams() {
  int num_jams = 0;
  for (int code = 0; code < 256; ++code) {
    RecordingBus bus;
    run(bus, {u8(code), 0x80, 0x00});
    num_jams += bus.jammed;
    CHECK(bus.cycles >= 2 && bus.cycles <= 8);
  }
  CHECK(num_jams == 12);
}

}  // namespace

int main() {
  test_reads();
  test_writes();
  test_control();
  test_branches();
  test_jams();
  return check::result("addressing");
}
