// test_work_sharing.cpp -- idle workers run jobs of other pools, and no job is lost when they stop.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "../cpu/thread_pool.h"
#include "../layers/parallel_for.h"
#include "../threads/spin_wait.h"
#include "../threads/work_sharing.h"
#include "check.h"

using namespace scanline;

namespace {

constexpr i32 kNumJobs = 12, kNumRounds = 2000;

ThreadPool::Clock::time_point in_a_minute() {
  return ThreadPool::Clock::now() + std::chrono::seconds(60);
}

// Counts the answers to its requests.
struct Counting : JobSource {
  std::atomic<i32> num_helped{0}, num_dropped{0};
  void run_in_helper(const KeepRunning&) override { ++num_helped; }
  void on_request_dropped() override { ++num_dropped; }
};

void test_no_helper_without_idle_workers() {
  Counting source;
  CHECK(request_helpers(source, 3) == 0);
  CHECK(source.num_helped == 0 && source.num_dropped == 0);
}

void test_an_idle_worker_takes_a_request_once() {
  Counting source, other;
  IdleWorker worker;
  CHECK(!worker.help([] { return true; }));
  CHECK(request_helpers(source, 3) == 1);
  CHECK(request_helpers(other, 1) == 0);  // one request is pending at a time
  CHECK(worker.help([] { return true; }));
  CHECK(!worker.help([] { return true; }));
  CHECK(source.num_helped == 1 && source.num_dropped == 0);
}

void test_a_worker_that_stops_being_idle_drops_the_request() {
  Counting source;
  {
    IdleWorker worker;
    CHECK(request_helpers(source, 1) == 1);
  }
  CHECK(source.num_helped == 0 && source.num_dropped == 1);
}

void test_a_cancelled_request_is_gone() {
  Counting source;
  IdleWorker worker;
  CHECK(request_helpers(source, 1) == 1);
  CHECK(cancel_request(source, Timeout()));
  CHECK(!worker.help([] { return true; }));
}

// Holds its helper until `released`.
struct Holding : JobSource {
  std::atomic<bool> entered{false}, released{false};
  void run_in_helper(const KeepRunning&) override {
    entered = true;
    while (!released) std::this_thread::yield();
  }
  void on_request_dropped() override {}
};

void test_cancelling_waits_for_helpers_until_the_timeout() {
  Holding source;
  std::atomic<bool> is_idle{false};
  std::thread idle([&] {
    IdleWorker worker;
    is_idle = true;
    while (!worker.help([] { return true; })) cpu_relax();
  });
  while (!is_idle) std::this_thread::yield();
  CHECK(request_helpers(source, 1) == 1);
  while (!source.entered) std::this_thread::yield();
  CHECK(!cancel_request(source, Timeout(std::chrono::milliseconds(30))));
  source.released = true;
  CHECK(cancel_request(source, Timeout()));
  idle.join();
}

void test_a_timeout_names_what_was_waited_for() {
  std::string said;
  try {
    spin_wait_or_throw([] { return false; }, "the strips of an image",
                       Timeout(std::chrono::milliseconds(30)));
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  CHECK(said.find("the strips of an image") != std::string::npos);
  std::atomic<bool> given{false};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    given = true;
  });
  spin_wait_or_throw([&] { return given.load(); }, "a late flag");
  other.join();
}

// Every job fails once, and the pool still works.
void test_an_exception_of_a_layer_job_reaches_the_caller() {
  for (const i32 num_threads : {1, 2, 3}) {
    set_layer_threads(num_threads);
    for (i32 bad = 0; bad < 40; ++bad) {
      std::atomic<i32> num_done{0};
      bool thrown = false;
      try {
        parallel_for(40, [&](i32 job) {
          if (job == bad) throw std::bad_alloc();
          num_done.fetch_add(1);
        });
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      CHECK(thrown && num_done < 40);
      num_done = 0;
      parallel_for(40, [&](i32) { num_done.fetch_add(1); });
      CHECK(num_done == 40);
    }
  }
}

void test_a_forked_process_has_its_own_layer_threads() {
#if !SCANLINE_SANITIZED
  set_layer_threads(2);
  parallel_for(4, [](i32) {});
  for (const bool uses : {true, false}) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      std::atomic<i32> num_done{0};
      if (uses) parallel_for(4, [&](i32) { num_done.fetch_add(1); });
      std::exit(num_done == (uses ? 4 : 0) ? 0 : 1);  // runs static destructors, unlike _exit
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
#endif
}

// Lists of jobs, each of which must be done once.
class Counted {
 public:
  explicit Counted(i32 num_threads)
      : work_(kNumJobs, num_threads),
        pool_(num_threads, 1, [this](i32 job) { done_[static_cast<size_t>(job)].fetch_add(1); }) {}

  void submit() {
    for (i32 i = 0; i < kNumJobs; ++i) work_.jobs()[i] = i;
    work_.arm(kNumJobs);
    pool_.submit(work_, kNumJobs);
  }

  bool is_idle() const { return work_.idle(); }

  // By helping, or by nothing but waiting as a poll does.
  void finish(bool helps) {
    const bool in_time = helps ? pool_.wait(work_, in_a_minute())
                               : pool_.wait_for([this] { return work_.idle(); }, in_a_minute());
    CHECK(in_time);
    ++num_rounds_;
    for (const auto& each : done_) CHECK(each.load() == num_rounds_);
  }

 private:
  i32 num_rounds_ = 0;
  std::array<std::atomic<i32>, kNumJobs> done_{};
  Work work_;
  ThreadPool pool_;
};

void test_an_idle_worker_runs_a_list() {
  Counted counted(1);
  IdleWorker worker;
  counted.submit();
  CHECK(worker.help([] { return true; }));
  CHECK(counted.is_idle());
  counted.finish(true);
}

// The pool's own thread does the rest.
void test_a_helper_that_is_called_back_leaves_the_rest() {
  Counted counted(1);
  {
    IdleWorker worker;
    counted.submit();
    CHECK(worker.help([] { return false; }));
  }
  counted.finish(false);
}

void test_lists_end_while_idle_workers_come_and_go(i32 num_threads, bool helps, i32 max_jobs) {
  Counted counted(num_threads);
  std::atomic<bool> ends{false};
  const auto be_idle = [&] {
    while (!ends.load()) {
      IdleWorker worker;
      for (i32 i = 0; i < 50; ++i) {
        i32 num = 0;
        worker.help([&] { return ++num < max_jobs; });
        cpu_relax();
      }
    }
  };
  std::thread one(be_idle), two(be_idle);
  for (i32 round = 0; round < kNumRounds; ++round) {
    counted.submit();
    counted.finish(helps);
  }
  ends.store(true);
  one.join();
  two.join();
}

// As in a rollout: layers and environments take turns.
void test_layer_threads_help_with_lists() {
  set_layer_threads(2);
  Counted counted(2);
  std::atomic<i32> num_done{0};
  for (i32 round = 1; round <= kNumRounds; ++round) {
    parallel_for(4, [&](i32) { num_done.fetch_add(1); });
    counted.submit();
    if (round % 3 == 0) parallel_for(4, [&](i32) { num_done.fetch_add(0); });  // calls helpers back
    counted.finish(round % 2 == 0);
    CHECK(num_done.load() == 4 * round);
  }
}

void test_pools_end_while_workers_are_idle() {
  std::atomic<bool> ends{false};
  std::thread idle([&] {
    IdleWorker worker;
    while (!ends.load()) worker.help([] { return true; });
  });
  for (i32 i = 0; i < 200; ++i) {
    Counted counted(2);
    counted.submit();
    counted.finish(false);
  }
  ends.store(true);
  idle.join();
}

}  // namespace

int main() {
  test_no_helper_without_idle_workers();
  test_an_idle_worker_takes_a_request_once();
  test_a_worker_that_stops_being_idle_drops_the_request();
  test_a_cancelled_request_is_gone();
  test_cancelling_waits_for_helpers_until_the_timeout();
  test_a_timeout_names_what_was_waited_for();
  test_an_exception_of_a_layer_job_reaches_the_caller();
  test_a_forked_process_has_its_own_layer_threads();
  test_an_idle_worker_runs_a_list();
  test_a_helper_that_is_called_back_leaves_the_rest();
  for (const bool helps : {true, false})
    for (const i32 num_threads : {1, 2, 4})
      for (const i32 max_jobs : {1, 100})
        test_lists_end_while_idle_workers_come_and_go(num_threads, helps, max_jobs);
  test_layer_threads_help_with_lists();
  test_pools_end_while_workers_are_idle();
  return check::result("test_work_sharing");
}
