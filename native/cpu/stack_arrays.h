// stack_arrays.h -- frame stacks: what a thread does last for the environment that it has stepped.
//
// Takes a ring of the newest S frames of a group, of which the step has just written one; writes
// whole observations, oldest frame first, filled as the settings say where an episode is new. Plain
// pointers to the caller's arrays. Rows of different environments are apart: any thread may write
// any row. The same in NumPy: src/scanline/envs/frame_stack.py; a test compares the two.
#pragma once

#include <cstring>
#include <memory>

#include "../env/agent_step.h"

namespace scanline {

struct StackArrays {
  u8* ring = nullptr;          // [S, b, frame bytes]
  i32 newest = 0;              // entry of the ring that the step's frame is written to
  u8* finals = nullptr;        // [b, S, frame bytes], of episodes and lives that ended; may be null
  u8* observations = nullptr;  // [b, S, frame bytes]; null where none are wanted
  std::shared_ptr<const void> owner;  // keeps the arrays alive while jobs write to them

  // Observation of environment `i` of a group of `size`, whose step wrote `row`.
  void write(i32 i, i32 size, const StepRow& row, size_t frame_bytes, const EnvSettings& s) const {
    const auto frame_at = [&](i32 age) {  // S - 1 is the newest
      const size_t entry = static_cast<size_t>((newest + 1 + age) % s.stack);
      return ring + (entry * static_cast<size_t>(size) + static_cast<size_t>(i)) * frame_bytes;
    };
    const size_t stack_bytes = static_cast<size_t>(s.stack) * frame_bytes;
    const auto copy_to = [&](u8* stacks) {
      u8* own = stacks + static_cast<size_t>(i) * stack_bytes;
      for (i32 age = 0; age < s.stack; ++age, own += frame_bytes)
        std::memcpy(own, frame_at(age), frame_bytes);
      return own - frame_bytes;  // the newest frame's place
    };
    const bool ended = *row.terminated || *row.truncated;
    if (finals != nullptr && (ended || *row.life_lost)) {
      u8* last = copy_to(finals);
      if (ended) std::memcpy(last, row.final_frame, frame_bytes);
    }
    if (*row.depth == 1) {
      for (i32 age = 0; age < s.stack - 1; ++age) fill(frame_at(age), age, row, frame_bytes, s);
    }
    copy_to(observations);
  }

 private:
  // A frame that is older than its episode.
  static void fill(u8* frame, i32 age, const StepRow& row, size_t bytes, const EnvSettings& s) {
    if (num_start_frames(s) > 0) {
      std::memcpy(frame, row.start_frames + static_cast<size_t>(age) * bytes, bytes);
    } else if (s.stack_padding == StackPadding::kRepeat) {
      std::memcpy(frame, row.frame, bytes);
    } else {
      std::memset(frame, 0, bytes);
    }
  }
};

}  // namespace scanline
