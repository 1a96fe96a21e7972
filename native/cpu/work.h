// work.h -- a list of jobs that several threads empty together.
//
// Jobs are numbers. The list is cut into one contiguous chunk per thread; a thread takes from its
// own chunk first, so that it tends to meet the same environments again, and then from the others.
// Each chunk has one atomic counter on its own cache line: no locks, no queue. Any number of
// threads may call `take`, one owner calls `arm`, and only while nobody uses the list.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <vector>

#include "../core/types.h"

namespace scanline {

class Work {
 public:
  Work(i32 max_jobs, i32 max_chunks)
      : jobs_(static_cast<size_t>(max_jobs)),
        chunks_(new Chunk[static_cast<size_t>(max_chunks)]),
        max_chunks_(max_chunks) {}

  // Where the owner puts `num_jobs` job numbers before arming.
  i32* jobs() { return jobs_.data(); }

  void arm(i32 num_jobs) {
    error = nullptr;
    num_jobs_ = num_jobs;
    num_chunks_ = num_jobs < max_chunks_ ? (num_jobs > 0 ? num_jobs : 1) : max_chunks_;
    for (i32 c = 0; c < num_chunks_; ++c) {
      chunks_[c].next.store(num_jobs * c / num_chunks_, std::memory_order_relaxed);
    }
    num_left_.store(num_jobs, std::memory_order_release);
  }

  // The next job for thread `thread`, or -1.
  i32 take(i32 thread) {
    for (i32 i = 0; i < num_chunks_; ++i) {
      const i32 c = (thread + i) % num_chunks_;
      const i32 end = end_of(c);
      if (chunks_[c].next.load(std::memory_order_relaxed) >= end) continue;
      const i32 place = chunks_[c].next.fetch_add(1, std::memory_order_relaxed);
      if (place < end) return jobs_[static_cast<size_t>(place)];
    }
    return -1;
  }

  // Whether there is a job to take.
  bool has_more() const {
    for (i32 c = 0; c < num_chunks_; ++c)
      if (chunks_[c].next.load(std::memory_order_relaxed) < end_of(c)) return true;
    return false;
  }

  // Notes a finished job; true for the last one.
  bool finish_one() { return num_left_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  bool done() const { return num_left_.load(std::memory_order_acquire) == 0; }

  // Whether the owner may arm it again: nobody looks at it any more.
  bool idle() const { return done() && num_users.load() == 0; }

  // Threads inside `take` or a job of this list; changed by the pool, under its lock.
  std::atomic<i32> num_users{0};
  bool queued = false;       // under its lock
  std::exception_ptr error;  // of the first job that failed; under its lock until the list is idle

 private:
  struct alignas(64) Chunk {
    std::atomic<i32> next{0};
  };

  i32 end_of(i32 chunk) const { return num_jobs_ * (chunk + 1) / num_chunks_; }

  std::vector<i32> jobs_;
  std::unique_ptr<Chunk[]> chunks_;
  i32 max_chunks_;
  i32 num_jobs_ = 0;
  i32 num_chunks_ = 1;
  std::atomic<i32> num_left_{0};
};

}  // namespace scanline
