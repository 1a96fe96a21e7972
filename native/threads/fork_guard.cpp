// fork_guard.cpp -- counts forks.
#include "fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace scanline {
namespace {

std::atomic<u32> forks{0};
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

u32 num_forks() { return forks.load(std::memory_order_relaxed); }

}  // namespace scanline
