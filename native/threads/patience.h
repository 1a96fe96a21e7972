// patience.h -- waiting for another thread, with an end.
//
// Takes a condition that the other thread makes true; throws after a limit, with what was waited
// for. A thread that the system does not run for a while is no error: the limit is generous, and
// time in which the waiting thread itself did not run (a stopped process) hardly counts.
#pragma once

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "standby.h"

namespace scanline {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kLimit = std::chrono::seconds(60);

  explicit Patience(Clock::duration limit = kLimit) : left_(limit), last_(Clock::now()) {}

  // Called again and again while waiting.
  bool has_ended() {
    const Clock::time_point now = Clock::now();
    left_ -= std::min<Clock::duration>(now - last_, kLongestStep);
    last_ = now;
    return left_ <= Clock::duration::zero();
  }

 private:
  static constexpr auto kLongestStep = std::chrono::milliseconds(100);
  Clock::duration left_;
  Clock::time_point last_;
};

// Looks at the condition again and again: first without giving way, since it will hold in a moment,
// then with naps. False when patience has ended.
template <class Condition>
bool wait_for_thread(const Condition& condition, Patience patience) {
  constexpr i32 kLooks = 1 << 16;  // some milliseconds
  for (i32 i = 0; i < kLooks; ++i) {
    if (condition()) return true;
    relax();
  }
  while (!condition()) {
    if (patience.has_ended()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

template <class Condition>
void require_from_thread(const Condition& condition, const char* what,
                         Patience patience = Patience()) {
  if (!wait_for_thread(condition, patience))
    throw std::runtime_error(std::string("Another thread did not give ") + what +
                             " in time; the machine is overloaded or the thread is stuck.");
}

}  // namespace scanline
