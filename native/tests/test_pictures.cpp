// test_pictures.cpp -- pictures of seen frames equal those of a console that draws every frame.
//
// Consoles run random accesses that depend on the machine's state only, short and partial frames
// among them, under every pattern of seen and unseen frames.
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "../core/pictures.h"
#include "../core/tia_masks.h"
#include "check.h"
#include "random_program.h"

using namespace scanline;

namespace {

u8 grey_table[256];

// The attempt's accesses follow from a counter in RAM, so that a redrawn frame repeats them.
// Most attempts are plain 262 lines; `wildness` in 16 are short, long, cut or partial.
struct Machine {
  std::uint64_t seed;
  int wildness;
  const Properties& properties;

  template <class Sink>
  void operator()(MachineState& machine, CartridgeState&, Sink sink) const {
    MaskTia<Sink> tia(machine, properties, sink);
    run_attempt(tia, machine);
  }

  template <class Tia>
  void run_attempt(Tia& tia, MachineState& machine) const {
    u32 counter;
    std::memcpy(&counter, machine.ram, sizeof(counter));
    ++counter;
    std::memcpy(machine.ram, &counter, sizeof(counter));
    check::Random random(seed * 1000 + counter + machine.swcha * 77u);
    std::vector<Access> accesses = RandomProgram(random.bits()).frame();
    if (random.below(16) >= wildness) accesses = whole_frame(accesses);
    run_accesses(tia, machine, accesses);
  }

  static std::vector<Access> whole_frame(const std::vector<Access>& accesses) {
    std::vector<Access> result = {{false, VSYNC, 2, 0}};
    for (const Access& access : accesses) {
      if (access.address != VSYNC || access.is_read) result.push_back(access);
    }
    for (int line = 0; line < 300; ++line) result.push_back({false, WSYNC, 0, 3});
    result.resize(std::min<size_t>(result.size(), 4000));
    for (int line = 0; line < 300; ++line) result.push_back({false, WSYNC, 0, 3});
    return result;
  }
};

struct Tally {
  long partial = 0, incomplete = 0, complete = 0;
} tally;

template <class Map>
void seen_pictures_are_equal(std::uint64_t seed, int wildness, Map map,
                             std::function<bool(int)> is_seen) {
  const Properties properties;
  const Machine run{seed, wildness, properties};
  MachineState always{}, lazy{};
  CartridgeState cartridge{};
  std::vector<u8> drawn(2 * kPictureBytes);
  auto pictures = std::make_unique<Pictures<Map>>(properties, map);
  check::Random random(seed);
  for (int frame = 0; frame < 60; ++frame) {
    if (random.one_in(25)) {
      for (MachineState* machine : {&always, &lazy}) {
        machine->cycles = 0;
        reset_tia(*machine);
      }
      std::fill(drawn.begin(), drawn.end(), u8(0));
      pictures->clear();
    }
    always.swcha = lazy.swcha = u8(random.below(256));
    MaskTia<Pixels<>> tia(always, properties, Pixels<>(drawn.data()));
    run.run_attempt(tia, always);
    pictures->run_frame(lazy, cartridge, is_seen(frame), run);
    CHECK(std::memcmp(&always, &lazy, sizeof(MachineState)) == 0);
    (always.partial                        ? tally.partial
     : drew_everything(always, properties) ? tally.complete
                                           : tally.incomplete)++;
    if (!is_seen(frame)) continue;
    for (int which = 0; which < (random.one_in(3) ? 2 : 1); ++which) {
      const u8* expected = drawn.data() + (which ^ always.buffer_parity) * kPictureBytes;
      const u8* ours = which ? pictures->previous(lazy, run) : pictures->current(lazy, run);
      bool equal = true;
      for (int i = 0; i < properties.height * 160; ++i) equal &= ours[i] == map(expected[i]);
      CHECK(equal);
    }
  }
}

void all_skip_patterns(std::uint64_t seed, int wildness) {
  for (int skip = 1; skip <= 8; ++skip) {
    seen_pictures_are_equal(seed, wildness, IndexMap(),
                            [skip](int frame) { return frame % skip == skip - 1; });
    seen_pictures_are_equal(seed, wildness, TableMap{grey_table},
                            [skip](int frame) { return frame % skip >= skip - 2; });
  }
  check::Random random(seed);
  std::vector<bool> seen;
  for (int frame = 0; frame < 60; ++frame) seen.push_back(random.one_in(3));
  seen_pictures_are_equal(seed, wildness, TableMap{grey_table},
                          [&seen](int frame) { return bool(seen[size_t(frame)]); });
}

}  // namespace

int main() {
  for (int i = 0; i < 256; ++i) grey_table[i] = u8(i * 7 / 9 + 1);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (int wildness : {0, 1, 4, 16}) all_skip_patterns(seed, wildness);
  }
  std::printf("attempts: %ld complete, %ld incomplete, %ld partial\n", tally.complete,
              tally.incomplete, tally.partial);
  CHECK(tally.complete > 1000 && tally.incomplete > 300 && tally.partial > 300);
  return check::result("pictures");
}
