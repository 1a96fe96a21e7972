// work_sharing.h -- idle workers of one thread pool run jobs of another pool.
//
// Takes requests for helpers from pools that have jobs; gives them to idle workers of other pools.
// Knows nothing of the jobs.
//
// An idle worker that spins for its next call occupies a core. A sleeping thread of another pool,
// woken for other jobs, would have to share that core, and waking it takes as long as a job. So the
// spinning worker runs these jobs. The process holds one request at a time; a pool whose request
// is not taken wakes threads of its own.
#pragma once

#include <functional>

#include "../core/types.h"

namespace scanline {

class Timeout;

// A pool that has jobs. Both calls may come from any thread.
class JobSource {
 public:
  using KeepRunning = std::function<bool()>;

  virtual ~JobSource() = default;
  // Runs jobs in the calling thread while there are any and `keep_running` is true.
  virtual void run_in_helper(const KeepRunning& keep_running) = 0;
  // No helper comes: the request was dropped.
  virtual void on_request_dropped() = 0;
};

// The number of helpers that will come, at most `max_helpers`. Then exactly one of the calls of
// `source` follows. 0 if no worker is idle or another request is pending: no call follows.
i32 request_helpers(JobSource& source, i32 max_helpers);

// Withdraws a request. After it returned true no thread is in a call of `source`, and none will be.
// False if a helper was still at a job (of this source or another) when the timeout expired.
bool cancel_request(JobSource& source, Timeout timeout);

// While it lives its thread counts as an idle worker.
class IdleWorker {
 public:
  IdleWorker();
  ~IdleWorker();
  IdleWorker(const IdleWorker&) = delete;
  IdleWorker& operator=(const IdleWorker&) = delete;

  // Serves the pending request; false if there is none.
  bool help(const JobSource::KeepRunning& keep_running);
};

}  // namespace scanline
