// fuzz_snapshots.cpp -- snapshots that were changed after they were taken, checksum included.
//
//   fuzz_snapshots RESTORES SHARD ROM...
//
// Takes snapshots of games in play, changes fields or bytes, makes the fingerprint right again and
// restores the result: it must be refused and leave the environment as it was, or be harmless,
// which is tried by playing on, resetting and looking. Every other change is one field with one
// boundary value, all of them for every cartridge type in an order of the shard's own; the rest is
// random damage. Consoles run the plain, the decoded and the translated loop; batches' environments
// run under random settings. Without ROMs all cartridges are random bytes. Meant for a build with
// sanitizers, which end the program at the first report; a restore that takes too long ends it too.
// What is tried depends on the arguments alone.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "../core/tia_masks.h"
#include "../cpu/game_batch.h"
#include "../env/ale_snapshot.h"
#include "../env/fast_console.h"
#include "../env/slot_snapshot.h"
#include "check.h"
#include "random_rom.h"
#include "snapshot_fields.h"

extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));

using namespace scanline;

namespace {

using Bytes = std::vector<u8>;

constexpr u32 kHangSeconds = 120;
constexpr int kBasesPerStation = 4;
constexpr int kWarmUpFrames = 90;  // most frames between two snapshots to start from

// ---- what is being tried, for the last words of a program that dies ----

std::string trying = "nothing yet";

void say_what() {
  const std::string text = "while trying " + trying + "\n";
  if (write(2, text.data(), text.size()) < 0) return;
}
void end_hang(int) {
  say_what();
  _exit(3);
}
void end_crash(int signal_number) {
  say_what();
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void watch_for_death() {
  std::signal(SIGALRM, end_hang);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(say_what);
  } else {
    for (int signal_number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE})
      std::signal(signal_number, end_crash);
  }
}

// ---- environments under test ----

// Something that is restored from bytes and played.
class Station {
 public:
  virtual ~Station() = default;
  virtual Bytes snapshot() = 0;
  virtual std::string restore(const Bytes& bytes) = 0;
  virtual void play(check::Random& random) = 0;
  virtual void reset(check::Random& random) = 0;

  std::string name;
  CartridgeType type = CartridgeType::kUnknown;
  FieldTable table;
  std::vector<Bytes> bases;  // snapshots as they were taken

  void take_bases(check::Random& random) {
    for (int i = 0; i < kBasesPerStation; ++i) {
      for (int left = random.below(kWarmUpFrames); left > 0; --left) play(random);
      bases.push_back(snapshot());
      CHECK(bases.back().size() == sizeof(SnapshotHeader) + table.size);
      CHECK(restore(bases.back()).empty());
    }
  }
};

// `scanline.Console`, with one of the loops.
template <class Console>
class ConsoleStation : public Station {
 public:
  using Ale = AleEnvironment<SeenConsole<Console>, MersenneTwister>;

  ConsoleStation(const RomImage& rom, const games::GameRow& row, check::Random& random)
      : rom_(rom), ale_(std::make_unique<Ale>(rom, row, settings(random), MersenneTwister(7))) {
    type = rom.type;
    table = FieldTable::of<Ale>();
  }

  Bytes snapshot() override { return snapshot_of(*ale_, rom_); }
  std::string restore(const Bytes& bytes) override {
    return scanline::restore(*ale_, rom_, bytes.data(), bytes.size());
  }
  void play(check::Random& random) override {
    ale_->act(u32(random.below(18)), random.one_in(3));
    if (random.one_in(4)) ale_->show_pictures(1 + random.below(2));
  }
  void reset(check::Random&) override { ale_->reset(); }

 private:
  static AleSettings settings(check::Random& random) {
    return {random.one_in(2) ? 0.25f : 0.0f, 0};
  }

  RomImage rom_;
  std::unique_ptr<Ale> ale_;
};

// An environment of a batch, stepped and looked at.
class GameStation : public Station {
 public:
  GameStation(const GameChoice& choice, const EnvSettings& settings)
      : batch_({choice}, {0}, settings, 1, 1),
        slot_(batch_.environments().slot(0)),
        staging_(1, batch_.environments().row_bytes()),
        row_(staging_.arrays().row(0, batch_.environments().row_bytes())) {
    slot_.load({5, EnvStream{{1, 2}, 3}});
    slot_.episode.reset(row_, scratch_);
    type = slot_.env.variant().rom.image().type;
    table = FieldTable::of_slot(u32(slot_.episode.pooled().size()));
  }

  Bytes snapshot() override { return snapshot_of(slot_); }
  std::string restore(const Bytes& bytes) override {
    return scanline::restore(slot_, bytes.data(), bytes.size());
  }
  // A batch refuses to step what was never reset.
  void play(check::Random& random) override {
    if (!slot_.episode.state.started) return;
    slot_.episode.step(u32(random.below(int(slot_.episode.num_actions()))), row_, scratch_);
    CHECK(*row_.depth >= 1 && *row_.depth <= slot_.rules->settings.stack);
  }
  void reset(check::Random& random) override {
    if (random.one_in(2)) return slot_.episode.restart(row_, scratch_);
    slot_.episode.reset(row_, scratch_);
  }

 private:
  GameBatch batch_;
  Slot<GameEnvironment>& slot_;
  Staging staging_;
  StepRow row_;
  Observer::Scratch scratch_;
};

// ---- cartridges and settings ----

struct RomFile {
  Bytes bytes;
  CartridgeType type;
  int game = -1;  // row of the game table, if it has one
};

RomFile load(const std::string& path) {
  RomFile rom;
  rom.bytes.resize(1 << 17);
  FILE* file = std::fopen(path.c_str(), "rb");
  rom.bytes.resize(file ? std::fread(rom.bytes.data(), 1, rom.bytes.size(), file) : 0);
  if (file) std::fclose(file);
  rom.type = identify_rom(rom.bytes.data(), u32(rom.bytes.size())).type;
  const size_t slash = path.rfind('/'), start = slash == std::string::npos ? 0 : slash + 1;
  const std::string stem = path.substr(start, path.rfind('.') - start);
  for (u32 i = 0; i < games::kNumGames; ++i) {
    if (stem == games::game_name(static_cast<games::GameId>(i))) rom.game = int(i);
  }
  return rom;
}

Properties random_properties(check::Random& random) {
  Properties properties;
  properties.detect_format = random.one_in(4);
  properties.pal = random.one_in(4);
  properties.height = properties.pal ? 250 : 210;
  properties.left_paddles = random.one_in(2);
  properties.right_paddles = random.one_in(4);
  properties.swap_ports = random.one_in(4);
  return properties;
}

// One of a setting's choices.
template <class Choice>
void choose(Choice& setting, const char* field, check::Random& random) {
  for (const ChoiceNames& choice : kChoiceNames) {
    if (std::string(field) != choice.field) continue;
    int count = 0;
    while (count < 8 && choice.names[count] != nullptr) ++count;
    setting = static_cast<Choice>(random.below(count));
  }
}

EnvSettings random_settings(check::Random& random) {
  EnvSettings s;
  s.sticky = random.one_in(2) ? 0.25 : 0.0;
  s.frame_skip_min = random.one_in(3) ? 2 : 4;
  s.stack = 1 + random.below(4);
  s.noop_max = random.below(8);
  s.episode_limit_frames = random.one_in(2) ? 400 : 0;
  s.reset_cache_states = 2;
  s.full_action_space = random.one_in(2);
  choose(s.pooling, "pooling", random);
  choose(s.colour, "colour", random);
  choose(s.stack_padding, "stack_padding", random);
  choose(s.noop_unit, "noop_unit", random);
  choose(s.fire_reset, "fire_reset", random);
  choose(s.life_loss, "life_loss", random);
  choose(s.terminal_frame, "terminal_frame", random);
  choose(s.reset, "reset", random);
  choose(s.random_stream, "random_stream", random);
  choose(s.autoreset, "autoreset", random);
  return s;
}

class Stations {
 public:
  Stations(const std::vector<RomFile>& roms, check::Random& random) : random_(random) {
    for (u32 i = 0; is_supported(CartridgeType(i)); ++i) add_type(CartridgeType(i), roms);
    for (auto& station : all) station->take_bases(random);
  }

  std::vector<std::unique_ptr<Station>> all;

  std::vector<Station*> of(CartridgeType type) const {
    std::vector<Station*> found;
    for (const auto& station : all) {
      if (station->type == type) found.push_back(station.get());
    }
    return found;
  }

 private:
  // A few of the files of this type, a damaged one among them, and random bytes.
  void add_type(CartridgeType type, const std::vector<RomFile>& roms) {
    std::vector<const RomFile*> real;
    for (const RomFile& rom : roms) {
      if (rom.type == type) real.push_back(&rom);
    }
    const Properties properties = random_properties(random_);
    add_loops(type, properties, random_bytes(type, random_), any_row());
    if (real.empty()) return add_game(random_bytes(type, random_), any_game());
    const RomFile& first = *real[size_t(random_.below(int(real.size())))];
    const Properties own = identify_rom(first.bytes.data(), u32(first.bytes.size())).properties;
    add_loops(type, own, first.bytes, first.game < 0 ? any_row() : row_of(first.game));
    add_loop<FastConsole>("translated", type, own, damaged_bytes(first.bytes, random_), any_row());
    for (int i = 0; i < 2; ++i) {
      const RomFile& rom = *real[size_t(random_.below(int(real.size())))];
      if (rom.game >= 0) add_game(rom.bytes, rom.game);
    }
  }

  const games::GameRow& row_of(int game) const {
    return games::row_of(static_cast<games::GameId>(game));
  }
  // Without a menu: on another game's cartridge its search for a mode would press SELECT for long.
  int any_game() {
    for (;;) {
      const int game = random_.below(games::kNumGames);
      if (row_of(game).select.rule == games::SelectRule::kNothing) return game;
    }
  }
  const games::GameRow& any_row() { return row_of(any_game()); }

  void add_loops(CartridgeType type, const Properties& properties, const Bytes& bytes,
                 const games::GameRow& row) {
    add_loop<Console>("plain", type, properties, bytes, row);
    add_loop<BasicConsole<SkippingLoop, MaskTia>>("decoded", type, properties, bytes, row);
    add_loop<FastConsole>("translated", type, properties, bytes, row);
  }

  template <class Console>
  void add_loop(const char* loop, CartridgeType type, const Properties& properties,
                const Bytes& bytes, const games::GameRow& row) {
    roms_.push_back(std::make_unique<TestRom>(type, properties, bytes));
    RomImage& image = roms_.back()->image;
    if (std::string(loop) == "translated") {
      translators_.push_back(std::make_unique<Translator>(image));
      image.translation = translators_.back()->translation();
    }
    all.push_back(std::make_unique<ConsoleStation<Console>>(image, row, random_));
    all.back()->name = std::string(loop) + " loop with the rules of " + games::game_name(row.game);
  }

  // Under the first random settings that the game can be played with.
  void add_game(const Bytes& bytes, int game) {
    GameChoice choice;
    choice.rom = bytes;
    choice.game = u32(game);
    for (int attempt = 0; attempt < 50; ++attempt) {
      try {
        all.push_back(std::make_unique<GameStation>(choice, random_settings(random_)));
        all.back()->name = std::string("environment of ") + games::game_name(row_of(game).game);
        return;
      } catch (const std::invalid_argument&) {
      }
    }
  }

  check::Random& random_;
  std::vector<std::unique_ptr<TestRom>> roms_;
  std::vector<std::unique_ptr<Translator>> translators_;
};

// ---- changes ----

// Bit patterns at which fields begin or end to be valid somewhere, and floats that are none.
const u64 kValues[] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 17, 18, 19, 31, 32, 63, 64, 99, 100, 127, 128,
    129, 159, 160, 161, 224, 227, 228, 254, 255, 256, 257, 623, 624, 625, 2047, 2048, 4096, 7752,
    7753, 19040, 19041, 25000, 27449, 27450, 32767, 32768, 55632, 55633, 57000, 57001, 65535, 65536,
    790196, 790197, 1000000, 1u << 24, 1u << 28, (1u << 28) + 1, 1u << 30, kMaxFrameCycles,
    kMaxFrameCycles + 1, kMaxCycles, kMaxCycles + 1, 0x7FFFFFFE, 0x7FFFFFFF,
    // negative numbers and floats of 32 bits
    0x80000000, 0x80000001, 0xF0000000, 0xFFFFFF1B, 0xFFFFFF1C, 0xFFFFFF1D, 0xFFFFFFFE, 0xFFFFFFFF,
    0x3F800000, 0xBF800000, 0x3F800001, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x7149F2CA,
    // and of 64
    0x3FF0000000000000, 0xBFF0000000000000, 0x3FEFFFFFFFFFFFFF, 0x7FF0000000000000,
    0xFFF0000000000000, 0x7FF8000000000000, 0x7E37E43C8800759C, 0x4000000000000000,
    0x4000000000000001, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF};

struct Case {
  u32 field, element;
  u64 value;
};

// Every field with every value that its width tells apart; of a long array three elements.
std::vector<Case> all_cases(const FieldTable& table) {
  std::vector<Case> cases;
  for (u32 f = 0; f < table.fields.size(); ++f) {
    const Field& field = table.fields[f];
    const u64 mask = field.width == 8 ? ~u64{0} : (u64{1} << 8 * field.width) - 1;
    std::vector<u64> values;
    for (u64 value : kValues) values.push_back(value & mask);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::vector<u32> elements = {0, field.count / 2, field.count - 1};
    elements.erase(std::unique(elements.begin(), elements.end()), elements.end());
    for (u32 element : elements) {
      for (u64 value : values) cases.push_back({f, element, value});
    }
  }
  return cases;
}

void put(Bytes& bytes, const FieldTable& table, const Case& change) {
  const Field& field = table.fields[change.field];
  u8* place = bytes.data() + sizeof(SnapshotHeader) + field.offset + change.element * field.width;
  std::memcpy(place, &change.value, field.width);
  trying +=
      " " + field.name + "[" + std::to_string(change.element) + "]=" + std::to_string(change.value);
}

// Some byte, seldom one of a picture.
u32 any_place(const FieldTable& table, check::Random& random) {
  for (;;) {
    const u32 place = u32(random.below(int(table.size)));
    const bool in_picture = place >= 512 && place < 512 + 2 * kPictureBytes - 1024;
    if (!in_picture || random.one_in(200)) return place;
  }
}

void damage(Bytes& bytes, const Station& station, const std::vector<Case>& cases,
            check::Random& random) {
  u8* content = bytes.data() + sizeof(SnapshotHeader);
  const FieldTable& table = station.table;
  switch (random.below(6)) {
    case 0:  // several fields
      for (int left = 2 + random.below(4); left > 0; --left)
        put(bytes, table, cases[size_t(random.below(int(cases.size())))]);
      return;
    case 1:
      trying += " bits";
      for (int left = 1 + random.below(4); left > 0; --left)
        content[any_place(table, random)] ^= u8(1 << random.below(8));
      return;
    case 2:
      trying += " bytes";
      for (int left = 1 + random.below(32); left > 0; --left)
        content[any_place(table, random)] = u8(random.below(256));
      return;
    case 3: {  // a field of random bytes
      const Field& field = table.fields[size_t(random.below(int(table.fields.size())))];
      trying += " random " + field.name;
      for (u32 i = 0; i < field.width * field.count; ++i)
        content[field.offset + i] = u8(random.below(256));
      return;
    }
    case 4: {  // a part of another snapshot
      trying += " a splice";
      const Bytes& other = station.bases[size_t(random.below(kBasesPerStation))];
      const u32 first = any_place(table, random);
      const u32 length = std::min(table.size - first, u32(1 + random.below(300)));
      std::memcpy(content + first, other.data() + sizeof(SnapshotHeader) + first, length);
      return;
    }
    default:  // memory and registers, all of which may hold anything
      trying += " random memory";
      for (const Field& field : table.fields) {
        if (field.width > 2 || field.count > 128 || random.one_in(2)) continue;
        for (u32 i = 0; i < field.width * field.count; ++i) {
          if (field.name == "machine.ram" || field.name == "machine.pc" || random.one_in(8))
            content[field.offset + i] = u8(random.below(256) >> random.below(9));
        }
      }
  }
}

void fingerprint_anew(Bytes& bytes) {
  SnapshotHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.content = fingerprint(bytes.data() + sizeof header, header.content_bytes());
  std::memcpy(bytes.data(), &header, sizeof header);
}

// ---- the run ----

struct Totals {
  long refused = 0, accepted = 0, of_fields = 0, resets = 0;
  double longest_seconds = 0;
};

// Asks for what a reset or a mode costs only where that is cheap, or seldom.
bool resets(const Station& station, bool changes_wide_field, check::Random& random) {
  if (station.name[0] == 'p') return random.one_in(400);
  return random.one_in(changes_wide_field ? 4 : 60);
}

void try_one(Station& station, const Bytes& bytes, bool changes_wide_field, check::Random& random,
             Totals& totals) {
  const bool compares = random.one_in(16);
  const Bytes before = compares ? station.snapshot() : Bytes();
  if (!station.restore(bytes).empty()) {
    ++totals.refused;
    if (compares) CHECK(station.snapshot() == before);
    if (!random.one_in(16)) return;
  } else {
    ++totals.accepted;
  }
  for (int left = 1 + random.below(3); left > 0; --left) station.play(random);
  if (compares) {
    const std::string reason = station.restore(station.snapshot());
    if (!reason.empty()) std::printf("%s\n  then %s\n", trying.c_str(), reason.c_str());
    CHECK(reason.empty());
  }
  if (!resets(station, changes_wide_field, random)) return;
  ++totals.resets;
  station.reset(random);
  station.play(random);
}

class Fuzzer {
 public:
  Fuzzer(const std::vector<RomFile>& roms, u64 shard)
      : random_(shard * 0x10001), shard_(shard), stations_(roms, random_) {
    for (u32 i = 0; is_supported(CartridgeType(i)); ++i) {
      Type type{CartridgeType(i), stations_.of(CartridgeType(i)), {}, {}};
      CHECK(!type.stations.empty());
      // The largest table holds the fields of all: those of an episode come last.
      for (const Station* station : type.stations) {
        if (station->table.fields.size() > type.largest().table.fields.size())
          type.most_fields = station;
      }
      type.cases = all_cases(type.largest().table);
      num_cases_ += long(type.cases.size());
      types_.push_back(std::move(type));
    }
  }

  void run(long num_restores) {
    for (long i = 0; i < num_restores; ++i) {
      Type& type = types_[size_t(i % long(types_.size()))];
      one(type, i / long(types_.size()), i);
      if ((i + 1) % 10000 == 0) std::fprintf(stderr, "%ld restores\n", i + 1);
    }
  }

  void print() const {
    std::printf("%zu environments, %ld cases of field, value and type\n", stations_.all.size(),
                num_cases_);
    std::printf("type   restores  refused accepted  by field   cases  resets  longest seconds\n");
    for (const Type& type : types_) {
      const Totals& t = type.totals;
      std::printf("%-5s %9ld %8ld %8ld %9ld %7zu %7ld %16.2f\n", cartridge_type_name(type.type),
                  t.refused + t.accepted, t.refused, t.accepted, t.of_fields, type.cases.size(),
                  t.resets, t.longest_seconds);
    }
  }

 private:
  struct Type {
    CartridgeType type;
    std::vector<Station*> stations;
    std::vector<Case> cases;
    Totals totals;
    const Station* most_fields = nullptr;
    const Station& largest() const { return most_fields ? *most_fields : *stations[0]; }
  };

  // Restore `turn` of a type: every other one a case of its list, in an order of the shard's.
  void one(Type& type, long turn, long number) {
    check::Random random(shard_ << 40 | u64(number));
    const bool by_field = turn % 2 == 0 && turn / 2 < long(type.cases.size());
    const u64 place = (u64(turn / 2) * 7919 + shard_ * 104729) % type.cases.size();
    Station& station = chosen(type, by_field ? &type.cases[place] : nullptr, random);
    use_portable_frames(random.one_in(2));
    Bytes bytes = station.bases[size_t(random.below(kBasesPerStation))];
    trying = std::to_string(number) + " of shard " + std::to_string(shard_) + ", " +
             cartridge_type_name(type.type) + ", " + station.name + ":";
    bool changes_wide_field = true;
    if (by_field) {
      put(bytes, station.table, type.cases[place]);
      changes_wide_field = station.table.fields[type.cases[place].field].width >= 4;
      ++type.totals.of_fields;
    } else {
      damage(bytes, station, all_cases_of(station), random);
    }
    fingerprint_anew(bytes);
    alarm(kHangSeconds);
    const auto start = std::chrono::steady_clock::now();
    try_one(station, bytes, changes_wide_field, random, type.totals);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    alarm(0);
    type.totals.longest_seconds = std::max(type.totals.longest_seconds, seconds.count());
  }

  const std::vector<Case>& all_cases_of(const Station& station) {
    std::vector<Case>& cases = cases_[&station];
    if (cases.empty()) cases = all_cases(station.table);
    return cases;
  }

  // A station that has the field; the plain loop is slow and gets one in eight.
  Station& chosen(const Type& type, const Case* wanted, check::Random& random) {
    for (;;) {
      Station& station = *type.stations[size_t(random.below(int(type.stations.size())))];
      if (station.name[0] == 'p' && !random.one_in(8)) continue;
      if (wanted == nullptr || has(station, type.largest(), wanted->field)) return station;
    }
  }
  static bool has(const Station& station, const Station& largest, u32 field) {
    return field < station.table.fields.size() &&
           station.table.fields[field].name == largest.table.fields[field].name &&
           station.table.fields[field].count == largest.table.fields[field].count;
  }

  check::Random random_;
  u64 shard_;
  Stations stations_;
  std::vector<Type> types_;
  std::map<const Station*, std::vector<Case>> cases_;
  long num_cases_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const long num_restores = argc > 1 ? std::atol(argv[1]) : 2000;
  const u64 shard = argc > 2 ? u64(std::atol(argv[2])) : 0;
  std::vector<RomFile> roms;
  for (int i = 3; i < argc; ++i) roms.push_back(load(argv[i]));
  watch_for_death();
  Fuzzer fuzzer(roms, shard);
  fuzzer.run(num_restores);
  fuzzer.print();
  return check::result("fuzz_snapshots");
}
