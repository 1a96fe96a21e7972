// pass_pool.h -- passes through the same convolutions; those that nobody uses keep their memory for
// the next one. Safe to use from several threads.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "conv_stack.h"

namespace scanline {

class PassPool {
 public:
  explicit PassPool(std::vector<ConvShape> shapes) : stack_(std::move(shapes)) {
    free_.reserve(kMostFree);
  }

  const ConvStack& stack() const { return stack_; }

  std::unique_ptr<ConvPass> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<ConvPass>(stack_.shapes());
    std::unique_ptr<ConvPass> pass = std::move(free_.back());
    free_.pop_back();
    return pass;
  }

  void give_back(std::unique_ptr<ConvPass> pass) {
    pass->clear();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.size() < kMostFree) free_.push_back(std::move(pass));
  }

 private:
  static constexpr size_t kMostFree = 4;
  const ConvStack stack_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ConvPass>> free_;
};

}  // namespace scanline
