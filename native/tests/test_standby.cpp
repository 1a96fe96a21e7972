// test_standby.cpp -- hands are lent while threads look around, and no job is lost when they leave.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "../cpu/thread_pool.h"
#include "../layers/workers.h"
#include "../threads/patience.h"
#include "../threads/standby.h"
#include "check.h"

using namespace scanline;

namespace {

constexpr i32 kNumJobs = 12, kNumRounds = 2000;

ThreadPool::Clock::time_point in_a_minute() {
  return ThreadPool::Clock::now() + std::chrono::seconds(60);
}

// Counts how its offers are answered.
struct Counting : JobOffer {
  std::atomic<i32> num_lent{0}, num_declined{0};
  void lend(const Stays&) override { ++num_lent; }
  void decline() override { ++num_declined; }
};

void test_nobody_comes_when_nobody_looks() {
  Counting offer;
  CHECK(offer_jobs(offer, 3) == 0);
  CHECK(offer.num_lent == 0 && offer.num_declined == 0);
}

void test_who_looks_takes_the_offer_once() {
  Counting offer, other;
  Lookout lookout;
  CHECK(!lookout.lends([] { return true; }));
  CHECK(offer_jobs(offer, 3) == 1);
  CHECK(offer_jobs(other, 1) == 0);  // one offer waits at a time
  CHECK(lookout.lends([] { return true; }));
  CHECK(!lookout.lends([] { return true; }));
  CHECK(offer.num_lent == 1 && offer.num_declined == 0);
}

void test_who_leaves_declines() {
  Counting offer;
  {
    Lookout lookout;
    CHECK(offer_jobs(offer, 1) == 1);
  }
  CHECK(offer.num_lent == 0 && offer.num_declined == 1);
}

void test_a_withdrawn_offer_is_forgotten() {
  Counting offer;
  Lookout lookout;
  CHECK(offer_jobs(offer, 1) == 1);
  CHECK(withdraw_jobs(offer, Patience()));
  CHECK(!lookout.lends([] { return true; }));
}

// Holds the thread that comes until it is let go.
struct Holding : JobOffer {
  std::atomic<bool> entered{false}, let_go{false};
  void lend(const Stays&) override {
    entered = true;
    while (!let_go) std::this_thread::yield();
  }
  void decline() override {}
};

void test_withdrawing_waits_for_who_is_inside_and_not_for_ever() {
  Holding offer;
  std::atomic<bool> looks{false};
  std::thread looker([&] {
    Lookout lookout;
    looks = true;
    while (!lookout.lends([] { return true; })) relax();
  });
  while (!looks) std::this_thread::yield();
  CHECK(offer_jobs(offer, 1) == 1);
  while (!offer.entered) std::this_thread::yield();
  CHECK(!withdraw_jobs(offer, Patience(std::chrono::milliseconds(30))));
  offer.let_go = true;
  CHECK(withdraw_jobs(offer, Patience()));
  looker.join();
}

void test_waiting_for_a_thread_ends_with_what_was_waited_for() {
  std::string said;
  try {
    require_from_thread([] { return false; }, "the strips of a picture",
                        Patience(std::chrono::milliseconds(30)));
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  CHECK(said.find("the strips of a picture") != std::string::npos);
  std::atomic<bool> given{false};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    given = true;
  });
  require_from_thread([&] { return given.load(); }, "what comes late");
  other.join();
}

// Every thread fails in its turn, and the set of threads goes on.
void test_what_a_layers_job_throws_reaches_the_caller() {
  for (const i32 num_threads : {1, 2, 3}) {
    set_layer_threads(num_threads);
    for (i32 bad = 0; bad < 40; ++bad) {
      std::atomic<i32> num_done{0};
      bool thrown = false;
      try {
        run_jobs(40, [&](i32 job) {
          if (job == bad) throw std::bad_alloc();
          num_done.fetch_add(1);
        });
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      CHECK(thrown && num_done < 40);
      num_done = 0;
      run_jobs(40, [&](i32) { num_done.fetch_add(1); });
      CHECK(num_done == 40);
    }
  }
}

void test_a_forked_process_has_layers_threads_of_its_own() {
#if !SCANLINE_SANITIZED
  set_layer_threads(2);
  run_jobs(4, [](i32) {});
  for (const bool uses : {true, false}) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      std::atomic<i32> num_done{0};
      if (uses) run_jobs(4, [&](i32) { num_done.fetch_add(1); });
      std::exit(num_done == (uses ? 4 : 0) ? 0 : 1);  // ends what is static, unlike _exit
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

void test_a_list_is_done_by_who_looks_around() {
  Counted counted(1);
  Lookout lookout;
  counted.submit();
  CHECK(lookout.lends([] { return true; }));
  CHECK(counted.is_idle());
  counted.finish(true);
}

// The pool's own thread does the rest.
void test_who_is_called_away_leaves_the_rest() {
  Counted counted(1);
  {
    Lookout lookout;
    counted.submit();
    CHECK(lookout.lends([] { return false; }));
  }
  counted.finish(false);
}

void test_lists_end_while_lookers_come_and_go(i32 num_threads, bool helps, i32 stays_jobs) {
  Counted counted(num_threads);
  std::atomic<bool> ends{false};
  const auto look = [&] {
    while (!ends.load()) {
      Lookout lookout;
      for (i32 i = 0; i < 50; ++i) {
        i32 num = 0;
        lookout.lends([&] { return ++num < stays_jobs; });
        relax();
      }
    }
  };
  std::thread one(look), two(look);
  for (i32 round = 0; round < kNumRounds; ++round) {
    counted.submit();
    counted.finish(helps);
  }
  ends.store(true);
  one.join();
  two.join();
}

// What a rollout does: layers and environments take turns.
void test_layers_lend_their_threads_to_lists() {
  set_layer_threads(2);
  Counted counted(2);
  std::atomic<i32> num_done{0};
  for (i32 round = 1; round <= kNumRounds; ++round) {
    run_jobs(4, [&](i32) { num_done.fetch_add(1); });
    counted.submit();
    if (round % 3 == 0) run_jobs(4, [&](i32) { num_done.fetch_add(0); });  // calls them away
    counted.finish(round % 2 == 0);
    CHECK(num_done.load() == 4 * round);
  }
}

void test_pools_end_while_threads_look() {
  std::atomic<bool> ends{false};
  std::thread looker([&] {
    Lookout lookout;
    while (!ends.load()) lookout.lends([] { return true; });
  });
  for (i32 i = 0; i < 200; ++i) {
    Counted counted(2);
    counted.submit();
    counted.finish(false);
  }
  ends.store(true);
  looker.join();
}

}  // namespace

int main() {
  test_nobody_comes_when_nobody_looks();
  test_who_looks_takes_the_offer_once();
  test_who_leaves_declines();
  test_a_withdrawn_offer_is_forgotten();
  test_withdrawing_waits_for_who_is_inside_and_not_for_ever();
  test_waiting_for_a_thread_ends_with_what_was_waited_for();
  test_what_a_layers_job_throws_reaches_the_caller();
  test_a_forked_process_has_layers_threads_of_its_own();
  test_a_list_is_done_by_who_looks_around();
  test_who_is_called_away_leaves_the_rest();
  for (const bool helps : {true, false})
    for (const i32 num_threads : {1, 2, 4})
      for (const i32 stays_jobs : {1, 100})
        test_lists_end_while_lookers_come_and_go(num_threads, helps, stays_jobs);
  test_layers_lend_their_threads_to_lists();
  test_pools_end_while_threads_look();
  return check::result("test_standby");
}
