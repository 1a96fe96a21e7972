// batch.h -- many environments, stepped by threads.
//
// Takes actions; writes results into arrays of the caller. Groups are contiguous ranges of
// environments that are sent and received together: lockstep is one group, and `poll` tells which
// of several are ready. Each environment is stepped by one thread at a time, from its own state and
// its own random stream, so results depend neither on the number of threads nor on the
// neighbours. Nothing is allocated while stepping.
//
// Calls may come from different threads; a group is used by one at a time. Misuse (sending twice,
// stepping before a reset) is answered by a Status; the binding turns it into a Python error. What
// a job throws is thrown by the call that waits for it; its environment must be reset then. After a
// timeout jobs go on: their arrays are kept alive, and the group is in use, until they are done.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "../env/slot.h"
#include "../threads/fork_guard.h"
#include "stack_arrays.h"
#include "step_arrays.h"
#include "thread_pool.h"

namespace scanline {

enum class Status : u8 {
  kOk,
  kBusy,       // results have not been received, or another call uses the group
  kLate,       // a reset that ran out of time still runs
  kNotSent,    // nothing was sent
  kNotReset,   // an environment was stepped before its first reset
  kEnded,      // an ended environment must be reset first: autoreset is disabled
  kBadAction,  // an action index is not in the environment's set
  kTimeout,
};

struct Outcome {
  Status status = Status::kOk;
  i32 env = -1;  // the environment it is about, if one
};

template <class Env>
class Batch {
  struct Group;
  enum class Phase : u8 {
    kRest,
    kHeld,  // by a call
    kSent,  // a step was sent and has not been received
    kLate,  // a reset ran out of time, its jobs may still run
  };

 public:
  using Clock = ThreadPool::Clock;
  using Slots = std::vector<std::unique_ptr<Slot<Env>>>;

  Batch(Slots slots, i32 num_groups, i32 num_threads)
      : slots_(std::move(slots)),
        row_bytes_(bytes_of(*slots_[0]->rules)),
        staging_(num_envs(), row_bytes_),
        jobs_(slots_.size()),
        num_threads_(num_threads),
        pool_(
            std::make_unique<ThreadPool>(num_threads, num_groups, [this](i32 env) { run(env); })) {
    for (i32 g = 0; g < num_groups; ++g)
      groups_.emplace_back(new Group(group_size(num_groups), num_threads));
  }

  i32 num_envs() const { return static_cast<i32>(slots_.size()); }
  i32 num_groups() const { return static_cast<i32>(groups_.size()); }
  i32 num_threads() const { return num_threads_; }
  const RowBytes& row_bytes() const { return row_bytes_; }
  i32 group_size() const { return group_size(num_groups()); }
  Slot<Env>& slot(i32 env) { return *slots_[static_cast<size_t>(env)]; }

  struct Reset {
    const bool* mask = nullptr;   // [b], or null for all
    const Seed* seeds = nullptr;  // [b], or null: the random draws go on
    bool resume = false;          // only do what an end or a lost life waits for
  };

  // Starts episodes and waits for them; first for those of a reset that ran out of time.
  Outcome reset(i32 group, const StepArrays& out, const Reset& how, Clock::time_point deadline) {
    ThreadPool& pool = *pool_;
    Group& g = this->group(group);
    if (g.phase == Phase::kLate && !pool.wait(g.work, deadline)) return {Status::kTimeout, -1};
    Claim claim(*this, group);
    if (!claim) return {claim.status(), -1};
    i32 num_jobs = 0;
    for (i32 i = 0; i < group_size(); ++i) {
      if (how.mask != nullptr && !how.mask[i]) continue;
      const i32 env = group * group_size() + i;
      if (how.seeds == nullptr && !slot(env).episode.state.started && !how.resume)
        return {Status::kNotReset, env};
      prepare(env, how.resume ? Kind::kRestart : Kind::kReset, 0, out.row(i, row_bytes_));
      if (how.seeds != nullptr) {
        jobs_[static_cast<size_t>(env)].loads = true;
        jobs_[static_cast<size_t>(env)].seed = how.seeds[i];
      }
      g.work.jobs()[num_jobs++] = env;
    }
    g.owner = out.owner;
    g.stacks = {};
    g.work.arm(num_jobs);
    if (num_jobs > 0) pool.submit(g.work, num_jobs);
    if (!pool.wait(g.work, deadline)) {
      claim.leave(Phase::kLate);
      return {Status::kTimeout, -1};
    }
    return finished(g);
  }

  struct Actions {
    Actions(const i64* indices, const float* strengths = nullptr)
        : indices(indices), strengths(strengths) {}
    const i64* indices;      // [b]
    const float* strengths;  // [b] of paddles, 0 to 1; null: all 1
  };

  // `out` may be null: the results then wait in the batch until they are received. With `stacks`,
  // whose newest frames are those of `out`, observations are written as well.
  Outcome send(i32 group, const Actions& actions, const StepArrays* out,
               const StackArrays& stacks = {}) {
    ThreadPool& pool = *pool_;
    Group& g = this->group(group);
    Claim claim(*this, group);
    if (!claim) return {claim.status(), -1};
    const i32 first = group * group_size();
    for (i32 i = 0; i < group_size(); ++i) {
      const Outcome outcome = check(first + i, actions.indices[i]);
      if (outcome.status != Status::kOk) return outcome;
    }
    for (i32 i = 0; i < group_size(); ++i) {
      const StepRow row =
          out != nullptr ? out->row(i, row_bytes_) : staging_.arrays().row(first + i, row_bytes_);
      prepare(first + i, Kind::kStep, static_cast<u32>(actions.indices[i]), row);
      if (actions.strengths != nullptr)
        jobs_[static_cast<size_t>(first + i)].strength = actions.strengths[i];
      g.work.jobs()[i] = first + i;
    }
    g.staged = out == nullptr;
    if (out != nullptr) g.owner = out->owner;
    g.stacks = stacks;
    g.work.arm(group_size());
    // Between the two: a poll in another thread must neither miss the end nor see the last one's.
    claim.leave(Phase::kSent);
    pool.submit(g.work, group_size());
    return {};
  }

  // Waits for what was sent; copies it to `out` if `send` was not told where it goes.
  Outcome recv(i32 group, const StepArrays* out, Clock::time_point deadline) {
    ThreadPool& pool = *pool_;
    Group& g = this->group(group);
    if (g.phase != Phase::kSent) return {Status::kNotSent, -1};
    if (!pool.wait(g.work, deadline)) return {Status::kTimeout, -1};
    Claim claim(*this, group, Phase::kSent);
    if (!claim) return {Status::kNotSent, -1};  // another thread has received it
    const Outcome outcome = finished(g);
    if (!g.staged || out == nullptr) return outcome;
    const i32 first = group * group_size();
    for (i32 i = 0; i < group_size(); ++i) {
      copy_row(staging_.arrays().row(first + i, row_bytes_), out->row(i, row_bytes_), row_bytes_);
    }
    return outcome;
  }

  // Fills `ready` with the groups whose results wait; gives their number, 0 when time is up.
  i32 poll(i32* ready, Clock::time_point deadline) {
    ThreadPool& pool = *pool_;
    const auto any = [this] {
      for (const auto& g : groups_) {
        if (g->phase == Phase::kSent && g->work.idle()) return true;
      }
      return false;
    };
    if (!pool.wait_for(any, deadline)) return 0;
    i32 count = 0;
    for (i32 g = 0; g < num_groups(); ++g) {
      if (group(g).phase == Phase::kSent && pool.idle(group(g).work)) ready[count++] = g;
    }
    return count;
  }

  // Ends the threads; false if one is stuck in a job, so that nothing may be freed. Where they do
  // not exist there is nothing to end.
  bool stop(Timeout timeout = Timeout()) { return !pool_.is_usable() || pool_->stop(timeout); }

  // A group that no other call uses: nothing of it is stepped or reset meanwhile.
  class Claim {
   public:
    Claim(Batch& batch, i32 group) : Claim(batch, group, Phase::kRest) {
      Group& g = *group_;
      if (!*this && g.phase == Phase::kLate && batch.pool_->idle(g.work)) take(Phase::kLate);
    }
    ~Claim() {
      if (*this) leave(Phase::kRest);
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    explicit operator bool() const { return holds_; }
    // Why it was not given.
    Status status() const {
      return holds_ ? Status::kOk : group_->phase == Phase::kLate ? Status::kLate : Status::kBusy;
    }

   private:
    friend class Batch;
    Claim(Batch& batch, i32 group, Phase from) : group_(&batch.group(group)) {
      (void)*batch.pool_;  // refused in a forked process
      take(from);
    }
    void take(Phase from) { holds_ = group_->phase.compare_exchange_strong(from, Phase::kHeld); }
    void leave(Phase phase) {
      holds_ = false;
      group_->phase = phase;
    }

    Group* group_;
    bool holds_ = false;
  };

 private:
  enum class Kind : u8 { kStep, kReset, kRestart };

  struct Job {
    StepRow row{};
    u32 action = 0;
    float strength = 1.0f;
    Kind kind = Kind::kStep;
    bool loads = false;  // begin with a console loaded anew, from `seed`
    Seed seed;
  };

  struct Group {
    Group(i32 size, i32 num_threads) : work(size, num_threads) {}
    Work work;
    std::atomic<Phase> phase{Phase::kRest};
    bool staged = false;
    std::shared_ptr<const void> owner;  // of the arrays that jobs write to
    StackArrays stacks;                 // what the jobs at hand write besides
  };

  Group& group(i32 number) { return *groups_[static_cast<size_t>(number)]; }

  i32 group_size(i32 num_groups) const { return num_envs() / num_groups; }

  static RowBytes bytes_of(const EpisodeRules& rules) {
    const i32 frame = rules.observer->frame_bytes();
    return {frame, num_start_frames(rules.settings) * frame};
  }

  Outcome check(i32 env, i64 action) {
    const auto& episode = slot(env).episode;
    if (!episode.state.started) return {Status::kNotReset, env};
    if (action < 0 || action >= static_cast<i64>(episode.num_actions()))
      return {Status::kBadAction, env};
    const bool disabled = slot(env).rules->settings.autoreset == Autoreset::kDisabled;
    if (disabled && episode.state.pending != 0) return {Status::kEnded, env};
    return {};
  }

  void prepare(i32 env, Kind kind, u32 action, const StepRow& row) {
    Job& job = jobs_[static_cast<size_t>(env)];
    job.row = row;
    job.action = action;
    job.kind = kind;
    job.strength = 1.0f;
    job.loads = false;
  }

  // All jobs are done: lets go of the arrays and throws what a job threw.
  static Outcome finished(Group& group) {
    group.owner = nullptr;
    group.stacks.owner = nullptr;
    if (group.work.error) std::rethrow_exception(std::exchange(group.work.error, nullptr));
    return {};
  }

  void run(i32 env) {
    try {
      run_job(env);
    } catch (...) {
      slot(env).episode.state.started = 0;
      throw;
    }
  }

  void run_job(i32 env) {
    static thread_local Observer::Scratch scratch;
    const Job& job = jobs_[static_cast<size_t>(env)];
    Episode<Env>& episode = slot(env).episode;
    if (job.loads) slot(env).load(job.seed);
    slot(env).env.set_strength(job.strength);
    switch (job.kind) {
      case Kind::kStep:
        episode.step(job.action, job.row, scratch);
        break;
      case Kind::kReset:
        episode.reset(job.row, scratch);
        break;
      case Kind::kRestart:
        episode.restart(job.row, scratch);
        break;
    }
    const StackArrays& stacks = group(env / group_size()).stacks;
    if (stacks.observations != nullptr)
      stacks.write(env % group_size(), group_size(), job.row, static_cast<size_t>(row_bytes_.frame),
                   slot(env).rules->settings);
  }

  Slots slots_;
  RowBytes row_bytes_;
  Staging staging_;
  std::vector<Job> jobs_;
  std::vector<std::unique_ptr<Group>> groups_;
  i32 num_threads_;
  ForkGuarded<ThreadPool> pool_;  // last: its threads use all of the above
};

}  // namespace scanline
