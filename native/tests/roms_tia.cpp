// roms_tia.cpp -- MaskTia against PlainTia on real ROMs: states and pictures after every frame.
//
// Takes a number of frames and ROM files; drives four consoles with the same random joystick. No
// unit test: needs ROMs, which are not ours to ship.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "../core/console.h"
#include "../core/rom_identify.h"
#include "../core/tia_masks.h"
#include "check.h"

using namespace scanline;

namespace {

using MaskConsole = BasicConsole<PlainLoop, MaskTia>;

std::vector<u8> bytes_of(const char* path) {
  std::vector<u8> bytes(1 << 17);
  FILE* file = std::fopen(path, "rb");
  bytes.resize(file ? std::fread(bytes.data(), 1, bytes.size(), file) : 0);
  if (file) std::fclose(file);
  return bytes;
}

void set_inputs(MachineState& machine, const Properties& properties, int action, bool reset) {
  set_joysticks(machine, properties, u32(action), 0);
  set_switches(machine, false, reset, 0);
}

bool same(const MachineState& a, const MachineState& b) {
  return std::memcmp(&a, &b, sizeof(MachineState)) == 0;
}

// `mixed` draws every third frame only: its state must not notice.
bool frames_are_equal(const RomImage& rom, int num_frames) {
  auto plain = std::make_unique<Console>(rom);
  auto drawn = std::make_unique<MaskConsole>(rom);
  auto unseen = std::make_unique<MaskConsole>(rom);
  auto mixed = std::make_unique<MaskConsole>(rom);
  check::Random random(7);
  int action = 0;
  for (int frame = 0; frame < num_frames; ++frame) {
    if (frame % 4 == 0) action = random.below(18);
    const bool reset = frame >= 60 && frame < 64;
    set_inputs(plain->machine, plain->properties(), action, reset);
    set_inputs(drawn->machine, plain->properties(), action, reset);
    set_inputs(unseen->machine, plain->properties(), action, reset);
    set_inputs(mixed->machine, plain->properties(), action, reset);
    plain->run_frame(true);
    drawn->run_frame(true);
    unseen->run_frame(false);
    mixed->run_frame(frame % 3 == 0);
    if (!same(plain->machine, drawn->machine) || !same(plain->machine, unseen->machine) ||
        !same(plain->machine, mixed->machine) ||
        std::memcmp(plain->screen(), drawn->screen(), size_t(plain->screen_height()) * 160) != 0) {
      std::printf("  first difference in frame %d\n", frame);
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int num_frames = argc > 1 ? std::atoi(argv[1]) : 0;
  for (int i = 2; i < argc; ++i) {
    const std::vector<u8> bytes = bytes_of(argv[i]);
    const RomImage rom = identify_rom(bytes.data(), u32(bytes.size()));
    const bool equal = is_supported(rom.type) && frames_are_equal(rom, num_frames);
    if (!equal) std::printf("%s differs\n", argv[i]);
    CHECK(equal);
  }
  return check::result("roms_tia");
}
