// thread_pool.h -- threads that run jobs, and waiting with a time limit.
//
// Takes lists of jobs (work.h) and one function that runs a job; knows nothing of environments.
// At most `num_threads` threads run jobs at any moment. A caller that waits for a list runs jobs of
// it if fewer do, so that lockstep stepping needs no hand-over between threads. Idle workers of
// other pools (work_sharing.h) are asked to help before a thread of this pool is woken.
// Any number of callers; each list has one owner at a time. A job that throws counts as done; the
// list keeps the first exception for its owner.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <vector>

#include "../threads/spin_wait.h"
#include "../threads/thread_group.h"
#include "../threads/work_sharing.h"
#include "work.h"

namespace scanline {

class ThreadPool : private JobSource {
 public:
  using Clock = std::chrono::steady_clock;
  using Job = std::function<void(i32 job)>;

  // `max_lists` lists may be submitted at once.
  ThreadPool(i32 num_threads, i32 max_lists, Job job)
      : job_(std::move(job)), num_threads_(num_threads) {
    queue_.reserve(static_cast<size_t>(max_lists));
    threads_.start(
        num_threads, [this](i32 thread) { run_thread(thread); }, [this] { request_stop(); });
  }

  // A thread that is stuck in a job would go on in memory that is freed.
  ~ThreadPool() override {
    if (stop()) return;
    std::fputs("A thread of the pool did not end its job in time.\n", stderr);
    std::abort();
  }

  // Ends the threads, each after its current job; no other job is started. False if a thread was
  // still in a job when the timeout expired: nothing that jobs use may be freed then.
  bool stop(Timeout timeout = Timeout()) {
    request_stop();
    if (!cancel_request(*this, timeout)) return false;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      while (num_alive_ > 0) {
        if (timeout.has_expired()) return false;
        progress_.wait_for(lock, std::chrono::milliseconds(20));
      }
    }
    threads_.join();
    return true;
  }

  i32 num_threads() const { return num_threads_; }

  // The list must be armed, and untouched until it is done.
  void submit(Work& work, i32 num_jobs) {
    std::lock_guard<std::mutex> lock(mutex_);
    work.queued = true;
    queue_.push_back(&work);
    // One thread fewer than allowed: the caller usually joins in `wait`, and a thread on its core
    // would delay it. If it does not join, one more thread is woken after a few jobs.
    start_threads(std::max(1, std::min(num_jobs, num_threads_ - 1)));
  }

  // False if the list was not done in time.
  bool wait(Work& work, Clock::time_point deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (work.queued && num_running_ < num_threads_ && Clock::now() < deadline)
      help(work, deadline, lock);
    if (!work.queued) spin(work, lock);
    return progress_.wait_until(lock, deadline, [&] { return work.idle(); });
  }

  // Waits until `ready` holds; it is called under the pool's lock after every finished list.
  template <class Condition>
  bool wait_for(Condition ready, Clock::time_point deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    return progress_.wait_until(lock, deadline, ready);
  }

  bool idle(const Work& work) {
    std::lock_guard<std::mutex> lock(mutex_);
    return work.idle();
  }

 private:
  // The other threads finish within about one job; waking the caller would take longer.
  static constexpr auto kSpin = std::chrono::microseconds(100);
  // Jobs that a thread runs before it wakes the thread that `submit` left out.
  static constexpr i32 kJobsBeforeWake = 1, kHelperJobsBeforeWake = 4;

  // Gets `num` threads to run jobs: helpers from other pools, then own ones. The lock is held.
  void start_threads(i32 num) {
    const i32 num_new = num_helpers_ == 0 ? request_helpers(*this, num) : 0;
    num_helpers_ += num_new;
    for (i32 i = num_new; i < num; ++i) work_ready_.notify_one();
  }

  void run_in_helper(const KeepRunning& keep_running) override {
    std::unique_lock<std::mutex> lock(mutex_);
    const i32 num_others = num_helpers_ - 1;
    num_helpers_ = 0;
    start_threads(num_others);
    if (stopping_ || queue_.empty() || num_running_ >= num_threads_) return;
    drain(*queue_.front(), num_threads_ + 1, lock, kHelperJobsBeforeWake,
          [&] { return !stopping_ && keep_running(); });
  }

  void on_request_dropped() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (; num_helpers_ > 0; --num_helpers_) work_ready_.notify_one();
  }

  void run_thread(i32 thread) {
    std::unique_lock<std::mutex> lock(mutex_);
    ++num_alive_;
    while (true) {
      work_ready_.wait(
          lock, [this] { return stopping_ || (!queue_.empty() && num_running_ < num_threads_); });
      if (stopping_) break;
      drain(*queue_.front(), thread, lock, kJobsBeforeWake, [this] { return !stopping_; });
    }
    --num_alive_;
    progress_.notify_all();
  }

  void help(Work& work, Clock::time_point deadline, std::unique_lock<std::mutex>& lock) {
    drain(work, num_threads_, lock, 0, [deadline] { return Clock::now() < deadline; });
    if (!queue_.empty()) work_ready_.notify_one();
  }

  void request_stop() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    work_ready_.notify_all();
  }

  // Runs jobs of one list until none is left to take or `keep_running` is false. After
  // `jobs_before_wake` of them one more thread is woken. The lock is held on entry and exit only.
  template <class Condition>
  void drain(Work& work, i32 thread, std::unique_lock<std::mutex>& lock, i32 jobs_before_wake,
             const Condition& keep_running) {
    ++num_running_;
    ++work.num_users;
    lock.unlock();
    for (i32 job = work.take(thread); job >= 0; job = keep_running() ? work.take(thread) : -1) {
      run(work, job);
      work.finish_one();
      if (--jobs_before_wake == 0) wake_one_more(work);
    }
    lock.lock();
    --num_running_;
    if (work.queued && work.has_more()) {
      work_ready_.notify_one();
    } else if (work.queued) {
      work.queued = false;
      remove(work);
    }
    if (--work.num_users == 0) progress_.notify_all();
  }

  void run(Work& work, i32 job) {
    try {
      job_(job);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!work.error) work.error = std::current_exception();
    }
  }

  // Spins for a moment until a list that has no more jobs to take is done.
  static void spin(const Work& work, std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    const Clock::time_point end = Clock::now() + kSpin;
    while (!work.idle() && Clock::now() < end) cpu_relax();
    lock.lock();
  }

  void wake_one_more(const Work& work) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!work.queued || num_running_ >= num_threads_) return;
    }
    work_ready_.notify_one();
  }

  void remove(const Work& work) {
    for (size_t i = 0; i < queue_.size(); ++i) {
      if (queue_[i] != &work) continue;
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }

  Job job_;
  i32 num_threads_;
  std::mutex mutex_;
  std::condition_variable work_ready_;  // the queue is not empty, or fewer threads run
  std::condition_variable progress_;    // a list was finished
  std::vector<Work*> queue_;            // lists that still have jobs to take, oldest first
  i32 num_running_ = 0;
  i32 num_helpers_ = 0;  // idle workers of other pools that will come, or whose request is dropped
  i32 num_alive_ = 0;    // own threads that have not ended
  std::atomic<bool> stopping_{false};
  ThreadGroup threads_;
};

}  // namespace scanline
