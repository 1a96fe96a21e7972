// shared_mean.h -- numbers and means of several learner processes, through memory that they share.
//
// Takes a block of zeroed memory that all of them have mapped; each has one object over it, with
// its rank. All make the same calls in the same order. Knows no process, no network and no time
// limit but the caller's.
//
// An array is averaged in pieces that stay in the caches. Of every piece each learner sums its own
// part, in the order of the ranks, so the result depends neither on which of them is first nor on
// how many processors there are.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <vector>

#include "../core/types.h"

namespace scanline {

struct Floats {
  i64 num;
  float* data;
};

class SharedMean {
 public:
  static constexpr i64 kPieceFloats = i64{1} << 18;  // 1 MiB

  static size_t block_bytes(i32 count);

  SharedMean(void* block, i32 rank, i32 count);

  // One number of every learner: say, wait, then hear, before the next call.
  void say(i64 number);
  i64 heard(i32 rank) const;

  // One piece of the mean over all learners, of the arrays as if they were one behind the other:
  // put, wait, reduce, wait, take. `first` is its first element.
  void put(const std::vector<Floats>& arrays, i64 first);
  void reduce();
  void take(const std::vector<Floats>& arrays, i64 first) const;

  // Whether all learners have come as far as this one; waits for them, up to the limit.
  bool wait(std::chrono::duration<double> limit) const;

 private:
  struct alignas(64) Line {
    std::atomic<u32> arrived;
    i64 numbers[2];
  };

  Line& line(i32 rank) const { return lines_[rank]; }
  float* slot(i32 rank) const { return slots_ + rank * kPieceFloats; }
  float* result() const { return slots_ + count_ * kPieceFloats; }
  void arrive();

  Line* lines_;
  float* slots_;
  i32 rank_, count_;
  u32 sequence_ = 0;  // arrivals of this learner
  i64 num_ = 0;       // floats of the current piece
};

}  // namespace scanline
