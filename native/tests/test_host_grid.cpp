// test_host_grid.cpp -- the kernels of a GPU beside the environments of the CPU, lane by lane.
//
//   test_host_grid ROM...
//
// Plays the ROMs given, damaged copies of them and random bytes with the kernels as loops, every
// buffer as large as it must be, so that sanitizers see what a kernel does. Frames, numbers and
// snapshots equal those of the CPU. Some launches are watched: a lane runs twice, with everything
// that is not its own filled with two kinds of garbage; it must leave that alone, and give the same
// results. So no lane reads or writes what another lane of the same kernel writes.
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "../gpu/device_game.h"
#include "../gpu/host_grid.h"
#include "check.h"
#include "random_rom.h"

using namespace scanline;

namespace {

using Bytes = std::vector<u8>;

constexpr u32 kNumEnvs = 3;
constexpr int kNumSteps = 24, kWatchedOneIn = 8;

EnvSettings settings_for(int number) {
  EnvSettings s;
  s.reset = ResetKind::kCached;
  s.reset_cache_states = 2;
  s.autoreset = number % 2 ? Autoreset::kSameStep : Autoreset::kNextStep;
  s.life_loss = number % 3 ? LifeLoss::kNoopsAgain : LifeLoss::kEndReturn;
  s.episode_limit_frames = 60;
  s.frame_skip_min = 2;
  s.sticky = 0.25;
  return s;
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const u8* begin = reinterpret_cast<const u8*>(values.data());
  return Bytes(begin, begin + values.size() * sizeof(T));
}

// What one lane of a kernel may write, in one of the buffers with a row per environment.
struct Own {
  u64 begin = 0, end = 0;
  bool holds(u64 i) const { return i >= begin && i < end; }
};

// Buffers of one game's environments; those that kernels write come first.
class Grid {
 public:
  explicit Grid(gpu::DeviceGame& game) : game_(game), frame_bytes_(u64(game.frame_bytes())) {
    for (u64 row :
         {u64(sizeof(gpu::Lane)), u64(sizeof(gpu::StepNumbers)), frame_bytes_, frame_bytes_}) {
      row_bytes_.push_back(row);
      rows_.emplace_back(row * kNumEnvs);
    }
    const u8* record = reinterpret_cast<const u8*>(&game.record());
    record_.assign(record, record + sizeof(gpu::Game));
    rom_ = game.rom();
    starts_ = game.starts();
    start_frames_ = game.start_frames();
    firsts_ = bytes_of(game.firsts());
    weights_ = bytes_of(game.weights());
    envs_ = bytes_of(std::vector<u32>{0, 1, 2});
  }

  gpu::Lane& lane(u32 env) { return reinterpret_cast<gpu::Lane*>(rows_[kLanes].data())[env]; }
  const gpu::StepNumbers& numbers(u32 env) {
    return reinterpret_cast<gpu::StepNumbers*>(rows_[kNumbers].data())[env];
  }
  const u8* frame(u32 env) { return rows_[kFrames].data() + env * frame_bytes_; }
  const u8* final_frame(u32 env) { return rows_[kFinals].data() + env * frame_bytes_; }

  void reset(bool is_watched) { restart(true, is_watched); }

  void step(const std::vector<u32>& actions, bool is_watched) {
    actions_ = bytes_of(actions);
    const u32 num = kNumEnvs, size = u32(frame_bytes_);
    const u32 height = u32(game_.record().resize.height);
    launch("scanline_play", num, is_watched,
           {&rows_[kLanes], &record_, &rom_, &starts_, &start_frames_, &envs_, &actions_,
            &rows_[kNumbers], &rows_[kFrames]},
           {size, num, 0});
    launch("scanline_observe", num * height, is_watched,
           {&rows_[kLanes], &record_, &envs_, &firsts_, &weights_, &rows_[kNumbers],
            &rows_[kFrames], &rows_[kFinals]},
           {size, num, 0});
    if (game_.record().rules.settings.autoreset == Autoreset::kSameStep) restart(false, is_watched);
  }

 private:
  enum { kLanes, kNumbers, kFrames, kFinals, kNumRows };

  void restart(bool is_reset, bool is_watched) {
    launch("scanline_restart", kNumEnvs, is_watched,
           {&rows_[kLanes], &record_, &rom_, &starts_, &start_frames_, &envs_, &rows_[kNumbers],
            &rows_[kFrames]},
           {u32(frame_bytes_), kNumEnvs, 0, u32(is_reset)});
  }

  // A lane too many in each launch: kernels must look.
  void launch(const std::string& kernel, u32 num_lanes, bool is_watched,
              const std::vector<Bytes*>& buffers, const std::vector<u32>& scalars) {
    buffers_ = &buffers;
    scalars_ = &scalars;
    std::vector<u32> order(num_lanes + 1);
    std::iota(order.rbegin(), order.rend(), 0u);
    if (!is_watched) {
      run(kernel, order);
      return;
    }
    for (u32 index : order) watch(kernel, index, num_lanes);
  }

  void run(const std::string& kernel, const std::vector<u32>& order) {
    std::vector<u8*> addresses;
    for (Bytes* buffer : *buffers_) addresses.push_back(buffer->data());
    CHECK(gpu::run_on_host(kernel, game_.type(), addresses, *scalars_, order).empty());
  }

  void watch(const std::string& kernel, u32 index, u32 num_lanes) {
    const std::vector<Bytes> before = rows_;
    std::vector<Bytes> after[2];
    const bool observes = kernel == "scanline_observe";
    std::vector<Own> writes(kNumRows), reads(kNumRows);
    if (index < num_lanes) owned(index, observes, writes, reads);
    for (int pass = 0; pass < 2; ++pass) {
      const u8 garbage = pass ? 0xA5 : 0x5A;
      for (int i = 0; i < kNumRows; ++i) {
        Bytes& row = rows_[i];
        row.assign(before[i].size(), garbage);
        std::copy(before[i].begin() + long(reads[i].begin), before[i].begin() + long(reads[i].end),
                  row.begin() + long(reads[i].begin));
      }
      run(kernel, {index});
      bool untouched = true;
      for (int i = 0; i < kNumRows; ++i) {
        for (u64 at = 0; at < rows_[i].size(); ++at) {
          if (writes[i].holds(at)) continue;
          untouched &= rows_[i][at] == (reads[i].holds(at) ? before[i][at] : garbage);
        }
      }
      CHECK(untouched && "a lane writes what is not its own");
      after[pass] = rows_;
    }
    rows_ = before;
    for (int i = 0; i < kNumRows; ++i) {
      const u64 begin = writes[i].begin, size = writes[i].end - begin;
      if (size == 0) continue;
      CHECK(std::memcmp(&after[0][i][begin], &after[1][i][begin], size) == 0 &&
            "a lane reads what is not its own");
      std::memcpy(&rows_[i][begin], &after[0][i][begin], size);
    }
  }

  // `observe` reads a lane and its numbers, and writes a row of a frame; others own a whole row.
  void owned(u32 index, bool observes, std::vector<Own>& writes, std::vector<Own>& reads) const {
    const u32 height = u32(game_.record().resize.height), width = u32(game_.record().resize.width);
    const u64 env = observes ? index / height : index;
    for (int i = 0; i < kNumRows; ++i) reads[i] = {env * row_bytes_[i], (env + 1) * row_bytes_[i]};
    writes = reads;
    if (!observes) return;
    writes[kLanes] = writes[kNumbers] = {};
    for (int i : {int(kFrames), int(kFinals)}) {
      const u64 begin = env * frame_bytes_ + u64(index % height) * width;
      writes[i] = reads[i] = {begin, begin + width};
    }
  }

  gpu::DeviceGame& game_;
  u64 frame_bytes_;
  std::vector<u64> row_bytes_;
  std::vector<Bytes> rows_;
  Bytes record_, rom_, starts_, start_frames_, firsts_, weights_, envs_, actions_;
  const std::vector<Bytes*>* buffers_ = nullptr;
  const std::vector<u32>* scalars_ = nullptr;
};

// An environment of the CPU, with the row that it writes.
struct Reference {
  Slot<GameEnvironment> slot;
  gpu::StepNumbers numbers{};
  Bytes frame, final_frame;
  Observer::Scratch scratch;

  Reference(const SharedGame& shared, u64 frame_bytes)
      : slot(shared.rules, shared.starts, shared.variant),
        frame(frame_bytes),
        final_frame(frame_bytes) {}

  StepRow row() {
    StepRow row = numbers.row();
    row.frame = frame.data();
    row.final_frame = final_frame.data();
    return row;
  }
};

bool are_equal(const gpu::StepNumbers& a, const gpu::StepNumbers& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

void compare(Grid& grid, u32 env, const Reference& reference) {
  const gpu::StepNumbers& numbers = grid.numbers(env);
  const u64 size = reference.frame.size();
  CHECK(are_equal(numbers, reference.numbers));
  CHECK(std::memcmp(grid.frame(env), reference.frame.data(), size) == 0);
  if (numbers.terminated || numbers.truncated)
    CHECK(std::memcmp(grid.final_frame(env), reference.final_frame.data(), size) == 0);
}

void play(const Bytes& rom, int number) {
  const GameChoice choice{rom, static_cast<u32>(games::GameId::venture)};
  const EnvSettings settings = settings_for(number);
  std::unique_ptr<gpu::DeviceGame> game;
  try {
    game = std::make_unique<gpu::DeviceGame>(choice, settings);
  } catch (const std::invalid_argument&) {
    return;  // damage made it a cartridge that no console takes
  }
  SharedGames games;
  const SharedGame shared = games.share(choice, settings);
  auto grid = std::make_unique<Grid>(*game);
  std::vector<std::unique_ptr<Reference>> references;
  for (u32 env = 0; env < kNumEnvs; ++env) {
    const Seed seed{env, EnvStream{{3, 4}, env}};
    references.push_back(std::make_unique<Reference>(shared, u64(game->frame_bytes())));
    references[env]->slot.load(seed);
    game->load(seed, grid->lane(env));
    references[env]->slot.episode.reset(references[env]->row(), references[env]->scratch);
  }
  grid->reset(true);
  check::Random random{u64(number)};
  const int num_actions = int(game->record().rules.num_actions);
  for (int step = 0; step < kNumSteps; ++step) {
    std::vector<u32> actions;
    for (u32 env = 0; env < kNumEnvs; ++env) {
      Reference& reference = *references[env];
      compare(*grid, env, reference);
      actions.push_back(u32(random.below(num_actions)));
      reference.slot.episode.step(actions[env], reference.row(), reference.scratch);
    }
    grid->step(actions, step % kWatchedOneIn == 0);
  }
  for (u32 env = 0; env < kNumEnvs; ++env) {
    compare(*grid, env, *references[env]);
    CHECK(game->snapshot(grid->lane(env)) == snapshot_of(references[env]->slot));
  }
}

Bytes read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

int main(int argc, char** argv) {
  int number = 0;
  check::Random random(1);
  for (CartridgeType type : {CartridgeType::k2K, CartridgeType::k4K, CartridgeType::kF8,
                             CartridgeType::kF6, CartridgeType::kDPC})
    play(random_bytes(type, random), number++);
  for (int i = 1; i < argc; ++i) {
    const Bytes rom = read_file(argv[i]);
    play(rom, number++);
    play(damaged_bytes(rom, random), number++);
  }
  return check::result("test_host_grid");
}
