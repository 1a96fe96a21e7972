// parallel_for.h -- the thread pool of the layers: one call runs a loop of jobs in parallel.
//
// Takes a number of jobs and a function of a job; returns when all jobs are done. Jobs write to
// disjoint memory, so results do not depend on which thread runs which job. The number of threads
// is one setting of the process. If a job throws, jobs that have not started are skipped, and the
// call rethrows the first exception when no job runs any more.
// One call uses the pool at a time. A second, concurrent call runs its jobs in its own thread; a
// large one first waits up to 2 ms for the pool, since its jobs would take far longer alone.
// Between two calls the threads spin for a while and meanwhile run jobs of other pools
// (threads/work_sharing.h).
#pragma once

#include <functional>

#include "../core/types.h"

namespace scanline {

using LayerJob = std::function<void(i32 job)>;

// Threads of later calls, the caller's included; by default one per processor.
void set_layer_threads(i32 num_threads);
i32 layer_threads();

enum class CallSize { kSmall, kLarge };  // large: milliseconds, or part of a learner's update

// Runs job(0) .. job(num_jobs - 1). Jobs start in this order.
void parallel_for(i32 num_jobs, const LayerJob& job, CallSize size = CallSize::kSmall);

// Jobs of at most `per_job` items for `num_items` items.
inline i32 ceil_div(i32 num_items, i32 per_job) { return (num_items + per_job - 1) / per_job; }

// Wakes the threads ahead of a call that comes within a fraction of a millisecond.
void wake_threads();

// The size of a layer's call with so many images.
inline CallSize call_size(i32 num_images) {
  return num_images < 16 ? CallSize::kSmall : CallSize::kLarge;
}

}  // namespace scanline
