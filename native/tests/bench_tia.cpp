// bench_tia.cpp -- what the TIA alone costs: recorded accesses of real games, replayed.
//
// Takes ROM files; for each prints microseconds per frame without and with pixels, and how often
// accesses occur. The replay's RAM is not emulated, so the numbers hold no CPU time but the loop
// over the records (printed as "empty").
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include "../core/console.h"
#include "../core/log_sink.h"
#include "../core/rom_identify.h"
#include "../core/tia_masks.h"

using namespace scanline;

namespace {

struct Record {
  u32 cycles;
  u8 address;
  u8 value;
  bool is_read;
};

struct Frame {
  MachineState start;  // before start_frame
  std::vector<Record> records;
};

std::vector<Frame>* recording = nullptr;
int num_repeats = 25;

template <class Sink>
class RecordingTia : public MaskTia<Sink> {
 public:
  RecordingTia(MachineState& state, const Properties& properties, Sink sink)
      : MaskTia<Sink>(state, properties, sink) {
    if (recording) recording->push_back({state, {}});
  }
  u8 read(u16 address, u8 data_bus, u32 cycles) {
    if (recording)
      recording->back().records.push_back({cycles, u8(address & 0x3F), data_bus, true});
    return MaskTia<Sink>::read(address, data_bus, cycles);
  }
  bool write(u16 address, u8 value, u32& cycles, bool after_read) {
    if (recording) recording->back().records.push_back({cycles, u8(address & 0x3F), value, false});
    return MaskTia<Sink>::write(address, value, cycles, after_read);
  }
};

struct NoTia {
  u32 sum = 0;
  NoTia(MachineState&, const Properties&, NoPixels) {}
  void start_frame() {}
  SCANLINE_NOINLINE u8 read(u16 address, u8, u32) { return u8(sum += address); }
  SCANLINE_NOINLINE bool write(u16 address, u8, u32&, bool) { return (sum += address) == 1; }
  void finish() {}
};

template <class Tia, class Sink>
SCANLINE_NOINLINE u32 replay(const Frame& frame, const Properties& properties, Sink sink) {
  MachineState state = frame.start;
  Tia tia(state, properties, sink);
  u32 sum = 0;
  if (!state.partial) tia.start_frame();
  state.partial = 1;
  for (const Record& record : frame.records) {
    state.cycles = record.cycles;
    if (record.is_read) {
      sum += tia.read(record.address, record.value, state.cycles);
    } else {
      sum += tia.write(record.address, record.value, state.cycles, true);
    }
  }
  tia.finish();
  return sum + state.collision;
}

double thread_microseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) * 1e6 + double(now.tv_nsec) / 1e3;
}

template <class Tia, class Sink>
double microseconds(const std::vector<Frame>& frames, const Properties& properties, Sink sink) {
  double best = 1e9;
  volatile u32 keep = 0;
  for (int repeat = 0; repeat < num_repeats; ++repeat) {
    const double start = thread_microseconds();
    for (const Frame& frame : frames) keep = keep + replay<Tia>(frame, properties, sink);
    best = std::min(best, (thread_microseconds() - start) / double(frames.size()));
  }
  return best;
}

std::vector<u8> bytes_of(const char* path) {
  std::vector<u8> bytes(1 << 17);
  FILE* file = std::fopen(path, "rb");
  bytes.resize(file ? std::fread(bytes.data(), 1, bytes.size(), file) : 0);
  if (file) std::fclose(file);
  return bytes;
}

void bench(const char* path, std::vector<double>* sums) {
  const std::vector<u8> bytes = bytes_of(path);
  const RomImage rom = identify_rom(bytes.data(), u32(bytes.size()));
  auto console = std::make_unique<BasicConsole<PlainLoop, RecordingTia>>(rom);
  for (int i = 0; i < 200; ++i) {
    set_switches(console->machine, false, i >= 60 && i < 64, 0);
    set_joysticks(console->machine, console->properties(), u32(i / 7 % 18), 0);
    console->run_frame(false);
  }
  std::vector<Frame> frames;
  recording = &frames;
  for (int i = 0; i < 60; ++i) console->run_frame(false);
  recording = nullptr;
  size_t num_records = 0;
  for (const Frame& frame : frames) num_records += frame.records.size();
  static u8 pictures[2 * kPictureBytes];
  const Properties& properties = console->properties();
  const double empty = microseconds<NoTia>(frames, properties, NoPixels());
  const double unseen = microseconds<MaskTia<NoPixels>>(frames, properties, NoPixels());
  const double drawn = microseconds<MaskTia<Pixels<>>>(frames, properties, Pixels<>(pictures));
  static PictureLog log;
  const double logged = microseconds<MaskTia<Log>>(frames, properties, Log(&log));
  u32 num_words = 0;
  for (const Frame& frame : frames) {
    replay<MaskTia<Log>>(frame, properties, Log(&log));
    num_words = std::max(num_words, log.num_words);
  }
  const char* name = std::strrchr(path, '/');
  std::printf(
      "%-24s %6zu accesses  empty %5.1f  unseen %5.1f  drawn %5.1f  "
      "logged %5.1f, at most %u words\n",
      name ? name + 1 : path, num_records / frames.size(), empty, unseen, drawn, logged, num_words);
  sums[0].push_back(empty);
  sums[1].push_back(unseen);
  sums[2].push_back(drawn);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<double> sums[3];
  if (const char* repeats = std::getenv("REPEATS")) num_repeats = std::atoi(repeats);
  for (int i = 1; i < argc; ++i) bench(argv[i], sums);
  if (argc > 1)
    std::printf("median microseconds per frame: empty %.1f, unseen %.1f, drawn %.1f\n",
                median(sums[0]), median(sums[1]), median(sums[2]));
  return 0;
}
