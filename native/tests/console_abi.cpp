// console_abi.cpp -- a console behind a C interface, for comparisons with ALE from Python.
//
// Built by tests/conformance/console_library.py as a shared library; no part of the product. Holds
// just enough of ALE's input handling to drive a console without the environment layer.
#include <cstring>
#include <vector>

#include "../core/console.h"
#include "../core/rom_identify.h"

using namespace scanline;

namespace {

constexpr u32 kActionReset = 40;

struct TestConsole {
  std::vector<u8> bytes;
  RomImage rom;
  Console console;
  PaddlePositions paddles;

  TestConsole(const u8* data, u32 size)
      : bytes(data, data + size),
        rom(identify_rom(bytes.data(), size)),
        console(rom),
        paddles(centred_paddles(console.properties())) {}
};

void apply_paddles(TestConsole& test, u32 action_a, u32 action_b) {
  const Properties& properties = test.console.properties();
  turn_paddle(test.paddles.resistance[0], properties, action_a, 1.0f);
  turn_paddle(test.paddles.resistance[1], properties, action_b, 1.0f);
  set_paddle_resistances(test.console.machine, properties, test.paddles.resistance[0],
                         test.paddles.resistance[1]);
  set_paddle_buttons(test.console.machine, properties, pressed_by(action_a) & kFire,
                     pressed_by(action_b) & kFire);
}

}  // namespace

extern "C" {

// Null if the cartridge cannot run.
void* console_create(const u8* data, u32 size) {
  if (!is_supported(identify_rom(data, size).type)) return nullptr;
  return new TestConsole(data, size);
}

void console_destroy(void* handle) { delete static_cast<TestConsole*>(handle); }

void console_system_reset(void* handle) {
  TestConsole& test = *static_cast<TestConsole*>(handle);
  test.paddles = centred_paddles(test.console.properties());
  if (uses_paddles(test.console.properties())) {
    set_paddle_resistances(test.console.machine, test.console.properties(),
                           test.paddles.resistance[0], test.paddles.resistance[1]);
  }
  test.console.system_reset();
}

// ALE's `emulate`: the action is held for all frames.
void console_emulate(void* handle, u32 action_a, u32 action_b, u32 num_frames, u32 difficulty) {
  TestConsole& test = *static_cast<TestConsole*>(handle);
  MachineState& machine = test.console.machine;
  set_switches(machine, false, action_a == kActionReset, difficulty);
  for (u32 i = 0; i < num_frames; ++i) {
    if (uses_paddles(test.console.properties())) {
      apply_paddles(test, action_a, action_b);
    } else {
      set_joysticks(machine, test.console.properties(), action_a, action_b);
    }
    test.console.run_frame(true);
  }
}

// ALE's select button: held for some frames, then one frame without input.
void console_press_select(void* handle, u32 num_frames, u32 difficulty) {
  TestConsole& test = *static_cast<TestConsole*>(handle);
  MachineState& machine = test.console.machine;
  set_switches(machine, true, false, difficulty);
  set_joysticks(machine, test.console.properties(), 0, 0);
  for (u32 i = 0; i < num_frames; ++i) test.console.run_frame(true);
  console_emulate(handle, 0, 0, 1, difficulty);
}

void console_ram(void* handle, u8* ram) {
  std::memcpy(ram, static_cast<TestConsole*>(handle)->console.machine.ram, 128);
}
i32 console_screen_height(void* handle) {
  return static_cast<TestConsole*>(handle)->console.screen_height();
}
void console_screen(void* handle, u8* pixels) {
  const Console& console = static_cast<TestConsole*>(handle)->console;
  std::memcpy(pixels, console.screen(), size_t(console.screen_height()) * 160);
}
void console_machine(void* handle, MachineState* machine) {
  *machine = static_cast<TestConsole*>(handle)->console.machine;
}
u32 console_machine_bytes() { return sizeof(MachineState); }
}
