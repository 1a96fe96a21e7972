// workers.cpp -- one set of threads per process, made when first needed.
#include "workers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "../threads/process.h"
#include "../threads/standby.h"
#include "../threads/thread_group.h"

namespace scanline {
namespace {

// Waking a thread that sleeps takes about as long, and a layer's next call comes sooner.
constexpr auto kPatience = std::chrono::microseconds(200);
constexpr auto kPatienceWhenExpecting = std::chrono::microseconds(500);
// So many calls after two callers met, nobody looks around: the cores are wanted elsewhere.
constexpr i32 kCrowdedCalls = 200;
// Less than a large call gains by more threads.
constexpr auto kWorthWaiting = std::chrono::milliseconds(2);

std::atomic<i32> crowded{0};

class Workers {
 public:
  explicit Workers(i32 num_threads) {
    threads_.start(num_threads - 1, [this](i32) { serve(); }, [this] { call_off(); });
  }

  ~Workers() {
    call_off();
    threads_.join();
  }

  i32 num_threads() const { return threads_.size() + 1; }

  void expect() {
    if (num_asleep_.load() == 0) return;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      expecting_.fetch_add(1);
    }
    begin_.notify_all();
  }

  void run(i32 num_jobs, const LayerJob& job) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = &job;
      num_jobs_ = num_jobs;
      next_.store(0, std::memory_order_relaxed);
      num_inside_.store(threads_.size());
      round_.fetch_add(1);
    }
    if (num_asleep_.load() > 0) begin_.notify_all();
    take_jobs();
    wait_for_others();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  // However long it takes: their jobs use memory of the caller.
  void wait_for_others() {
    if (soon([this] { return num_inside_.load() == 0; })) return;
    std::unique_lock<std::mutex> lock(mutex_);
    end_.wait(lock, [this] { return num_inside_.load() == 0; });
  }

  void call_off() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_.store(true);
    }
    begin_.notify_all();
  }

  void serve() {
    u64 seen = 0, seen_expecting = 0;
    while (true) {
      const auto is_called = [&] { return stopping_.load() || round_.load() != seen; };
      const bool expecting = expecting_.load() != seen_expecting;
      seen_expecting = expecting_.load();
      if (!is_called_soon(is_called, expecting ? kPatienceWhenExpecting : kPatience)) {
        sleep_until([&] { return is_called() || expecting_.load() != seen_expecting; });
        if (!is_called()) continue;
      }
      if (stopping_.load()) return;
      seen = round_.load();
      take_jobs();
      if (num_inside_.fetch_sub(1) > 1) continue;
      const std::lock_guard<std::mutex> lock(mutex_);
      end_.notify_one();
    }
  }

  template <class Condition>
  void sleep_until(const Condition& condition) {
    std::unique_lock<std::mutex> lock(mutex_);
    num_asleep_.fetch_add(1);
    begin_.wait(lock, condition);
    num_asleep_.fetch_sub(1);
  }

  // Whether the condition comes true within the time that waking a thread would take. Does not give
  // way: whatever else wants the core would keep it for milliseconds.
  template <class Condition>
  static bool soon(const Condition& condition) {
    return soon(condition, kPatience, [] { return false; });
  }

  // The same between two calls: a hand that is lent comes back in time for the next one.
  template <class Condition>
  static bool is_called_soon(const Condition& is_called, std::chrono::microseconds patience) {
    if (crowded.load() > 0) return is_called();
    Lookout lookout;
    const JobOffer::Stays stays = [&] { return !is_called(); };
    return soon(is_called, patience, [&] { return lookout.lends(stays); });
  }

  // Patience begins anew after every `distraction`.
  template <class Condition, class Distraction>
  static bool soon(const Condition& condition, std::chrono::microseconds patience,
                   const Distraction& distraction) {
    if (crowded.load() > 0) return condition();
    auto begun = std::chrono::steady_clock::now();
    while (!condition()) {
      if (distraction()) begun = std::chrono::steady_clock::now();
      if (std::chrono::steady_clock::now() - begun > patience) return false;
      relax();
    }
    return true;
  }

  // After a job has failed no other one begins.
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
  std::condition_variable begin_, end_;
  const LayerJob* job_ = nullptr;
  i32 num_jobs_ = 0;
  std::atomic<i32> next_{0};
  std::atomic<i32> num_inside_{0}, num_asleep_{0};
  std::atomic<u64> round_{0}, expecting_{0};
  std::atomic<bool> stopping_{false};
  std::exception_ptr error_;  // of the first job that failed; under the lock
  ThreadGroup threads_;
};

std::atomic<i32> num_wanted{0};
std::timed_mutex busy;
OfOneProcess<Workers> workers;

// The threads of this process.
Workers& workers_for(i32 num_threads) {
  if (!workers.is_here() || workers->num_threads() != num_threads)
    workers = OfOneProcess<Workers>(std::make_unique<Workers>(num_threads));
  return *workers;
}

}  // namespace

void set_layer_threads(i32 num_threads) { num_wanted.store(num_threads); }

i32 layer_threads() {
  const i32 wanted = num_wanted.load();
  return wanted > 0 ? wanted : static_cast<i32>(std::max(1U, std::thread::hardware_concurrency()));
}

void run_jobs(i32 num_jobs, const LayerJob& job, Size size) {
  const i32 num_threads = layer_threads();
  const bool leaves_them = size == Size::kSmall && crowded.load() > 0;  // to somebody's large call
  if (num_threads > 1 && num_jobs > 1 && !leaves_them) {
    std::unique_lock<std::timed_mutex> lock(busy, std::try_to_lock);
    if (lock.owns_lock()) {
      if (crowded.load() > 0) crowded.fetch_sub(1);
    } else {
      crowded.store(kCrowdedCalls);
      if (size == Size::kLarge) (void)lock.try_lock_for(kWorthWaiting);
    }
    if (lock.owns_lock()) return workers_for(num_threads).run(num_jobs, job);
  }
  for (i32 i = 0; i < num_jobs; ++i) job(i);
}

void expect_jobs() {
  if (layer_threads() < 2 || crowded.load() > 0) return;
  const std::unique_lock<std::timed_mutex> lock(busy, std::try_to_lock);
  if (lock.owns_lock()) workers_for(layer_threads()).expect();
}

}  // namespace scanline
