// thread_group.h -- threads that begin and end together.
//
// Takes what a thread does, and what makes all of them return. Where the system grants fewer
// threads than asked for, those that run are ended and the caller learns why.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "../core/types.h"

namespace scanline {

class ThreadGroup {
 public:
  // Runs serve(0) .. serve(num - 1), each in a thread; `stop` makes every one return.
  template <class Serve, class Stop>
  void start(i32 num, const Serve& serve, const Stop& stop) {
    try {
      threads_.reserve(static_cast<size_t>(num));
      for (i32 i = 0; i < num; ++i) threads_.emplace_back(serve, i);
    } catch (const std::system_error& error) {
      const std::string started = std::to_string(threads_.size());
      stop();
      join();
      throw std::runtime_error("The system granted " + started + " of " + std::to_string(num) +
                               " threads (" + error.what() +
                               "); use fewer, or raise its limits on processes and memory.");
    } catch (...) {
      stop();
      join();
      throw;
    }
  }

  // After `stop`.
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  i32 size() const { return static_cast<i32>(threads_.size()); }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace scanline
