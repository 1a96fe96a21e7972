// test_state_check.cpp -- the bounds of a console's fields: what emulation reaches is inside, what
// would do harm is not.
//
// Every field with every boundary value is the business of fuzz_snapshots.cpp.
#include <memory>
#include <string>

#include "../core/console.h"
#include "../core/state_check.h"
#include "../env/env_random.h"
#include "../env/episode.h"
#include "../games/game_state.h"
#include "../games/table.h"
#include "check.h"
#include "random_rom.h"

using namespace scanline;

namespace {

bool is(const WrongField& wrong, const char* name) {
  return wrong && std::string(wrong.name) == name;
}

template <class Change>
WrongField after(const ConsoleSnapshot& snapshot, const TestRom& rom, Change change) {
  auto changed = std::make_unique<ConsoleSnapshot>(snapshot);
  change(*changed);
  return wrong_field(*changed, rom.image.type, rom.image.properties);
}

void test_states_of_a_console() {
  Properties properties;
  properties.detect_format = false;
  for (u32 i = 0; is_supported(CartridgeType(i)); ++i) {
    check::Random random(i);
    const CartridgeType type = CartridgeType(i);
    const TestRom rom(type, properties, random_bytes(type, random));
    auto console = std::make_unique<Console>(rom.image);
    auto snapshot = std::make_unique<ConsoleSnapshot>();
    for (int frame = 0; frame < 20; ++frame) {
      if (frame == 10) console->system_reset();
      console->save(*snapshot);
      CHECK(!wrong_field(*snapshot, type, properties));
      console->run_frame(false);
    }
    CHECK(is(after(*snapshot, rom, [](auto& s) { s.machine.bank[0] = 0x7F; }), "bank"));
    CHECK(is(after(*snapshot, rom, [](auto& s) { s.machine.bank[3] = 8; }), "bank"));
    CHECK(is(after(*snapshot, rom, [](auto& s) { s.machine.unused[1] = 1; }), "unused"));
    CHECK(is(after(*snapshot, rom, [](auto& s) { s.machine.cycles = kMaxCycles + 1; }), "cycles"));
    CHECK(!after(*snapshot, rom, [](auto& s) { s.machine.cycles = kMaxCycles; }));
    CHECK(is(after(*snapshot, rom, [](auto& s) { s.cartridge.counter[7] = 0x800; }), "counter"));
    CHECK(is(after(*snapshot, rom, [](auto& s) { s.cartridge.music_clock_fraction = 0.0 / 0.0; }),
             "music_clock_fraction"));
  }
}

void test_clocks_depend_on_each_other() {
  const Properties properties;
  MachineState machine{};
  const i32 start = kLineClocks * properties.y_start;
  const auto wrong = [&] { return wrong_field<Cartridge2K>(machine, properties); };
  CHECK(!wrong());
  machine.last_clock = start + kLineClocks * properties.height;
  CHECK(!wrong());
  ++machine.last_clock;
  CHECK(is(wrong(), "last_clock"));
  machine.last_clock = start - 1;
  CHECK(!wrong());  // a reset in the middle of a frame draws from line 0 on
  machine.draw_origin_clock = start;
  CHECK(is(wrong(), "last_clock"));
  machine.last_clock = start;
  CHECK(!wrong());
  machine.draw_origin_clock = machine.last_clock = start + 1;
  CHECK(is(wrong(), "draw_origin_clock"));
}

void test_episodes() {
  EnvSettings settings;
  settings.stack = 3;
  EpisodeState state{};
  const auto wrong = [&] { return wrong_field(state, settings); };
  CHECK(!wrong());
  state.started = 1;
  CHECK(is(wrong(), "depth"));
  state.depth = 3;
  CHECK(!wrong());
  state.pending = 2;
  CHECK(is(wrong(), "pending"));
  settings.life_loss = LifeLoss::kNoopFireUp;
  CHECK(!wrong());
  state.draws[0] = kMaxSkippedWords + 1;
  CHECK(!wrong());  // counted by Philox, which skips nothing
  settings.random_stream = RandomStream::kAle;
  CHECK(is(wrong(), "draws"));
}

void test_random_streams() {
  const EnvRandom random(RandomStream::kAle, 1, EnvStream{});
  CHECK(!wrong_field(random, RandomStream::kAle));
  CHECK(is(wrong_field(random, RandomStream::kCounter), "is_ale_"));
}

// What a row can read from memory is inside of the bounds of a score.
void test_scores_of_all_games() {
  for (u32 i = 0; i < games::kNumGames; ++i) {
    const games::Score& score = games::row_of(static_cast<games::GameId>(i)).score;
    i64 most = 0;
    for (u32 t = 0; t < score.num_terms; ++t) {
      const i64 weight = score.terms[t].weight;
      most += 255 * (weight < 0 ? -weight : weight);
    }
    CHECK(most <= games::kMaxTotal);
  }
}

void test_counters_stay_positive() {
  CHECK(counted(41) == 42);
  CHECK(counted(0x7FFFFFFF) == 0);
  CHECK(counted(0x7FFFFFFE, 4) == 2);
}

}  // namespace

int main() {
  test_states_of_a_console();
  test_clocks_depend_on_each_other();
  test_episodes();
  test_random_streams();
  test_scores_of_all_games();
  test_counters_stay_positive();
  return check::result("test_state_check");
}
