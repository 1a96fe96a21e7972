// workers.h -- threads that share the pictures of one call.
//
// Takes a number of jobs and a function of a job; returns when all are done. Which thread does
// which job decides nothing but time: callers write every result to a place of its own. The number
// of threads is one setting of the process. What a job throws, the call throws when no job runs any
// more; jobs that had not begun are left out then.
// A second call while the threads are busy is done by its own thread alone. A large one waits a
// little first: alone it would take far longer than the call before it still needs.
// Between two calls threads look around for a while, and lend a hand to others (standby.h).
#pragma once

#include <functional>

#include "../core/types.h"

namespace scanline {

using LayerJob = std::function<void(i32 job)>;

// Threads of later calls, the caller's included; all processors until it is set.
void set_layer_threads(i32 num_threads);
i32 layer_threads();

enum class Size { kSmall, kLarge };  // large: milliseconds, or part of a learner's update

// Runs job(0) .. job(num_jobs - 1).
void run_jobs(i32 num_jobs, const LayerJob& job, Size size = Size::kSmall);

// Jobs of `part` things each, the last one perhaps of fewer.
inline i32 num_parts(i32 whole, i32 part) { return (whole + part - 1) / part; }

// Wakes the threads for jobs that will come within a fraction of a millisecond.
void expect_jobs();

// The size of a layer's call with so many pictures.
inline Size size_of(i32 num_pictures) { return num_pictures < 16 ? Size::kSmall : Size::kLarge; }

}  // namespace scanline
