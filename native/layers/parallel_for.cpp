// parallel_for.cpp -- one thread pool per process, made when first needed.
#include "parallel_for.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "../threads/fork_guard.h"
#include "../threads/spin_wait.h"
#include "../threads/thread_group.h"
#include "../threads/work_sharing.h"

namespace scanline {
namespace {

// How long an idle thread spins before it sleeps. Waking it takes about as long, and a layer's
// next call usually comes sooner.
constexpr auto kSpin = std::chrono::microseconds(200);
constexpr auto kSpinAfterWake = std::chrono::microseconds(500);
// After two calls met, threads do not spin during so many calls: other work needs the cores.
constexpr i32 kContendedCalls = 200;
// How long a large call waits for the pool; more threads gain more time than that.
constexpr auto kPoolWait = std::chrono::milliseconds(2);

std::atomic<i32> contended_calls{0};  // calls during which threads still do not spin

class LayerPool {
 public:
  explicit LayerPool(i32 num_threads) {
    threads_.start(num_threads - 1, [this](i32) { run_thread(); }, [this] { request_stop(); });
  }

  ~LayerPool() {
    request_stop();
    threads_.join();
  }

  i32 num_threads() const { return threads_.size() + 1; }

  void wake() {
    if (num_asleep_.load() == 0) return;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      wakes_.fetch_add(1);
    }
    start_.notify_all();
  }

  void run(i32 num_jobs, const LayerJob& job) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = &job;
      num_jobs_ = num_jobs;
      next_.store(0, std::memory_order_relaxed);
      num_running_.store(threads_.size());
      calls_.fetch_add(1);
    }
    if (num_asleep_.load() > 0) start_.notify_all();
    take_jobs();
    wait_for_threads();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  // Without a timeout: jobs use the caller's memory.
  void wait_for_threads() {
    if (spin([this] { return num_running_.load() == 0; })) return;
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return num_running_.load() == 0; });
  }

  void request_stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_.store(true);
    }
    start_.notify_all();
  }

  void run_thread() {
    u64 last_call = 0, last_wake = 0;
    while (true) {
      const auto is_called = [&] { return stopping_.load() || calls_.load() != last_call; };
      const bool was_woken = wakes_.load() != last_wake;
      last_wake = wakes_.load();
      if (!spin_or_help(is_called, was_woken ? kSpinAfterWake : kSpin)) {
        sleep_until([&] { return is_called() || wakes_.load() != last_wake; });
        if (!is_called()) continue;
      }
      if (stopping_.load()) return;
      last_call = calls_.load();
      take_jobs();
      if (num_running_.fetch_sub(1) > 1) continue;
      const std::lock_guard<std::mutex> lock(mutex_);
      done_.notify_one();
    }
  }

  template <class Condition>
  void sleep_until(const Condition& condition) {
    std::unique_lock<std::mutex> lock(mutex_);
    num_asleep_.fetch_add(1);
    start_.wait(lock, condition);
    num_asleep_.fetch_sub(1);
  }

  // Whether the condition became true while spinning for kSpin. Does not yield: another process
  // would keep the core for milliseconds.
  template <class Condition>
  static bool spin(const Condition& condition) {
    return spin(condition, kSpin, [] { return false; });
  }

  // The same between two calls of the pool. Meanwhile runs jobs of other pools, and leaves them
  // when the next call comes.
  template <class Condition>
  static bool spin_or_help(const Condition& is_called, std::chrono::microseconds duration) {
    if (contended_calls.load() > 0) return is_called();
    IdleWorker worker;
    const JobSource::KeepRunning keep_running = [&] { return !is_called(); };
    return spin(is_called, duration, [&] { return worker.help(keep_running); });
  }

  // The duration starts anew whenever `help` is true.
  template <class Condition, class Help>
  static bool spin(const Condition& condition, std::chrono::microseconds duration,
                   const Help& help) {
    if (contended_calls.load() > 0) return condition();
    auto start = std::chrono::steady_clock::now();
    while (!condition()) {
      if (help()) start = std::chrono::steady_clock::now();
      if (std::chrono::steady_clock::now() - start > duration) return false;
      cpu_relax();
    }
    return true;
  }

  // After a job has failed no other one starts.
  void take_jobs() {
    try {
      for (i32 job = next_.fetch_add(1); job < num_jobs_; job = next_.fetch_add(1)) (*job_)(job);
    } catch (...) {
      next_.store(num_jobs_);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  std::mutex mutex_;
  std::condition_variable start_, done_;
  const LayerJob* job_ = nullptr;
  i32 num_jobs_ = 0;
  std::atomic<i32> next_{0};  // the next job to take
  std::atomic<i32> num_running_{0}, num_asleep_{0};
  std::atomic<u64> calls_{0}, wakes_{0};
  std::atomic<bool> stopping_{false};
  std::exception_ptr error_;  // of the first job that failed; under the lock
  ThreadGroup threads_;
};

std::atomic<i32> num_wanted{0};
std::timed_mutex pool_in_use;
ForkGuarded<LayerPool> pool;

// The pool of this process with so many threads; `pool_in_use` is held.
LayerPool& pool_of(i32 num_threads) {
  if (!pool.is_usable() || pool->num_threads() != num_threads)
    pool = ForkGuarded<LayerPool>(std::make_unique<LayerPool>(num_threads));
  return *pool;
}

}  // namespace

void set_layer_threads(i32 num_threads) { num_wanted.store(num_threads); }

i32 layer_threads() {
  const i32 wanted = num_wanted.load();
  return wanted > 0 ? wanted : static_cast<i32>(std::max(1U, std::thread::hardware_concurrency()));
}

void parallel_for(i32 num_jobs, const LayerJob& job, CallSize size) {
  const i32 num_threads = layer_threads();
  // While calls contend, a small one leaves the pool to the large ones.
  const bool runs_alone = size == CallSize::kSmall && contended_calls.load() > 0;
  if (num_threads > 1 && num_jobs > 1 && !runs_alone) {
    std::unique_lock<std::timed_mutex> lock(pool_in_use, std::try_to_lock);
    if (lock.owns_lock()) {
      if (contended_calls.load() > 0) contended_calls.fetch_sub(1);
    } else {
      contended_calls.store(kContendedCalls);
      if (size == CallSize::kLarge) (void)lock.try_lock_for(kPoolWait);
    }
    if (lock.owns_lock()) return pool_of(num_threads).run(num_jobs, job);
  }
  for (i32 i = 0; i < num_jobs; ++i) job(i);
}

void wake_threads() {
  if (layer_threads() < 2 || contended_calls.load() > 0) return;
  const std::unique_lock<std::timed_mutex> lock(pool_in_use, std::try_to_lock);
  if (lock.owns_lock()) pool_of(layer_threads()).wake();
}

}  // namespace scanline
