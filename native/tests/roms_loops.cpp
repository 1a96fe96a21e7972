// roms_loops.cpp -- the fast loops against the plain one on real ROMs, state by state.
//
// Takes a number of frames and ROM files; drives four consoles with the same random joystick and
// compares their states after every frame. No unit test: needs ROMs, which are not ours to ship.
#include <cstdlib>
#include <memory>
#include <vector>

#include "../core/console.h"
#include "../core/loop_translated.h"
#include "../core/tia_masks.h"
#include "../env/owned_rom.h"
#include "check.h"
#include "state_difference.h"

using namespace scanline;

namespace {

std::unique_ptr<OwnedRom> load(const char* path) {
  std::vector<u8> bytes(1 << 17);
  FILE* file = std::fopen(path, "rb");
  bytes.resize(file ? std::fread(bytes.data(), 1, bytes.size(), file) : 0);
  if (file) std::fclose(file);
  return std::make_unique<OwnedRom>(bytes);
}

template <class ConsoleType>
ConsoleState step(ConsoleType& console, int action, int frame) {
  set_joysticks(console.machine, console.properties(), u32(action), 0);
  set_switches(console.machine, frame % 700 == 20, frame % 900 < 4, 0);
  console.run_frame(false);
  return console.state();
}

bool report(const char* which, const char* field, int frame) {
  if (field) std::printf("  %s loop: %s differs in frame %d\n", which, field, frame);
  return field == nullptr;
}

bool frames_are_equal(const RomImage& rom, int num_frames) {
  auto plain = std::make_unique<BasicConsole<PlainLoop, MaskTia>>(rom);
  auto decoded = std::make_unique<BasicConsole<DecodedLoop, MaskTia>>(rom);
  auto skipping = std::make_unique<BasicConsole<SkippingLoop, MaskTia>>(rom);
  auto translated = std::make_unique<BasicConsole<TranslatedLoop, MaskTia>>(rom);
  check::Random random(7);
  int action = 0;
  for (int frame = 0; frame < num_frames; ++frame) {
    if (random.one_in(8)) action = random.below(18);
    const ConsoleState expected = step(*plain, action, frame);
    if (!report("decoded", state_difference(expected, step(*decoded, action, frame)), frame))
      return false;
    if (!report("skipping", state_difference(expected, step(*skipping, action, frame)), frame))
      return false;
    if (!report("translated", state_difference(expected, step(*translated, action, frame)), frame))
      return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int num_frames = argc > 1 ? std::atoi(argv[1]) : 0;
  for (int i = 2; i < argc; ++i) {
    const auto rom = load(argv[i]);
    const bool equal = rom->can_run() && frames_are_equal(rom->image(), num_frames);
    if (!equal) std::printf("%s differs\n", argv[i]);
    CHECK(equal);
  }
  return check::result("roms_loops");
}
