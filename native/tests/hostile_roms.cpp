// hostile_roms.cpp -- the console of the product on cartridges that want to break it.
//
//   hostile_roms FRAMES TYPE|all ROM...
//
// For each cartridge type runs at least FRAMES frames: half of the cartridges are damaged copies of
// the ROMs given, half are random bytes without opcodes that jam. Inputs are random, and so are
// resets, snapshots, jumps to anywhere and clocks far out. Some cartridges run next to the plain
// loop and the plain TIA and are compared with them frame by frame; what those executed is the
// coverage that is printed, a lower bound of the whole. Meant for a build with sanitizers, which
// end the program at the first report; each cartridge depends on its number alone.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "../core/log_sink.h"
#include "../core/rom_identify.h"
#include "../core/tia_masks.h"
#include "../env/fast_console.h"
#include "../env/seen_console.h"
#include "../env/translation/translator.h"
#include "check.h"
#include "random_rom.h"
#include "state_difference.h"
#include "traced_loop.h"

using namespace scanline;

namespace {

using Tested = SeenConsole<FastConsole>;

constexpr int kFramesPerCartridge = 120;
constexpr int kComparedOneIn = 20;         // cartridges
constexpr long kMaxComparedFrames = 8000;  // of each type: the reference is slow
constexpr int kProgressFrames = 100000;

struct RealRom {
  std::vector<u8> bytes;
  RomImage image;
};

struct Totals {
  long frames = 0, cartridges = 0, seen = 0, compared = 0, jams = 0, partial = 0;
  Coverage coverage;
};

// The slow console: runs every frame from the tested one's state and draws it.
class Reference {
 public:
  explicit Reference(const RomImage& rom, const Properties& properties)
      : rom_(rom), properties_(properties), pictures(2 * kPictureBytes) {}

  void run_frame(ConsoleState& state) {
    PlainTia<Pixels<>> tia(state.machine, properties_, Pixels<>(pictures.data()));
    scanline::run_frame<TracingLoop, AnyCartridge>(state.machine, state.cartridge, rom_, tia);
  }

  // The same frame once more into a log; the state must not notice.
  void log_frame(ConsoleState& state) {
    MaskTia<Log> tia(state.machine, properties_, Log(&log_));
    scanline::run_frame<PlainLoop, AnyCartridge>(state.machine, state.cartridge, rom_, tia);
  }

  const u8* screen(const MachineState& machine) const {
    return pictures.data() + (machine.buffer_parity ? kPictureBytes : 0);
  }

 private:
  const RomImage& rom_;
  Properties properties_;
  PictureLog log_;

 public:
  std::vector<u8> pictures;
};

// One cartridge in the tested console, and sometimes in the reference.
class Ordeal {
 public:
  Ordeal(const TestRom& rom, check::Random& random, bool compared, Totals& totals)
      : console_(std::make_unique<Tested>(rom.image)),
        type_(rom.image.type),
        random_(random),
        totals_(totals) {
    if (compared) reference_ = std::make_unique<Reference>(rom.image, console_->properties());
    if (random.one_in(2)) shuffle(console_->machine, random);
  }

  void run(int num_frames) {
    for (int frame = 0; frame < num_frames; ++frame) {
      disturb();
      choose_inputs();
      one_frame(random_.one_in(3));
      if (!console_->machine.jammed) continue;
      ++totals_.jams;
      if (random_.one_in(2)) return;
      shuffle(console_->machine, random_);
    }
  }

 private:
  void one_frame(bool seen) {
    const ConsoleState start = console_->state();
    console_->run_frame(seen);
    ++totals_.frames;
    totals_.seen += seen;
    totals_.partial += console_->machine.partial;
    const bool late = !seen && random_.one_in(8);
    if (late) console_->show_pictures(1 + random_.below(2));
    if (reference_) compare(start, seen || late);
  }

  void compare(const ConsoleState& start, bool picture) {
    ConsoleState expected = start, logged = start;
    reference_->run_frame(expected);
    reference_->log_frame(logged);
    const bool states_equal = state_difference(expected, console_->state()) == nullptr;
    const bool logged_equal = state_difference(expected, logged) == nullptr;
    const bool pictures_equal = !picture || differing_row(expected.machine) < 0;
    CHECK(states_equal);
    CHECK(logged_equal);
    CHECK(pictures_equal);
    if (!states_equal || !logged_equal || !pictures_equal) describe(start, expected);
    ++totals_.compared;
  }

  i32 differing_row(const MachineState& machine) const {
    const u8 *expected = reference_->screen(machine), *shown = console_->screen();
    for (i32 row = 0; row < console_->screen_height(); ++row) {
      if (std::memcmp(expected + row * kWidth, shown + row * kWidth, kWidth) != 0) return row;
    }
    return -1;
  }

  void describe(const ConsoleState& start, const ConsoleState& expected) const {
    const char* field = state_difference(expected, console_->state());
    std::printf("  cartridge %ld: %s differs; row %d of the picture; partial %d before, %d after\n",
                totals_.cartridges, field ? field : "no field", differing_row(expected.machine),
                start.machine.partial, expected.machine.partial);
  }

  void disturb() {
    if (random_.one_in(40)) reset();
    if (random_.one_in(50)) shuffle(console_->machine, random_);
    if (random_.one_in(60)) save();
    if (random_.one_in(60)) restore();
    if (console_->machine.partial && random_.one_in(15)) lose_time();
  }

  void reset() {
    console_->system_reset();
    if (reference_) reference_->pictures.assign(2 * kPictureBytes, 0);
  }

  void save() {
    if (!snapshot_) snapshot_ = std::make_unique<ConsoleSnapshot>();
    console_->save(*snapshot_);
    // Whatever a cartridge does, its snapshots may be restored.
    const WrongField wrong = wrong_field(*snapshot_, type_, console_->properties());
    CHECK(!wrong);
    if (wrong) std::printf("  %s is %g\n", wrong.name, wrong.value);
    if (reference_) saved_pictures_ = reference_->pictures;
  }

  void restore() {
    if (!snapshot_) return;
    console_->restore(*snapshot_);
    if (reference_) reference_->pictures = saved_pictures_;
  }

  // As if an unfinished frame had gone on for thousands of attempts without touching the TIA or the
  // timer.
  void lose_time() {
    MachineState& machine = console_->machine;
    machine.cycles = u32(random_.below(int(kMaxFrameCycles)));
    if (random_.one_in(2)) machine.cycles = kMaxFrameCycles - u32(random_.below(100000));
    if (random_.one_in(2)) machine.timer_set_cycle = i32(random_.bits());
    if (random_.one_in(2)) machine.last_hmove_clock = i32(random_.bits());
    if (random_.one_in(2)) machine.dump_disabled_cycle = i32(random_.bits());
  }

  void choose_inputs() {
    MachineState& machine = console_->machine;
    const Properties& properties = console_->properties();
    if (uses_paddles(properties)) {
      set_paddle_buttons(machine, properties, random_.one_in(4), random_.one_in(4));
      set_paddle_resistances(machine, properties, random_.below(properties.paddle_max),
                             random_.below(properties.paddle_max));
    } else {
      set_joysticks(machine, properties, u32(random_.below(18)), u32(random_.below(18)));
    }
    set_switches(machine, random_.one_in(50), random_.one_in(50), u32(random_.below(4)));
  }

  std::unique_ptr<Tested> console_;
  CartridgeType type_;
  std::unique_ptr<Reference> reference_;
  std::unique_ptr<ConsoleSnapshot> snapshot_;
  std::vector<u8> saved_pictures_;
  check::Random& random_;
  Totals& totals_;
};

Properties random_properties(check::Random& random) {
  Properties properties;
  properties.detect_format = random.one_in(10);
  properties.pal = random.one_in(4);
  properties.height = properties.pal ? 250 : 210;
  properties.hmove_blanks = !random.one_in(4);
  properties.left_paddles = random.one_in(4);
  properties.right_paddles = random.one_in(8);
  properties.swap_paddles = random.one_in(2);
  properties.swap_ports = random.one_in(8);
  return properties;
}

std::unique_ptr<TestRom> hostile_rom(CartridgeType type, const std::vector<RealRom>& real,
                                     bool damaged, check::Random& random) {
  if (!damaged || real.empty())
    return std::make_unique<TestRom>(type, random_properties(random), random_bytes(type, random));
  const RealRom& original = real[size_t(random.below(int(real.size())))];
  Properties properties = original.image.properties;
  properties.detect_format = random.one_in(10);
  return std::make_unique<TestRom>(type, properties, damaged_bytes(original.bytes, random));
}

Totals run_type(CartridgeType type, const std::vector<RealRom>& real, long num_frames) {
  Totals totals;
  long half[2] = {0, 0};  // frames of random bytes, of damaged ROMs
  traced = Coverage();
  for (int number = 0; totals.frames < num_frames; ++number) {
    check::Random random(u64(type) << 32 | u64(number));
    const bool damaged = half[1] < half[0];
    const auto rom = hostile_rom(type, real, damaged, random);
    Translator translator(rom->image);
    if (!random.one_in(6)) rom->image.translation = translator.translation();
    const long before = totals.frames;
    use_portable_frames(random.one_in(2));
    const bool compared = number % kComparedOneIn < 2 && totals.compared < kMaxComparedFrames;
    Ordeal(*rom, random, compared, totals).run(kFramesPerCartridge);
    half[damaged] += totals.frames - before;
    ++totals.cartridges;
    if (totals.frames / kProgressFrames != before / kProgressFrames)
      std::fprintf(stderr, "%s: %ld frames, cartridge %d\n", cartridge_type_name(type),
                   totals.frames, number);
  }
  totals.coverage = traced;
  return totals;
}

// Pairs of a window of the slot and a KB of the image that it may show.
int num_windows(CartridgeType type) {
  switch (type) {
    case CartridgeType::k2K:
    case CartridgeType::k4K:
      return 4;
    case CartridgeType::kF6:
    case CartridgeType::kF6SC:
      return 16;
    case CartridgeType::kE0:
      return 25;
    default:
      return 8;
  }
}

void print(CartridgeType type, const Totals& t) {
  std::printf("%-5s %9ld %10ld %8ld %9ld %8ld %7ld %7zu/256 %6zu/16 %6zu/64 %5zu/%d\n",
              cartridge_type_name(type), t.frames, t.cartridges, t.seen, t.partial, t.compared,
              t.jams, t.coverage.opcodes.count(), t.coverage.tia_reads.count(),
              t.coverage.tia_writes.count(), t.coverage.windows.count(), num_windows(type));
  std::fflush(stdout);
}

RealRom load(const char* path) {
  RealRom rom;
  rom.bytes.resize(1 << 17);
  FILE* file = std::fopen(path, "rb");
  rom.bytes.resize(file ? std::fread(rom.bytes.data(), 1, rom.bytes.size(), file) : 0);
  if (file) std::fclose(file);
  rom.image = identify_rom(rom.bytes.data(), u32(rom.bytes.size()));
  return rom;
}

}  // namespace

int main(int argc, char** argv) {
  const long num_frames = argc > 1 ? std::atol(argv[1]) : 2000;
  const std::string wanted = argc > 2 ? argv[2] : "all";
  std::vector<RealRom> real[u32(CartridgeType::kUnknown) + 1];
  for (int i = 3; i < argc; ++i) {
    RealRom rom = load(argv[i]);
    real[u32(rom.image.type)].push_back(std::move(rom));
  }
  std::printf(
      "type     frames cartridges     seen   partial compared    jams     opcodes   reads"
      "   writes  windows\n");
  for (u32 i = 0; is_supported(CartridgeType(i)); ++i) {
    const CartridgeType type = CartridgeType(i);
    if (wanted != "all" && wanted != cartridge_type_name(type)) continue;
    print(type, run_type(type, real[i], num_frames));
  }
  return check::result("hostile_roms");
}
