// bench_steps.cpp -- where the time of an agent step goes, for one ROM; no part of the product.
//
// bench_steps ROM GAME_ROW [NUM_ENVS [NUM_STEPS]] prints microseconds per raw frame of one thread:
// emulation alone (RAM observations, nothing drawn), with pictures drawn, and with observations.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>

#include "../cpu/game_batch.h"

using namespace scanline;

namespace {

struct Case {
  const char* name;
  FrameColour colour;
  Resize resize;
  ResetKind reset;
};

double microseconds_per_frame(const GameChoice& choice, i32 num_envs, i32 num_steps,
                              const Case& what) {
  EnvSettings settings;
  settings.colour = what.colour;
  settings.resize = what.resize;
  settings.reset = what.reset;
  settings.autoreset = Autoreset::kSameStep;
  if (what.resize == Resize::kNone) settings.height = 210, settings.width = 160;
  GameBatch batch({choice}, std::vector<i32>(static_cast<size_t>(num_envs), 0), settings, 1, 1);
  auto& envs = batch.environments();
  Staging out(num_envs, envs.row_bytes());
  std::vector<Seed> seeds;
  for (i32 i = 0; i < num_envs; ++i) seeds.push_back({u32(i), EnvStream{{1, 2}, u32(i)}});
  const auto deadline = GameBatch::Environments::Clock::now() + std::chrono::hours(1);
  envs.reset(0, out.arrays(), {nullptr, seeds.data(), false}, deadline);
  std::vector<i64> actions(static_cast<size_t>(num_envs));
  const auto start = std::clock();
  for (i32 step = 0; step < num_steps; ++step) {
    for (i32 i = 0; i < num_envs; ++i) {
      const u32 drawn = philox({5, 5}, {{u32(i), u32(step), 0, 0}}).word[0];
      actions[static_cast<size_t>(i)] = drawn % envs.slot(i).episode.num_actions();
    }
    envs.send(0, actions.data(), &out.arrays());
    envs.recv(0, nullptr, deadline);
  }
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  return 1e6 * seconds / (4.0 * num_envs * num_steps);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::printf("usage: bench_steps ROM GAME_ROW [NUM_ENVS [NUM_STEPS]]\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  GameChoice choice;
  choice.rom.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  choice.game = u32(std::atoi(argv[2]));
  const i32 num_envs = argc > 3 ? std::atoi(argv[3]) : 16;
  const i32 num_steps = argc > 4 ? std::atoi(argv[4]) : 250;
  const Case cases[] = {
      {"emulation", FrameColour::kRam, Resize::kArea, ResetKind::kCached},
      {"and 84x84 area", FrameColour::kGrey, Resize::kArea, ResetKind::kCached},
      {"and ALE's resets", FrameColour::kGrey, Resize::kArea, ResetKind::kAle},
  };
  for (const Case& what : cases) {
    std::printf("%-18s %6.2f us per frame\n", what.name,
                microseconds_per_frame(choice, num_envs, num_steps, what));
  }
  return 0;
}
