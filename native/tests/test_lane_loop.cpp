// The loop of devices against the plain one: random programs, random places, every cartridge type.
#include <memory>

#include "../core/console.h"
#include "../core/tia_masks.h"
#include "../gpu/control_words.h"
#include "../gpu/lane_loop.h"
#include "check.h"
#include "random_rom.h"
#include "state_difference.h"

using namespace scanline;

namespace {

constexpr int kNumPrograms = 60, kFramesPerProgram = 25;
constexpr u8 kJam = 0x02;

// An image with its control words behind it, as a device holds it.
std::vector<u64> device_image(const RomImage& rom) {
  std::vector<u64> buffer(gpu::control_words_offset(rom.size_bytes) / 8 + rom.size_bytes);
  std::memcpy(buffer.data(), rom.bytes, rom.size_bytes);
  const auto words = gpu::control_words(rom);
  std::memcpy(&buffer[gpu::control_words_offset(rom.size_bytes) / 8], words.data(),
              words.size() * sizeof words[0]);
  return buffer;
}

template <class Loop, class Cartridge, class Sink>
ConsoleState run_as(ConsoleState state, const RomImage& rom, Sink sink) {
  MaskTia<Sink> tia(state.machine, rom.properties, sink);
  run_frame<Loop, Cartridge>(state.machine, state.cartridge, rom, tia);
  return state;
}

struct Frame {
  ConsoleState state{};
  std::vector<u8> pictures = std::vector<u8>(2 * kPictureBytes);
};

template <class Loop, class Cartridge>
Frame run(const Frame& from, const RomImage& rom, bool draws) {
  Frame to = from;
  to.state = draws ? run_as<Loop, Cartridge>(from.state, rom, Pixels<>(to.pictures.data()))
                   : run_as<Loop, Cartridge>(from.state, rom, NoPixels());
  return to;
}

Frame run_by_lane(const Frame& from, const RomImage& rom, bool draws) {
  Frame to;
  visit_cartridge(
      rom.type, [&](auto policy) { to = run<gpu::LaneLoop, decltype(policy)>(from, rom, draws); });
  return to;
}

bool same(const Frame& a, const Frame& b) {
  const char* field = state_difference(a.state, b.state);
  if (field) std::printf("  %s differs\n", field);
  return field == nullptr && a.pictures == b.pictures;
}

void test_program(const RomImage& rom, check::Random& random) {
  const std::vector<u64> buffer = device_image(rom);
  RomImage on_device = rom;
  on_device.bytes = reinterpret_cast<const u8*>(buffer.data());
  Frame frame;
  plug_in_controllers(frame.state.machine, rom.properties);
  visit_cartridge(rom.type, [&](auto policy) {
    reset_machine<decltype(policy)>(frame.state.machine, frame.state.cartridge, rom);
  });
  for (int number = 0; number < kFramesPerProgram; ++number) {
    shuffle(frame.state.machine, random);
    const bool draws = random.one_in(3);
    const Frame expected = run<PlainLoop, AnyCartridge>(frame, rom, draws);
    const bool equal = same(expected, run_by_lane(frame, on_device, draws));
    CHECK(equal);
    if (!equal) {
      std::printf("  %s, frame %d from %04X\n", cartridge_type_name(rom.type), number,
                  frame.state.machine.pc);
      return;
    }
    frame = expected;
  }
}

}  // namespace

int main() {
  check::Random random(19);
  for (u32 type = 0; is_supported(CartridgeType(type)); ++type) {
    for (int i = 0; i < kNumPrograms; ++i) {
      Properties properties;
      properties.detect_format = false;
      auto bytes = random_bytes(CartridgeType(type), random);
      for (u8& byte : bytes) {
        if (random.one_in(400)) byte = kJam;
      }
      const TestRom rom(CartridgeType(type), properties, std::move(bytes));
      test_program(rom.image, random);
    }
  }
  return check::result("lane_loop");
}
