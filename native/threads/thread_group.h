// thread_group.h -- threads that start and end together.
//
// Takes the function of a thread, and a function that makes all of them return. If the system
// grants fewer threads than asked for, those that run are ended and `start` throws.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "../core/types.h"

namespace scanline {

class ThreadGroup {
 public:
  // Runs run(0) .. run(num - 1), each in a thread; `stop` makes every one return.
  template <class Run, class Stop>
  void start(i32 num, const Run& run, const Stop& stop) {
    try {
      threads_.reserve(static_cast<size_t>(num));
      for (i32 i = 0; i < num; ++i) threads_.emplace_back(run, i);
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

  // Waits for all threads; `stop` must have been called.
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  i32 size() const { return static_cast<i32>(threads_.size()); }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace scanline
