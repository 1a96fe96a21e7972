// test_ale_environment.cpp -- order and number of frames, draws and presses, on a fake console.
//
// That the result equals ALE on real ROMs is tested from Python, against ALE itself.
#include <string>
#include <vector>

#include "../core/console.h"
#include "../env/ale_environment.h"
#include "../games/table.h"
#include "check.h"

using namespace scanline;

namespace {

// Writes down what the lines say at each frame. RAM is zero unless a test changes it.
struct FakeConsole {
  MachineState machine = {};
  Properties rom_properties;
  std::string log;  // X: system reset; S, R: SELECT, RESET held; else the action's letter
  u32 num_unseen = 0;

  explicit FakeConsole(const RomImage& rom) : rom_properties(rom.properties) {}

  const Properties& properties() const { return rom_properties; }
  void system_reset() { log += 'X'; }
  void run_frame(bool seen) {
    log += letter();
    num_unseen += !seen;
  }
  char letter() const {
    if (!(machine.swchb & kSwitchSelect)) return 'S';
    if (!(machine.swchb & kSwitchReset)) return 'R';
    if (machine.fire_lines & 1) return 'F';
    return machine.swcha == 0xFF ? '.' : 'M';
  }
  u8 ram(u8 address) const { return machine.ram[address & 0x7F]; }
  u8 cartridge_ram(u16) const { return 0; }
  i32 screen_height() const { return 210; }
  const u8* screen() const { return nullptr; }
  const u8* previous_screen() const { return nullptr; }
  void show_pictures(i32) {}
  void save(ConsoleSnapshot& snapshot) const { snapshot.machine = machine; }
  void restore(const ConsoleSnapshot& snapshot) { machine = snapshot.machine; }
};

// A stream that a test can foresee, and that counts.
struct Words {
  std::vector<u32>* words;  // taken from the end; 0xFFFFFFFF, never sticky, when none is left
  u32* num_drawn;
  u32 next() {
    ++*num_drawn;
    if (words->empty()) return 0xFFFFFFFF;
    const u32 word = words->back();
    words->pop_back();
    return word;
  }
};

struct Tested {
  using Environment = AleEnvironment<FakeConsole, Words>;

  std::vector<u32> words;
  u32 num_drawn = 0;
  RomImage rom;
  Environment env;

  explicit Tested(games::GameId game, const AleSettings& settings = {})
      : env(rom, games::row_of(game), settings, Words{&words, &num_drawn}) {
    log().clear();
  }

  std::string& log() { return env.console().log; }
  u8& ram(u8 address) { return env.console().machine.ram[address & 0x7F]; }
  std::string reset() {
    log().clear();
    env.reset();
    return log();
  }
};

std::string times(u32 count, char letter) { return std::string(count, letter); }

void test_the_frames_of_a_reset() {
  Tested phoenix(games::GameId::phoenix);
  CHECK(phoenix.reset() == "X" + times(60, '.') + "RRRR" + "RRRR");
  Tested pong(games::GameId::freeway);
  CHECK(pong.reset() == "X" + times(60, '.') + "RRRR" + "RRRR" + "RRRR");
  Tested skiing(games::GameId::skiing);
  CHECK(skiing.reset() == "X" + times(60, '.') + "RRRRRRRR" + times(16, 'M'));
  Tested lancelot(games::GameId::sir_lancelot);
  CHECK(lancelot.reset() == "X" + times(60, '.') + "RRRRRRRR" + "RM");
  CHECK(lancelot.num_drawn == 0 && lancelot.env.episode_frame_number() == 0);
}

void test_select_presses_count_as_frames() {
  Tested yars(games::GameId::yars_revenge);  // its byte shows mode 0 at once
  CHECK(yars.reset() == "X" + times(60, '.') + "RRRR" + "SS." + "RRRR" + "RRRR" + "F");
  CHECK(yars.env.episode_frame_number() == 1 && yars.env.frame_number() == 2);
}

void test_two_draws_a_frame_decide_who_is_heard() {
  Tested seaquest(games::GameId::seaquest, {0.25f, 0});
  const u32 quarter = 0x40000000;
  seaquest.words = {0, quarter - 1, 0, quarter, 0, quarter - 1};  // from the end: B, A of 3, 2, 1
  seaquest.env.act(games::kFire);
  seaquest.env.act(games::kFire);
  seaquest.env.act(games::kNoop);
  CHECK(seaquest.log() == ".FF" && seaquest.num_drawn == 6);
  seaquest.reset();
  seaquest.log().clear();
  seaquest.words = {0, 0};
  seaquest.env.act(games::kFire);
  CHECK(seaquest.log() == ".");  // a reset lets go
}

void test_what_a_game_forbids_is_a_noop() {
  Tested skiing(games::GameId::skiing, {0.0f, 0});
  skiing.env.act(games::kFire);
  skiing.env.act(games::kLeft);
  skiing.env.act(99);
  CHECK(skiing.log() == ".M.");
}

void test_nothing_moves_after_the_end_but_the_draws() {
  Tested seaquest(games::GameId::seaquest, {0.0f, 0});
  seaquest.ram(0xA3) = 1;
  seaquest.env.act(games::kNoop);
  CHECK(seaquest.env.game_over() && seaquest.env.lives() == 0);
  seaquest.env.act(games::kNoop);
  CHECK(seaquest.log() == "." && seaquest.num_drawn == 4 && seaquest.env.frame_number() == 1);
}

void test_a_limit_truncates() {
  Tested seaquest(games::GameId::seaquest, {0.0f, 2});
  for (int i = 0; i < 4; ++i) seaquest.env.act(games::kNoop);
  CHECK(seaquest.log() == ".." && seaquest.env.truncated() && !seaquest.env.game_over());
  seaquest.reset();
  CHECK(!seaquest.env.truncated() && seaquest.env.frame_number() == 2);
}

void test_switches_are_set_with_the_next_frame() {
  Tested seaquest(games::GameId::seaquest);
  const auto switches = [&] { return seaquest.env.console().machine.swchb & 0xC0; };
  seaquest.env.set_difficulty(3);
  CHECK(switches() == 0);
  seaquest.env.act(games::kNoop);
  CHECK(switches() == 0xC0);
}

void test_a_mode_that_never_shows_is_reported() {
  Tested pong(games::GameId::freeway);
  pong.env.set_mode(5);
  pong.env.reset();
  CHECK(pong.env.mode_failed());
}

}  // namespace

int main() {
  test_the_frames_of_a_reset();
  test_select_presses_count_as_frames();
  test_two_draws_a_frame_decide_who_is_heard();
  test_what_a_game_forbids_is_a_noop();
  test_nothing_moves_after_the_end_but_the_draws();
  test_a_limit_truncates();
  test_switches_are_set_with_the_next_frame();
  test_a_mode_that_never_shows_is_reported();
  return check::result("test_ale_environment");
}
