// fake_env.h -- an environment that remembers what was done to it, for tests of the layers above.
//
// A game of `lives` lives: every `frames_per_life` frames one is lost, each frame gives the frame's
// number modulo 3, minus 1, as reward. Pictures show the frame number in every pixel, so that a
// test can read from an observation which frames it was made of. A frame can wait for a gate, or
// fail.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "../env/episode.h"

namespace scanline {

struct FakeEnv {
  static constexpr i32 kHeight = 210;

  explicit FakeEnv(i32 num_lives = 3, i32 frames_per_life = 50)
      : num_lives(num_lives), frames_per_life(frames_per_life) {
    for (auto& picture : pictures) picture.assign(kHeight * kScreenWidth, 0);
  }

  i32 num_lives, frames_per_life;
  i32 frames = 0, total_frames = 0;
  std::string log;  // R: reset; N, F, U: the buttons; digits: other actions; * after a seen frame
  bool logs = true;
  std::atomic<bool>* open = nullptr;   // frames wait until it is true
  std::atomic<bool>* fails = nullptr;  // frames throw while it is true
  std::vector<u8> pictures[2];
  u8 memory[128] = {};

  void reset() {
    frames = 0;
    if (logs) log += 'R';
  }

  void set_strength(float) {}

  i32 act(u32 action, bool seen) {
    if (game_over()) return 0;
    while (open && !open->load()) std::this_thread::yield();
    if (fails && fails->load()) throw std::bad_alloc();
    ++frames;
    ++total_frames;
    if (logs) log += action < 3 ? "NFU"[action] : static_cast<char>('0' + action % 10);
    if (logs && seen) log += '*';
    std::swap(pictures[0], pictures[1]);
    std::memset(pictures[0].data(), shade(), pictures[0].size());
    memory[0] = static_cast<u8>(frames);
    return frames % 3 - 1;
  }

  u8 shade() const { return static_cast<u8>(2 * (frames % 100)); }
  bool game_over() const { return lives() == 0; }
  i32 lives() const {
    const i32 left = num_lives - frames / frames_per_life;
    return left < 0 ? 0 : left;
  }
  void show_pictures(i32) {}
  void load(u32, const EnvStream&) { frames = total_frames = 0; }

  struct Snapshot {
    i32 frames = 0;
    std::vector<u8> pictures[2];
  };
  void save(Snapshot& snapshot) const {
    snapshot.frames = frames;
    for (i32 i = 0; i < 2; ++i) snapshot.pictures[i] = pictures[i];
  }
  void start_from(const Snapshot& snapshot) {
    frames = snapshot.frames;
    for (i32 i = 0; i < 2; ++i) pictures[i] = snapshot.pictures[i];
    if (logs) log += 'C';
  }
  const u8* screen() const { return pictures[0].data(); }
  const u8* previous_screen() const { return pictures[1].data(); }
  const u8* ram() const { return memory; }
  i32 frame_number() const { return total_frames; }
  i32 episode_frame_number() const { return frames; }
};

// A palette whose grey is the index itself.
struct FakePalette {
  u8 grey[256];
  u8 rgb[256][3];
  FakePalette() {
    for (i32 i = 0; i < 256; ++i) grey[i] = rgb[i][0] = rgb[i][1] = rgb[i][2] = static_cast<u8>(i);
  }
  PaletteView view() const { return {grey, &rgb[0][0]}; }
};

inline std::shared_ptr<EpisodeRules> fake_rules(const EnvSettings& settings,
                                                const Observer& observer) {
  auto rules = std::make_shared<EpisodeRules>();
  rules->settings = settings;
  rules->observer = &observer;
  for (u32 action : {0u, 1u, 3u, 4u, 2u}) rules->actions[rules->num_actions++] = action;
  rules->has_fire = rules->has_up = true;
  return rules;
}

}  // namespace scanline
