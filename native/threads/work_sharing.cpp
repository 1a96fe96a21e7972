// work_sharing.cpp -- one request slot for the process, and the number of idle workers.
#include "work_sharing.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "spin_wait.h"

namespace scanline {
namespace {

std::atomic<JobSource*> request{nullptr};
std::atomic<i32> num_idle{0};
std::atomic<i32> num_helping{0};  // threads that may hold a pointer to a source

// A forked process has none of these threads.
void reset_after_fork() {
  request.store(nullptr);
  num_idle.store(0);
  num_helping.store(0);
}

struct HelperCount {
  HelperCount() { num_helping.fetch_add(1); }
  ~HelperCount() { num_helping.fetch_sub(1); }
};

// Calls `serve` with the source of the pending request, if there is one.
template <class Serve>
bool take_request(const Serve& serve) {
  if (request.load() == nullptr) return false;
  const HelperCount count;
  JobSource* const source = request.exchange(nullptr);
  if (source != nullptr) serve(*source);
  return source != nullptr;
}

}  // namespace

i32 request_helpers(JobSource& source, i32 max_helpers) {
  const i32 num = std::min(max_helpers, num_idle.load());
  JobSource* expected = nullptr;
  if (num < 1 || !request.compare_exchange_strong(expected, &source)) return 0;
  if (num_idle.load() > 0) return num;  // a worker that stops being idle looks at the slot again
  expected = &source;
  return request.compare_exchange_strong(expected, nullptr) ? 0 : num;
}

bool cancel_request(JobSource& source, Timeout timeout) {
  JobSource* expected = &source;
  request.compare_exchange_strong(expected, nullptr);
  // A helper leaves after its job.
  return spin_wait([] { return num_helping.load() == 0; }, timeout);
}

IdleWorker::IdleWorker() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, reset_after_fork); });
  num_idle.fetch_add(1);
}

IdleWorker::~IdleWorker() {
  num_idle.fetch_sub(1);
  take_request([](JobSource& source) { source.on_request_dropped(); });
}

bool IdleWorker::help(const JobSource::KeepRunning& keep_running) {
  return take_request([&](JobSource& source) { source.run_in_helper(keep_running); });
}

}  // namespace scanline
