// console_abi.cpp -- a console behind a C interface, for comparisons with ALE from Python.
//
// Built by tests/conformance/console_library.py as a shared library; no part of the product. Has
// its own short version of ALE's reset and act, written from their description, so that the core
// can be compared before and independently of the environment layer.
#include <cstring>
#include <vector>

#include "../core/console.h"
#include "../core/console_fast.h"
#include "../env/owned_rom.h"
#include "../games/modes.h"
#include "../games/step.h"
#include "../games/table.h"

#ifndef SCANLINE_TEST_CONSOLE
#define SCANLINE_TEST_CONSOLE Console
#endif

using namespace scanline;

namespace {

using TestedConsole = SCANLINE_TEST_CONSOLE;

// ALE's environment without sticky actions.
struct TestEnvironment {
  OwnedRom rom;
  TestedConsole console;
  PaddlePositions paddles;
  const games::GameRow* row;
  games::GameState game{};
  u32 difficulty = 0;
  i32 reward = 0;
  bool draw = true;

  TestEnvironment(const u8* data, u32 size, u32 game_index)
      : rom(std::vector<u8>(data, data + size)),
        console(rom.image()),
        row(&games::row_of(games::GameId(game_index))) {}

  u8 ram(u8 address) const { return console.ram(address); }
  u8 cartridge(u16 address) const { return console.cartridge_ram(address); }
  u32 random() { return 0; }

  void set_inputs(u32 action_a, u32 action_b) {
    const Properties& properties = console.properties();
    set_switches(console.machine, false, action_a == games::kReset, difficulty);
    if (!uses_paddles(properties)) {
      return set_joysticks(console.machine, properties, action_a, action_b);
    }
    turn_paddle(paddles.resistance[0], properties, action_a, 1.0f);
    turn_paddle(paddles.resistance[1], properties, action_b, 1.0f);
    set_paddle_resistances(console.machine, properties, paddles.resistance[0],
                           paddles.resistance[1]);
    set_paddle_buttons(console.machine, properties, pressed_by(action_a) & kLineFire,
                       pressed_by(action_b) & kLineFire);
  }

  void emulate(u32 action_a, u32 action_b, u32 num_frames) {
    for (u32 i = 0; i < num_frames; ++i) {
      set_inputs(action_a, action_b);
      console.run_frame(draw);
      games::step(*row, game, *this);
    }
  }

  void press_select(u32 num_frames) {
    set_inputs(0, 0);
    set_switches(console.machine, true, false, difficulty);
    for (u32 i = 0; i < num_frames; ++i) console.run_frame(draw);
    emulate(0, 0, 1);
  }

  void soft_reset() { emulate(games::kReset, 0, 4); }
  void act(u32 action) {
    if (!game.terminal) emulate(action, 0, 1);
  }

  void reset(u32 mode) {
    paddles = centred_paddles(console.properties());
    if (uses_paddles(console.properties())) {
      set_paddle_resistances(console.machine, console.properties(), paddles.resistance[0],
                             paddles.resistance[1]);
    }
    console.system_reset();
    emulate(0, 0, 60);
    soft_reset();
    games::reset(*row, game);
    games::select_mode(*row, game, mode, *this);
    soft_reset();
    for (const auto& start : row->starts) emulate(start.action, 0, start.frames);
  }
};

TestEnvironment& from(void* handle) { return *static_cast<TestEnvironment*>(handle); }

}  // namespace

extern "C" {

// Null if the cartridge cannot run.
void* console_create(const u8* data, u32 size, u32 game_index) {
  if (!is_supported(identify_rom(data, size).type)) return nullptr;
  return new TestEnvironment(data, size, game_index);
}
void console_destroy(void* handle) { delete &from(handle); }
void console_reset(void* handle, u32 mode, u32 difficulty) {
  from(handle).difficulty = difficulty;
  from(handle).reset(mode);
}
i32 console_act(void* handle, u32 action_a, u32 action_b) {
  from(handle).emulate(action_a, action_b, 1);
  return from(handle).game.reward;
}
void console_draw(void* handle, u32 draw) { from(handle).draw = draw; }
i32 console_lives(void* handle) { return from(handle).game.lives; }
u32 console_terminal(void* handle) { return from(handle).game.terminal; }
u32 console_default_mode(void* handle) { return games::mode_at(*from(handle).row, 0); }
void console_ram(void* handle, u8* ram) { std::memcpy(ram, from(handle).console.machine.ram, 128); }
i32 console_screen_height(void* handle) { return from(handle).console.screen_height(); }
void console_screen(void* handle, u8* pixels) {
  const TestedConsole& console = from(handle).console;
  std::memcpy(pixels, console.screen(), size_t(console.screen_height()) * 160);
}
void console_machine(void* handle, MachineState* machine) {
  *machine = from(handle).console.machine;
}
u32 console_machine_bytes() { return sizeof(MachineState); }
}
