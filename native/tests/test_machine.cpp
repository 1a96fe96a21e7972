// test_machine.cpp -- clocks of a program that never touches the TIA or its timer again.
#include <initializer_list>

#include "../core/cartridge_dpc.h"
#include "../core/loop_plain.h"
#include "../core/machine.h"
#include "../core/tia_plain.h"
#include "check.h"

using namespace scanline;

namespace {

// 4 KB of JMP F000.
struct Endless {
  u8 bytes[4096] = {0x4C, 0x00, 0xF0};
  RomImage image;
  MachineState machine{};
  CartridgeState cartridge{};

  Endless() {
    image.bytes = bytes;
    image.size_bytes = sizeof bytes;
    image.type = CartridgeType::k4K;
    machine.pc = 0xF000;
  }

  void run_frame() {
    PlainTia<NoPixels> tia(machine, image.properties, NoPixels());
    scanline::run_frame<PlainLoop, Cartridge4K>(machine, cartridge, image, tia);
  }
};

void an_endless_frame_goes_on_until_its_clock_is_about_to_overflow() {
  constexpr u32 kCyclesPerAttempt = 3 * kMaxInstructionsPerFrame;
  Endless console;
  console.run_frame();
  console.run_frame();
  CHECK(console.machine.partial == 1 && console.machine.cycles == 2 * kCyclesPerAttempt);
  console.machine.cycles = kMaxFrameCycles;
  console.run_frame();
  CHECK(console.machine.cycles == kMaxFrameCycles + kCyclesPerAttempt);
  const u8 parity = console.machine.buffer_parity;
  console.run_frame();  // a new one
  CHECK(console.machine.cycles == kCyclesPerAttempt);
  CHECK(console.machine.buffer_parity != parity);
  CHECK(console.machine.frame_start_clock <= 0 && console.machine.frame_start_clock > -kLineClocks);
  CHECK(u64(kMaxFrameCycles + 100 * kMaxInstructionsPerFrame) * 3 < 0x7FFFFFFF);
}

// The count of an expired timer falls for 2^31 cycles and is positive again for as many.
void a_timer_may_be_forgotten() {
  for (u32 since : {0x7FFFFFF0u, 0x80000000u, 0x80000100u, 0xFFFFFFFFu}) {
    MachineState machine{};
    write_riot(machine, 0x294, 9, 100);
    const u32 delta = since - 1;  // an interval of one cycle
    CHECK(timer_count(machine, 100 + since) == i32(9u - delta - 1));
    const bool expired = i32(9u - delta - 1) < 0;
    CHECK(read_riot(machine, 0x285, 100 + since) == (expired ? 0x80 : 0x00));
    if (!expired) CHECK(read_riot(machine, 0x284, 100 + since) == u8(9u - delta - 1));
  }
}

}  // namespace

int main() {
  an_endless_frame_goes_on_until_its_clock_is_about_to_overflow();
  a_timer_may_be_forgotten();
  return check::result("machine");
}
