// standby.h -- threads that look around between two calls lend a hand to whoever has jobs.
//
// Takes offers of jobs; gives them to threads that wait by looking. Knows no job.
//
// A thread that keeps looking for its next call has a core. Somebody else's thread, woken for other
// jobs, would have to share it, and waking takes as long as a job: the one that is awake does them
// instead. One offer waits at a time; who cannot make one wakes threads of his own.
#pragma once

#include <functional>

#include "../core/types.h"

namespace scanline {

class Patience;

// What a thread does between two looks at something that will change in a moment.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Somebody who has jobs. Both calls may come from any thread.
class JobOffer {
 public:
  using Stays = std::function<bool()>;

  virtual ~JobOffer() = default;
  // Does jobs in this thread, for as long as there are any and `stays` holds.
  virtual void lend(const Stays& stays) = 0;
  // Nobody comes.
  virtual void decline() = 0;
};

// How many of `num_wanted` threads will come: each offer is answered by `lend` or by `decline`. 0
// where nobody looks around, or where another offer waits.
i32 offer_jobs(JobOffer& offer, i32 num_wanted);

// After it no thread is in `offer`, and none will be; false if one was still at a job of its own or
// of another offer when patience ended.
bool withdraw_jobs(JobOffer& offer, Patience patience);

// While it lives its thread looks around.
class Lookout {
 public:
  Lookout();
  ~Lookout();
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  // Takes part in what is offered; false if nothing is.
  bool lends(const JobOffer::Stays& stays);
};

}  // namespace scanline
