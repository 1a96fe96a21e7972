// spin_wait.h -- waiting for a condition that another thread makes true, with a timeout.
//
// Takes a condition; gives whether it came true in time, or throws. Knows no job and no pool.
// The timeout is generous, since the system may not run a thread for a while. Time in which the
// waiting thread itself did not run (a stopped process) hardly counts.
#pragma once

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "../core/types.h"

namespace scanline {

// The body of a spin loop: tells the processor that this thread waits.
inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Time that is left to wait. Polled: each poll subtracts the time since the last one, at most
// kMaxCharge.
class Timeout {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kDefault = std::chrono::seconds(60);

  explicit Timeout(Clock::duration limit = kDefault) : left_(limit), last_(Clock::now()) {}

  bool has_expired() {
    const Clock::time_point now = Clock::now();
    left_ -= std::min<Clock::duration>(now - last_, kMaxCharge);
    last_ = now;
    return left_ <= Clock::duration::zero();
  }

 private:
  static constexpr auto kMaxCharge = std::chrono::milliseconds(100);
  Clock::duration left_;
  Clock::time_point last_;
};

// Spin-wait with backoff: polls the condition without yielding, since it usually holds within
// microseconds, then sleeps between polls. False when the timeout expired.
template <class Condition>
bool spin_wait(const Condition& condition, Timeout timeout) {
  constexpr i32 kSpins = 1 << 16;  // some milliseconds
  for (i32 i = 0; i < kSpins; ++i) {
    if (condition()) return true;
    cpu_relax();
  }
  while (!condition()) {
    if (timeout.has_expired()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

// Throws when the timeout expires; `what` names the thing that was waited for.
template <class Condition>
void spin_wait_or_throw(const Condition& condition, const char* what, Timeout timeout = Timeout()) {
  if (!spin_wait(condition, timeout))
    throw std::runtime_error(std::string("Another thread did not provide ") + what +
                             " in time; the machine is overloaded or the thread is stuck.");
}

}  // namespace scanline
