// The decoded loops against the plain one: random programs, random places, every cartridge type.
#include <cstring>
#include <vector>

#include "../core/console.h"
#include "../core/loop_decoded.h"
#include "../core/tia_masks.h"
#include "check.h"

using namespace scanline;

namespace {

constexpr int kNumPrograms = 60, kFramesPerProgram = 25;

struct Program {
  std::vector<u8> bytes;
  std::vector<DecodedOp> ops;
  RomImage image;
};

u32 size_of(CartridgeType type) {
  switch (type) {
    case CartridgeType::k2K:
      return 2048;
    case CartridgeType::k4K:
      return 4096;
    case CartridgeType::kF6:
    case CartridgeType::kF6SC:
      return 16384;
    case CartridgeType::kDPC:
      return 10240;
    default:
      return 8192;
  }
}

bool is_jam(u8 code) { return (code & 0x0F) == 2 && (code < 0x80 || (code & 0x10)); }

// A byte of zero-page address, absolute high byte or code, each likely to mean something.
u8 likely_byte(check::Random& random) {
  static constexpr u8 kPages[6] = {0xF0, 0xFF, 0x02, 0x00, 0x01, 0xD1};
  switch (random.below(4)) {
    case 0:
      return u8(0x80 + random.below(128));
    case 1:
      return u8(random.below(0x40));
    case 2:
      return kPages[random.below(6)];
    default:
      return u8(random.below(256));
  }
}

// Waiting loops and bank switches, which random bytes hardly make.
void plant_idioms(std::vector<u8>& bytes, check::Random& random) {
  static constexpr u8 kIdioms[7][5] = {
      {0xAD, 0x84, 0x02, 0xD0, 0xFB}, {0xAE, 0x84, 0x02, 0x10, 0xFB},
      {0xAC, 0x86, 0x02, 0x30, 0xFB}, {0x2C, 0x85, 0x02, 0x10, 0xFB},
      {0xCA, 0xD0, 0xFD, 0x88, 0x10}, {0xAD, 0xF8, 0xFF, 0x8D, 0x96},
      {0x8D, 0xE2, 0xFF, 0x85, 0x02},
  };
  for (u32 i = 0; i < bytes.size() / 64; ++i) {
    const u32 place = u32(random.below(int(bytes.size()) - 8));
    std::memcpy(&bytes[place], kIdioms[random.below(7)], 5);
  }
}

Program random_program(CartridgeType type, check::Random& random) {
  Program program;
  program.bytes.resize(size_of(type));
  for (u8& byte : program.bytes) {
    do {
      byte = random.one_in(2) ? likely_byte(random) : u8(random.below(256));
    } while (is_jam(byte) && !random.one_in(20));
  }
  plant_idioms(program.bytes, random);
  program.image.bytes = program.bytes.data();
  program.image.size_bytes = u32(program.bytes.size());
  program.image.type = type;
  program.image.properties.detect_format = false;
  program.ops.resize(num_decoded_ops(program.image));
  decode_rom(program.image, program.ops.data());
  program.image.ops = program.ops.data();
  return program;
}

// Somewhere else in the program, with other registers and memory.
void shuffle(MachineState& machine, check::Random& random) {
  machine.pc = u16(random.below(0x10000) | (random.one_in(10) ? 0 : 0x1000));
  machine.a = u8(random.below(256));
  machine.x = u8(random.below(256));
  machine.y = u8(random.below(256));
  machine.sp = random.one_in(3) ? u8(random.below(256)) : 0xFF;
  machine.p = u8(random.below(256) | 0x30);
  machine.jammed = 0;
  for (u8& byte : machine.ram) {
    if (random.one_in(3)) byte = likely_byte(random);
  }
}

// One frame attempt. AnyCartridge keeps the plain loop from being compiled nine times.
template <class Loop, class Cartridge>
ConsoleState run_as(ConsoleState state, const RomImage& rom) {
  MaskTia<NoPixels> tia(state.machine, rom.properties, NoPixels());
  run_frame<Loop, Cartridge>(state.machine, state.cartridge, rom, tia);
  return state;
}

ConsoleState run_plain(const ConsoleState& state, const RomImage& rom) {
  return run_as<PlainLoop, AnyCartridge>(state, rom);
}

template <class Loop>
ConsoleState run_decoded_as(const ConsoleState& state, const RomImage& rom) {
  ConsoleState result{};
  visit_cartridge(rom.type,
                  [&](auto policy) { result = run_as<Loop, decltype(policy)>(state, rom); });
  return result;
}

// Prints the first field that differs.
bool same(const ConsoleState& a, const ConsoleState& b) {
#define SCANLINE_SCALAR(type, name) \
  if (a.machine.name != b.machine.name) return std::printf("  %s differs\n", #name), false;
#define SCANLINE_ARRAY(type, name, count)                                      \
  if (std::memcmp(a.machine.name, b.machine.name, sizeof a.machine.name) != 0) \
    return std::printf("  %s differs\n", #name), false;
  SCANLINE_STATE_FIELDS(SCANLINE_SCALAR, SCANLINE_ARRAY)
#undef SCANLINE_SCALAR
#undef SCANLINE_ARRAY
  return std::memcmp(&a, &b, sizeof a) == 0;
}

ConsoleState powered_on(const RomImage& rom) {
  ConsoleState state{};
  plug_in_controllers(state.machine, rom.properties);
  visit_cartridge(rom.type, [&](auto policy) {
    reset_machine<decltype(policy)>(state.machine, state.cartridge, rom);
  });
  return state;
}

void test_program(const RomImage& rom, check::Random& random) {
  ConsoleState state = powered_on(rom);
  for (int frame = 0; frame < kFramesPerProgram; ++frame) {
    shuffle(state.machine, random);
    const ConsoleState expected = run_plain(state, rom);
    const bool equal = same(expected, run_decoded_as<DecodedLoop>(state, rom)) &&
                       same(expected, run_decoded_as<SkippingLoop>(state, rom));
    CHECK(equal);
    if (!equal) {
      std::printf("  %s, frame %d from %04X\n", cartridge_type_name(rom.type), frame,
                  state.machine.pc);
      return;
    }
    state = expected;
  }
}

// Without decoded instructions, and with a clock close to its end, the loop still works.
void test_fallbacks(check::Random& random) {
  Program program = random_program(CartridgeType::kF8, random);
  ConsoleState state = powered_on(program.image);
  state.machine.partial = 1;
  state.machine.cycles = 0xFFFFFF00;
  CHECK(same(run_plain(state, program.image), run_decoded_as<DecodedLoop>(state, program.image)));
  state = powered_on(program.image);
  program.image.ops = nullptr;
  CHECK(same(run_plain(state, program.image), run_decoded_as<DecodedLoop>(state, program.image)));
}

}  // namespace

int main() {
  check::Random random(11);
  for (u32 type = 0; is_supported(CartridgeType(type)); ++type) {
    for (int i = 0; i < kNumPrograms; ++i) {
      const Program program = random_program(CartridgeType(type), random);
      test_program(program.image, random);
    }
  }
  test_fallbacks(random);
  return check::result("loop_decoded");
}
