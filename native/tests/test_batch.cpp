// test_batch.cpp -- results must not depend on threads, groups or the way of waiting, and whatever
// goes wrong must reach the caller.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "../cpu/batch.h"
#include "check.h"
#include "fake_env.h"

using namespace scanline;

namespace {

constexpr i32 kNumEnvs = 12, kFrameBytes = 84 * 84, kNumSteps = 60;
constexpr RowBytes kRow = {kFrameBytes, 3 * kFrameBytes};
using Fakes = Batch<FakeEnv>;

const Fakes::Clock::time_point soon() { return Fakes::Clock::now() + std::chrono::seconds(60); }

bool at_rest(Fakes& batch) {
  bool rest = true;
  for (i32 g = 0; g < batch.num_groups(); ++g) rest = rest && Fakes::Claim(batch, g);
  return rest;
}

EnvSettings usual() {
  EnvSettings s;
  s.noop_min = 1;
  s.frame_skip_min = 2;
  s.autoreset = Autoreset::kSameStep;
  s.terminal_frame = TerminalFrame::kStale;
  s.stack_padding = StackPadding::kNoopSteps;
  return s;
}

std::unique_ptr<Fakes> make_batch(const EnvSettings& settings, const Observer& observer,
                                  i32 num_groups, i32 num_threads) {
  Fakes::Slots slots;
  for (i32 i = 0; i < kNumEnvs; ++i) {
    slots.emplace_back(new Slot<FakeEnv>(fake_rules(settings, observer), nullptr, 2 + i % 3, 31));
    slots.back()->env.logs = false;
  }
  return std::make_unique<Fakes>(std::move(slots), num_groups, num_threads);
}

Seed seed_of(i32 env) { return {static_cast<u32>(env), EnvStream{{3, 4}, static_cast<u32>(env)}}; }

// A reset of a whole group from its seeds.
Outcome start(Fakes& batch, i32 group, const StepArrays& out) {
  std::vector<Seed> seeds;
  for (i32 i = 0; i < batch.group_size(); ++i)
    seeds.push_back(seed_of(group * batch.group_size() + i));
  return batch.reset(group, out, {nullptr, seeds.data(), false}, soon());
}

i64 action_of(i32 env, i32 step) { return (env * 7 + step * 3) % 5; }

// Everything that came out of a run, in the order of environments and steps.
struct Record {
  std::vector<float> numbers;
  std::vector<u8> frames;
  bool operator==(const Record& other) const {
    return numbers == other.numbers && frames == other.frames;
  }
  void note(const StepArrays& a, i32 at, i32 env, i32 step) {
    const size_t place = static_cast<size_t>(step * kNumEnvs + env);
    numbers.resize(static_cast<size_t>((kNumSteps + 1) * kNumEnvs * 8));
    frames.resize(static_cast<size_t>((kNumSteps + 1) * kNumEnvs) * 4 * kFrameBytes);
    const float values[8] = {
        a.reward[at],           a.raw_reward[at],   float(a.terminated[at]), float(a.truncated[at]),
        float(a.life_lost[at]), float(a.lives[at]), float(a.depth[at]),      a.episode_return[at]};
    std::memcpy(&numbers[place * 8], values, sizeof values);
    u8* to = &frames[place * 4 * kFrameBytes];
    std::memcpy(to, a.frame + at * kFrameBytes, kFrameBytes);
    if (a.depth[at] == 1)
      std::memcpy(to + kFrameBytes, a.start_frames + at * kRow.start_frames,
                  static_cast<size_t>(kRow.start_frames));
  }
};

Record by_groups(i32 num_groups, i32 num_threads, bool direct) {
  const Observer observer(usual(), FakeEnv::kHeight, FakePalette().view());
  auto batch = make_batch(usual(), observer, num_groups, num_threads);
  const i32 size = batch->group_size();
  std::vector<std::unique_ptr<Staging>> out;
  Record record;
  for (i32 g = 0; g < num_groups; ++g) {
    out.emplace_back(new Staging(size, kRow));
    const StepArrays& a = out.back()->arrays();
    CHECK(start(*batch, g, a).status == Status::kOk);
    for (i32 i = 0; i < size; ++i) record.note(a, i, g * size + i, 0);
  }
  for (i32 step = 1; step <= kNumSteps; ++step) {
    for (i32 g = 0; g < num_groups; ++g) {
      std::vector<i64> actions;
      for (i32 i = 0; i < size; ++i) actions.push_back(action_of(g * size + i, step));
      const StepArrays* a = direct ? &out[static_cast<size_t>(g)]->arrays() : nullptr;
      CHECK(batch->send(g, actions.data(), a).status == Status::kOk);
    }
    for (i32 g = num_groups - 1; g >= 0; --g) {
      const StepArrays& a = out[static_cast<size_t>(g)]->arrays();
      CHECK(batch->recv(g, &a, soon()).status == Status::kOk);
      for (i32 i = 0; i < size; ++i) record.note(a, i, g * size + i, step);
    }
  }
  CHECK(at_rest(*batch));
  return record;
}

void test_results_do_not_depend_on_threads_groups_or_waiting() {
  const Record reference = by_groups(1, 1, true);
  CHECK(reference.numbers.size() > 0);
  for (i32 num_threads : {1, 2, 5}) {
    for (i32 num_groups : {1, 2, 4, 12}) {
      CHECK(by_groups(num_groups, num_threads, true) == reference);
      CHECK(by_groups(num_groups, num_threads, false) == reference);
    }
  }
}

void test_misuse_is_named() {
  EnvSettings s = usual();
  s.autoreset = Autoreset::kDisabled;
  const Observer observer(s, FakeEnv::kHeight, FakePalette().view());
  auto batch = make_batch(s, observer, 2, 2);
  Staging out(6, kRow);
  i64 actions[6] = {0, 0, 0, 0, 0, 0};
  CHECK(batch->send(0, actions, nullptr).status == Status::kNotReset);
  CHECK(batch->recv(0, &out.arrays(), soon()).status == Status::kNotSent);
  CHECK(batch->reset(0, out.arrays(), {}, soon()).status == Status::kNotReset);
  start(*batch, 0, out.arrays());
  actions[3] = 5;
  const Outcome bad = batch->send(0, actions, nullptr);
  CHECK(bad.status == Status::kBadAction && bad.env == 3);
  actions[3] = -1;
  CHECK(batch->send(0, actions, nullptr).status == Status::kBadAction);
  actions[3] = 0;
  CHECK(batch->send(0, actions, nullptr).status == Status::kOk);
  CHECK(batch->send(0, actions, nullptr).status == Status::kBusy);
  CHECK(batch->reset(0, out.arrays(), {}, soon()).status == Status::kBusy);
  CHECK(batch->recv(0, &out.arrays(), soon()).status == Status::kOk);
  Outcome outcome;
  for (i32 i = 0; i < 100 && outcome.status == Status::kOk; ++i) {
    outcome = batch->send(0, actions, nullptr);
    if (outcome.status == Status::kOk) batch->recv(0, &out.arrays(), soon());
  }
  CHECK(outcome.status == Status::kEnded);
  bool mask[6] = {};
  mask[outcome.env] = true;
  CHECK(batch->reset(0, out.arrays(), {mask, nullptr, true}, soon()).status == Status::kOk);
}

void test_poll_gives_the_groups_that_are_ready() {
  const Observer observer(usual(), FakeEnv::kHeight, FakePalette().view());
  auto batch = make_batch(usual(), observer, 4, 2);
  Staging out(3, kRow);
  i32 ready[4];
  CHECK(batch->poll(ready, Fakes::Clock::now() + std::chrono::milliseconds(5)) == 0);
  const i64 actions[3] = {0, 0, 0};
  for (i32 g = 0; g < 4; ++g) start(*batch, g, out.arrays());
  batch->send(2, actions, nullptr);
  CHECK(batch->poll(ready, soon()) == 1 && ready[0] == 2);
  CHECK(batch->poll(ready, soon()) == 1);
  batch->recv(2, &out.arrays(), soon());
  CHECK(batch->poll(ready, Fakes::Clock::now() + std::chrono::milliseconds(5)) == 0);
}

// One thread sends, another polls and receives: every step comes out once.
void test_what_one_thread_sends_another_polls() {
  constexpr i32 kRounds = 4000, kGroups = 4;
  const Observer observer(usual(), FakeEnv::kHeight, FakePalette().view());
  auto batch = make_batch(usual(), observer, kGroups, 1);
  Staging first(3, kRow);
  for (i32 g = 0; g < kGroups; ++g) start(*batch, g, first.arrays());
  std::atomic<i32> received[kGroups] = {};
  std::atomic<bool> failed{false};
  std::thread receiver([&] {
    Staging out(3, kRow);
    i32 ready[kGroups];
    for (i32 left = kRounds * kGroups; left > 0 && !failed;) {
      const i32 num = batch->poll(ready, Fakes::Clock::now() + std::chrono::seconds(10));
      failed = failed || num == 0;
      for (i32 i = 0; i < num; ++i, --left) {
        if (batch->recv(ready[i], &out.arrays(), soon()).status != Status::kOk) failed = true;
        ++received[ready[i]];
      }
    }
  });
  const i64 actions[3] = {1, 2, 3};
  for (i32 round = 0; round < kRounds && !failed; ++round) {
    for (i32 g = 0; g < kGroups && !failed; ++g) {
      while (received[g] < round && !failed) std::this_thread::yield();
      if (batch->send(g, actions, nullptr).status != Status::kOk) failed = true;
    }
  }
  receiver.join();
  CHECK(!failed);
  for (const std::atomic<i32>& number : received) CHECK(number == kRounds);
  CHECK(at_rest(*batch));
}

// What an exception says, or "".
template <class Call>
std::string said(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void test_a_reset_that_runs_out_of_time_holds_group_and_arrays() {
  const Observer observer(usual(), FakeEnv::kHeight, FakePalette().view());
  auto batch = make_batch(usual(), observer, 2, 2);
  std::atomic<bool> open{false};
  for (i32 i = 0; i < 6; ++i) batch->slot(i).env.open = &open;
  auto memory = std::make_shared<Staging>(6, kRow);
  StepArrays arrays = memory->arrays();
  arrays.owner = memory;
  const std::weak_ptr<Staging> alive = memory;
  std::vector<Seed> seeds(6);
  const Fakes::Reset from_seeds{nullptr, seeds.data(), false};
  CHECK(batch->reset(0, arrays, from_seeds, Fakes::Clock::now()).status == Status::kTimeout);
  CHECK(batch->reset(0, arrays, from_seeds, Fakes::Clock::now()).status == Status::kTimeout);
  arrays = {};
  memory.reset();
  CHECK(alive.lock() != nullptr);
  const i64 actions[6] = {};
  CHECK(batch->send(0, actions, nullptr).status == Status::kLate);
  CHECK(!Fakes::Claim(*batch, 0));
  Staging out(6, kRow);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    open = true;
  });
  CHECK(start(*batch, 0, out.arrays()).status == Status::kOk);
  opener.join();
  CHECK(alive.lock() == nullptr);
  CHECK(at_rest(*batch));
}

void test_a_running_reset_is_no_rest() {
  const Observer observer(usual(), FakeEnv::kHeight, FakePalette().view());
  auto batch = make_batch(usual(), observer, 1, 2);
  Staging out(kNumEnvs, kRow);
  start(*batch, 0, out.arrays());
  std::atomic<bool> open{false};
  for (i32 i = 0; i < kNumEnvs; ++i) batch->slot(i).env.open = &open;
  std::atomic<bool> ended{false};
  std::thread resetting([&] {
    CHECK(start(*batch, 0, out.arrays()).status == Status::kOk);
    ended = true;
  });
  while (Fakes::Claim(*batch, 0)) std::this_thread::yield();
  CHECK(!ended);
  const i64 actions[kNumEnvs] = {};
  CHECK(batch->send(0, actions, nullptr).status == Status::kBusy);
  CHECK(batch->recv(0, nullptr, soon()).status == Status::kNotSent);
  open = true;
  resetting.join();
  CHECK(at_rest(*batch));
}

// Each environment in turn, so that callers, the pool's threads and others meet it.
void test_what_a_job_throws_reaches_the_caller() {
  const Observer observer(usual(), FakeEnv::kHeight, FakePalette().view());
  auto batch = make_batch(usual(), observer, 1, 2);
  Staging out(kNumEnvs, kRow);
  start(*batch, 0, out.arrays());
  const i64 actions[kNumEnvs] = {};
  for (i32 env = 0; env < kNumEnvs; ++env) {
    std::atomic<bool> fails{true};
    batch->slot(env).env.fails = &fails;
    CHECK(batch->send(0, actions, &out.arrays()).status == Status::kOk);
    i32 ready[1];
    CHECK(batch->poll(ready, soon()) == 1);
    CHECK(said([&] { batch->recv(0, nullptr, soon()); }) == std::bad_alloc().what());
    const Outcome refused = batch->send(0, actions, &out.arrays());
    CHECK(refused.status == Status::kNotReset && refused.env == env);
    CHECK(said([&] { start(*batch, 0, out.arrays()); }) == std::bad_alloc().what());
    fails = false;
    CHECK(start(*batch, 0, out.arrays()).status == Status::kOk);
    batch->slot(env).env.fails = nullptr;
    CHECK(batch->send(0, actions, &out.arrays()).status == Status::kOk);
    CHECK(batch->recv(0, nullptr, soon()).status == Status::kOk);
  }
}

void test_a_batch_with_a_stuck_job_is_not_ended() {
  const Observer observer(usual(), FakeEnv::kHeight, FakePalette().view());
  auto batch = make_batch(usual(), observer, 1, 2);
  Staging out(kNumEnvs, kRow);
  start(*batch, 0, out.arrays());
  std::atomic<bool> open{false};
  for (i32 i = 0; i < kNumEnvs; ++i) batch->slot(i).env.open = &open;
  const i64 actions[kNumEnvs] = {};
  CHECK(batch->send(0, actions, nullptr).status == Status::kOk);
  while (batch->poll(nullptr, Fakes::Clock::now() + std::chrono::milliseconds(50)) > 0) continue;
  CHECK(!batch->stop(Timeout(std::chrono::milliseconds(50))));
  open = true;
  CHECK(batch->stop());
}

// The system grants a few threads, and no more.
void test_threads_that_are_not_granted_are_an_error() {
#if !SCANLINE_SANITIZED
  constexpr i32 kTooMany = 200;
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t used = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  const rlimit few{used + (rlim_t{256} << 20), before.rlim_max};
  setrlimit(RLIMIT_AS, &few);
  const auto make = [] { ThreadPool(kTooMany, 1, [](i32) {}); };
  CHECK(said(make).find("of 200 threads") != std::string::npos);
  setrlimit(RLIMIT_AS, &before);
  CHECK(said(make).empty());
#endif
}

void test_a_forked_process_can_end_but_not_use_it() {
#if !SCANLINE_SANITIZED
  const Observer observer(usual(), FakeEnv::kHeight, FakePalette().view());
  auto batch = make_batch(usual(), observer, 1, 2);
  Staging out(kNumEnvs, kRow);
  start(*batch, 0, out.arrays());
  const i64 actions[kNumEnvs] = {};
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const std::string sentence = said([&] { batch->send(0, actions, nullptr); });
    batch.reset();
    _exit(sentence.find("forked") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(batch->send(0, actions, &out.arrays()).status == Status::kOk);
  CHECK(batch->recv(0, nullptr, soon()).status == Status::kOk);
#endif
}

}  // namespace

int main() {
  test_results_do_not_depend_on_threads_groups_or_waiting();
  test_misuse_is_named();
  test_poll_gives_the_groups_that_are_ready();
  test_what_one_thread_sends_another_polls();
  test_a_reset_that_runs_out_of_time_holds_group_and_arrays();
  test_a_running_reset_is_no_rest();
  test_what_a_job_throws_reaches_the_caller();
  test_a_batch_with_a_stuck_job_is_not_ended();
  test_threads_that_are_not_granted_are_an_error();
  test_a_forked_process_can_end_but_not_use_it();
  return check::result("test_batch");
}
