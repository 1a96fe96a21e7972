// step_arrays.h -- the arrays that a batch writes its results into, one entry per environment.
//
// Plain pointers to the caller's own arrays, or to a Staging; four of them may be null.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "../env/episode.h"

namespace scanline {

// Sizes of what an environment writes besides numbers.
struct RowBytes {
  i32 frame = 0;
  i32 start_frames = 0;  // of all together; 0 where stacks begin without frames of their own
};

struct StepArrays {
  u8* frame = nullptr;                  // [b, frame bytes]
  u8* depth = nullptr;                  // [b]
  float* reward = nullptr;              // [b]
  float* raw_reward = nullptr;          // [b]
  bool* terminated = nullptr;           // [b]
  bool* truncated = nullptr;            // [b]
  bool* life_lost = nullptr;            // [b]
  i32* lives = nullptr;                 // [b]
  u8* final_frame = nullptr;            // [b, frame bytes], written where an episode ended
  u8* start_frames = nullptr;           // [b, start bytes], written where depth is 1
  i32* frame_number = nullptr;          // [b]
  i32* episode_frame_number = nullptr;  // [b]
  float* episode_return = nullptr;      // [b], raw rewards of the episode so far
  i32* episode_agent_steps = nullptr;   // [b]
  std::shared_ptr<const void> owner;    // keeps them alive while jobs write to them; may be null

  StepRow row(i32 i, const RowBytes& bytes) const {
    const auto at = [i](auto* base) { return base == nullptr ? nullptr : base + i; };
    const auto bytes_at = [i](u8* base, i32 size) {
      return base == nullptr ? nullptr : base + static_cast<std::ptrdiff_t>(i) * size;
    };
    return {bytes_at(frame, bytes.frame),
            at(depth),
            at(reward),
            at(raw_reward),
            at(terminated),
            at(truncated),
            at(life_lost),
            at(lives),
            bytes_at(final_frame, bytes.frame),
            bytes_at(start_frames, bytes.start_frames),
            at(frame_number),
            at(episode_frame_number),
            at(episode_return),
            at(episode_agent_steps)};
  }
};

// Copies one environment's results; frames of an end or of a start only where there is one.
inline void copy_row(const StepRow& from, const StepRow& to, const RowBytes& bytes) {
  const auto copy = [](auto* target, const auto* source) {
    if (target != nullptr) *target = *source;
  };
  std::memcpy(to.frame, from.frame, static_cast<size_t>(bytes.frame));
  if (*from.terminated || *from.truncated)
    std::memcpy(to.final_frame, from.final_frame, static_cast<size_t>(bytes.frame));
  if (bytes.start_frames > 0 && *from.depth == 1)
    std::memcpy(to.start_frames, from.start_frames, static_cast<size_t>(bytes.start_frames));
  copy(to.depth, from.depth);
  copy(to.reward, from.reward);
  copy(to.raw_reward, from.raw_reward);
  copy(to.terminated, from.terminated);
  copy(to.truncated, from.truncated);
  copy(to.life_lost, from.life_lost);
  copy(to.lives, from.lives);
  copy(to.frame_number, from.frame_number);
  copy(to.episode_frame_number, from.episode_frame_number);
  copy(to.episode_return, from.episode_return);
  copy(to.episode_agent_steps, from.episode_agent_steps);
}

// Memory for the results of environments whose caller has not yet said where they go.
class Staging {
 public:
  Staging(i32 num_envs, const RowBytes& row) {
    const size_t n = static_cast<size_t>(num_envs), bytes = n * static_cast<size_t>(row.frame);
    bytes_.resize(2 * bytes + 4 * n + n * static_cast<size_t>(row.start_frames));
    words_.resize(7 * n * sizeof(float));
    u8* b = bytes_.data();
    arrays_.frame = b;
    arrays_.final_frame = b + bytes;
    arrays_.depth = b + 2 * bytes;
    arrays_.terminated = reinterpret_cast<bool*>(arrays_.depth + n);
    arrays_.truncated = arrays_.terminated + n;
    arrays_.life_lost = arrays_.truncated + n;
    if (row.start_frames > 0) arrays_.start_frames = b + 2 * bytes + 4 * n;
    float* f = reinterpret_cast<float*>(words_.data());
    arrays_.reward = f;
    arrays_.raw_reward = f + n;
    arrays_.episode_return = f + 2 * n;
    i32* w = reinterpret_cast<i32*>(f + 3 * n);
    arrays_.lives = w;
    arrays_.frame_number = w + n;
    arrays_.episode_frame_number = w + 2 * n;
    arrays_.episode_agent_steps = w + 3 * n;
  }
  const StepArrays& arrays() const { return arrays_; }

 private:
  std::vector<u8> bytes_;
  std::vector<u8> words_;
  StepArrays arrays_;
};

}  // namespace scanline
