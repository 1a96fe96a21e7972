// bench_loops.cpp -- nanoseconds per frame of each loop, with and without pictures.
//
//   bench_loops FRAMES ROM...      random joystick actions, one action per 4 frames
//
// Prints one line per ROM and a median line: the best fifth of the frames after a warm-up. Numbers
// are for one core and depend on the machine: compare columns, not files.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "../core/console.h"
#include "../core/loop_decoded.h"
#include "../core/rom_identify.h"
#include "../core/tia_masks.h"
#include "../tests/check.h"

using namespace scanline;

namespace {

struct LoadedRom {
  std::vector<u8> bytes;
  std::vector<DecodedOp> ops;
  RomImage image;
};

LoadedRom load(const char* path) {
  LoadedRom rom;
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return rom;
  rom.bytes.resize(65536);
  rom.bytes.resize(std::fread(rom.bytes.data(), 1, rom.bytes.size(), file));
  std::fclose(file);
  rom.image = identify_rom(rom.bytes.data(), u32(rom.bytes.size()));
  rom.ops.resize(num_decoded_ops(rom.image));
  decode_rom(rom.image, rom.ops.data());
  rom.image.ops = rom.ops.data();
  return rom;
}

template <class ConsoleType>
void play(ConsoleType& console, check::Random& random, int num_frames, bool draw) {
  for (int frame = 0; frame < num_frames; ++frame) {
    if (frame % 4 == 0) {
      set_joysticks(console.machine, console.properties(), u32(random.below(18)), 0);
      set_switches(console.machine, false, frame % 1000 < 8, 0);
    }
    console.run_frame(draw);
  }
}

// Time of the processor, not of the wall: the machine may have other work.
double processor_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e9 * double(now.tv_sec) + double(now.tv_nsec);
}

template <class ConsoleType>
double nanoseconds_per_frame(const LoadedRom& rom, int num_frames, bool draw) {
  const auto console = std::make_unique<ConsoleType>(rom.image);
  check::Random random(7);
  play(*console, random, 200, draw);
  double best = 1e30;
  for (int part = 0; part < 5; ++part) {
    const double start = processor_nanoseconds();
    play(*console, random, num_frames / 5, draw);
    best = std::min(best, (processor_nanoseconds() - start) / (num_frames / 5));
  }
  return best;
}

using Plain = BasicConsole<PlainLoop, MaskTia>;
using Decoded = BasicConsole<DecodedLoop, MaskTia>;
using Skipping = BasicConsole<SkippingLoop, MaskTia>;

std::vector<double> measure(const LoadedRom& rom, int num_frames) {
  return {nanoseconds_per_frame<Plain>(rom, num_frames, false),
          nanoseconds_per_frame<Decoded>(rom, num_frames, false),
          nanoseconds_per_frame<Skipping>(rom, num_frames, false),
          nanoseconds_per_frame<Plain>(rom, num_frames, true),
          nanoseconds_per_frame<Skipping>(rom, num_frames, true)};
}

void print(const std::string& name, const std::vector<double>& row) {
  std::printf("%-20s", name.c_str());
  for (double value : row) std::printf(" %9.0f", value);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::printf("usage: bench_loops FRAMES ROM...\n"), 2;
  std::printf("%-20s %9s %9s %9s %9s %9s  ns per frame\n", "", "plain", "decoded", "skipping",
              "plain+pix", "skip+pix");
  std::vector<std::vector<double>> columns(5);
  for (int i = 2; i < argc; ++i) {
    const LoadedRom rom = load(argv[i]);
    if (!is_supported(rom.image.type)) continue;
    const std::vector<double> row = measure(rom, std::atoi(argv[1]));
    const std::string path = argv[i];
    print(path.substr(path.find_last_of('/') + 1), row);
    for (size_t c = 0; c < row.size(); ++c) columns[c].push_back(row[c]);
  }
  std::vector<double> medians;
  for (auto& column : columns) {
    std::sort(column.begin(), column.end());
    medians.push_back(column[column.size() / 2]);
  }
  print("median", medians);
  return 0;
}
