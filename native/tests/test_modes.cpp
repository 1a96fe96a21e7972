// test_modes.cpp -- lists of modes, and the presses that choose one, on a pretended menu.
#include <string>

#include "../games/modes.h"
#include "../games/table.h"
#include "check.h"

using namespace scanline;
using namespace scanline::games;

namespace {

// A console whose SELECT counts one byte up, modulo the menu's length, and remembers everything.
struct Menu {
  u16 address;
  u32 length;
  u8 value = 0;
  std::string log;  // P<frames>: SELECT, R: RESET, N: NOOP

  u8 ram(u8) const { return value; }
  u8 cartridge(u16 asked) const { return asked == address ? value : 0; }
  void press_select(u32 frames) {
    value = static_cast<u8>((value + 1) % length);
    log += "P" + std::to_string(frames);
  }
  void soft_reset() { log += "R"; }
  void act(u32 action) { log += action == kNoop ? "N" : "A"; }
  u32 random() { return 0; }
};

void test_lists() {
  const GameRow& cube = row_of(GameId::video_cube);
  CHECK(num_modes(cube) == 153 && mode_at(cube, 0) == 0 && mode_at(cube, 3) == 100);
  CHECK(mode_at(cube, 152) == 5002 && !has_mode(cube, 3) && !has_mode(cube, 5100));
  const GameRow& asteroids = row_of(GameId::asteroids);
  CHECK(num_modes(asteroids) == 33 && mode_at(asteroids, 32) == 128);
  const GameRow& pitfall = row_of(GameId::pitfall);
  CHECK(num_modes(pitfall) == 1 && mode_at(pitfall, 0) == 0);
  CHECK(has_difficulty(row_of(GameId::backgammon), 3) &&
        !has_difficulty(row_of(GameId::backgammon), 0) && !has_difficulty(pitfall, 4));
}

std::string presses(GameId id, u32 mode, u32 length) {
  const GameRow& row = row_of(id);
  GameState state = {};
  Menu menu{row.select.address, length, 0, {}};
  CHECK(select_mode(row, state, mode, menu));
  return menu.log;
}

void test_presses() {
  CHECK(presses(GameId::pong, 1, 50) == "P2R");
  CHECK(presses(GameId::pitfall, 0, 1) == "");
  CHECK(presses(GameId::air_raid, 2, 9) == "P20P10R");
  CHECK(presses(GameId::gopher, 2, 4) == "RP5P5R");
  CHECK(presses(GameId::frogger, 1, 7) == "P2P2P2R");
  CHECK(presses(GameId::klax, 2, 3) == "P2P2R");
  CHECK(presses(GameId::video_checkers, 11, 26).size() == 2 * 17 + 1);
  CHECK(presses(GameId::berzerk, 1, 19) == std::string(20, 'N') + "P2R");
}

void test_a_menu_without_the_mode_is_given_up() {
  GameState state = {};
  Menu menu{0, 1, 0, {}};
  CHECK(!select_mode(row_of(GameId::pong), state, 1, menu));
}

void test_modes_that_rules_remember() {
  GameState state = {};
  Menu menu{0, 256, 0, {}};
  select_mode(row_of(GameId::video_checkers), state, 12, menu);
  CHECK(state.extra[0] == 1);
  select_mode(row_of(GameId::video_checkers), state, 3, menu);
  CHECK(state.extra[0] == 0);
  select_mode(row_of(GameId::demon_attack), state, 1, menu);
  CHECK(state.end_masked == 1);
}

}  // namespace

int main() {
  test_lists();
  test_presses();
  test_a_menu_without_the_mode_is_given_up();
  test_modes_that_rules_remember();
  return check::result("test_modes");
}
