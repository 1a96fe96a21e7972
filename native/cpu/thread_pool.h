// thread_pool.h -- threads that run jobs, and waiting with a time limit.
//
// Takes lists of jobs (work.h) and one function that runs a job; knows nothing of environments.
// At most `num_threads` threads run jobs at any moment. A caller that waits for a list helps with
// it when a place is free, so that lockstep stepping needs no hand-over between threads; and a
// thread that looks around for other work (standby.h) lends a hand before one is woken.
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

#include "../threads/patience.h"
#include "../threads/standby.h"
#include "../threads/thread_group.h"
#include "work.h"

namespace scanline {

class ThreadPool : private JobOffer {
 public:
  using Clock = std::chrono::steady_clock;
  using Job = std::function<void(i32 job)>;

  // `max_lists` lists may be submitted at once.
  ThreadPool(i32 num_threads, i32 max_lists, Job job)
      : job_(std::move(job)), num_threads_(num_threads) {
    queue_.reserve(static_cast<size_t>(max_lists));
    threads_.start(num_threads, [this](i32 thread) { serve(thread); }, [this] { call_off(); });
  }

  // A thread that is stuck in a job would go on in memory that is freed.
  ~ThreadPool() override {
    if (stop()) return;
    std::fputs("A thread of the pool did not end its job in time.\n", stderr);
    std::abort();
  }

  // Ends the threads, each after the job that it is at; no other job is begun. False if one was
  // still at its job when patience ended: nothing that jobs use may be freed then.
  bool stop(Patience patience = Patience()) {
    call_off();
    if (!withdraw_jobs(*this, patience)) return false;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      while (num_serving_ > 0) {
        if (patience.has_ended()) return false;
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
    // One place is left for the caller: a thread that took its core would only hold it up on its
    // way to `wait`. If it does not come, the last place is filled after a few jobs.
    call(std::max(1, std::min(num_jobs, num_threads_ - 1)));
  }

  // False if the list was not done in time.
  bool wait(Work& work, Clock::time_point deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (work.queued && num_running_ < num_threads_ && Clock::now() < deadline)
      help(work, deadline, lock);
    if (!work.queued) look_around(work, lock);
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
  // The others need about a job's time to finish, and waking the caller would take longer.
  static constexpr auto kPatience = std::chrono::microseconds(100);
  // Jobs that a thread does alone before it calls another one to the place that is the caller's.
  static constexpr i32 kAlone = 1, kLentAlone = 4;

  // Threads for `num` places: those that look around, and own ones. The lock is held.
  void call(i32 num) {
    const i32 num_lent = num_promised_ == 0 ? offer_jobs(*this, num) : 0;
    num_promised_ += num_lent;
    for (i32 i = num_lent; i < num; ++i) work_ready_.notify_one();
  }

  void lend(const Stays& stays) override {
    std::unique_lock<std::mutex> lock(mutex_);
    const i32 num_others = num_promised_ - 1;
    num_promised_ = 0;
    call(num_others);
    if (stopping_ || queue_.empty() || num_running_ >= num_threads_) return;
    empty(*queue_.front(), num_threads_ + 1, lock, kLentAlone,
          [&] { return !stopping_ && stays(); });
  }

  void decline() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (; num_promised_ > 0; --num_promised_) work_ready_.notify_one();
  }

  void serve(i32 thread) {
    std::unique_lock<std::mutex> lock(mutex_);
    ++num_serving_;
    while (true) {
      work_ready_.wait(
          lock, [this] { return stopping_ || (!queue_.empty() && num_running_ < num_threads_); });
      if (stopping_) break;
      empty(*queue_.front(), thread, lock, kAlone, [this] { return !stopping_; });
    }
    --num_serving_;
    progress_.notify_all();
  }

  void help(Work& work, Clock::time_point deadline, std::unique_lock<std::mutex>& lock) {
    empty(work, num_threads_, lock, 0, [deadline] { return Clock::now() < deadline; });
    if (!queue_.empty()) work_ready_.notify_one();
  }

  void call_off() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    work_ready_.notify_all();
  }

  // Runs jobs of one list until none is left to take, or somebody calls this thread away. After
  // `num_alone` of them the last place is filled. The lock is held on entry and exit only.
  template <class Condition>
  void empty(Work& work, i32 thread, std::unique_lock<std::mutex>& lock, i32 num_alone,
             const Condition& stays) {
    ++num_running_;
    ++work.num_users;
    lock.unlock();
    for (i32 job = work.take(thread); job >= 0; job = stays() ? work.take(thread) : -1) {
      run(work, job);
      work.finish_one();
      if (--num_alone == 0) fill_last_place(work);
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

  // Waits a moment for the end of a list that has no more jobs to take.
  static void look_around(const Work& work, std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    const Clock::time_point end = Clock::now() + kPatience;
    while (!work.idle() && Clock::now() < end) relax();
    lock.lock();
  }

  void fill_last_place(const Work& work) {
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
  std::condition_variable work_ready_;  // the queue is not empty, or a place became free
  std::condition_variable progress_;    // a list was finished
  std::vector<Work*> queue_;            // lists that still have jobs to take, oldest first
  i32 num_running_ = 0;
  i32 num_promised_ = 0;  // threads of others that will come, or be declined
  i32 num_serving_ = 0;
  std::atomic<bool> stopping_{false};
  ThreadGroup threads_;
};

}  // namespace scanline
