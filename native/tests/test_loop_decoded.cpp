// The fast loops against the plain one: random programs, random places, every cartridge type.
#include <memory>

#include "../core/console.h"
#include "../core/loop_translated.h"
#include "../core/tia_masks.h"
#include "../env/translation/translator.h"
#include "check.h"
#include "random_rom.h"
#include "state_difference.h"

using namespace scanline;

namespace {

constexpr int kNumPrograms = 60, kFramesPerProgram = 25;
constexpr u8 kJam = 0x02;

std::unique_ptr<TestRom> random_rom(CartridgeType type, check::Random& random) {
  Properties properties;
  properties.detect_format = false;
  auto bytes = random_bytes(type, random);
  for (u8& byte : bytes) {
    if (random.one_in(400)) byte = kJam;
  }
  return std::make_unique<TestRom>(type, properties, std::move(bytes));
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

bool same(const ConsoleState& a, const ConsoleState& b) {
  const char* field = state_difference(a, b);
  if (field) std::printf("  %s differs\n", field);
  return field == nullptr;
}

ConsoleState powered_on(const RomImage& rom) {
  ConsoleState state{};
  plug_in_controllers(state.machine, rom.properties);
  visit_cartridge(rom.type, [&](auto policy) {
    reset_machine<decltype(policy)>(state.machine, state.cartridge, rom);
  });
  return state;
}

// Some places are known as targets of jumps, so that there are long blocks and short ones, and
// most frames still go to places without code.
void teach(Translation* translation, u32 num_places, check::Random& random) {
  const int rarity = 1 << random.below(6);
  for (int turn = 0; turn < 4 && translation != nullptr; ++turn) {
    for (u32 place = 0; place < num_places; ++place) {
      if (random.one_in(rarity)) translation->missed(translation, place);
    }
  }
}

void test_program(RomImage rom, check::Random& random) {
  Translator translator(rom);
  rom.translation = translator.translation();
  teach(rom.translation, num_decoded_ops(rom), random);
  ConsoleState state = powered_on(rom);
  for (int frame = 0; frame < kFramesPerProgram; ++frame) {
    shuffle(state.machine, random);
    const ConsoleState expected = run_plain(state, rom);
    const bool equal = same(expected, run_decoded_as<DecodedLoop>(state, rom)) &&
                       same(expected, run_decoded_as<SkippingLoop>(state, rom)) &&
                       same(expected, run_decoded_as<TranslatedLoop>(state, rom));
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
  const auto rom = random_rom(CartridgeType::kF8, random);
  RomImage image = rom->image;
  ConsoleState state = powered_on(image);
  state.machine.partial = 1;
  state.machine.cycles = kMaxFrameCycles;
  CHECK(same(run_plain(state, image), run_decoded_as<DecodedLoop>(state, image)));
  state = powered_on(image);
  image.ops = nullptr;
  CHECK(same(run_plain(state, image), run_decoded_as<DecodedLoop>(state, image)));
}

// Generated code must exist where it can, or all of the above compares the decoded loop.
void test_translates(check::Random& random) {
  const auto rom = random_rom(CartridgeType::k4K, random);
  Translator translator(rom->image);
#if defined(__x86_64__) && defined(__linux__)
  CHECK(translator.translation() != nullptr);
#endif
}

}  // namespace

int main() {
  check::Random random(11);
  for (u32 type = 0; is_supported(CartridgeType(type)); ++type) {
    for (int i = 0; i < kNumPrograms; ++i) {
      test_program(random_rom(CartridgeType(type), random)->image, random);
    }
  }
  test_fallbacks(random);
  test_translates(random);
  return check::result("loop_decoded");
}
