// pass_pool.h -- a free list of passes through the same convolutions, so that a new pass reuses the
// buffers of an earlier one. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "conv_stack.h"

namespace scanline {

class PassPool {
 public:
  explicit PassPool(std::vector<ConvShape> shapes) : shapes_(std::move(shapes)) {
    free_.reserve(kMaxFree);
  }

  const std::vector<ConvShape>& shapes() const { return shapes_; }

  std::unique_ptr<ConvPass> acquire() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<ConvPass>(shapes_);
    std::unique_ptr<ConvPass> pass = std::move(free_.back());
    free_.pop_back();
    return pass;
  }

  void release(std::unique_ptr<ConvPass> pass) {
    pass->clear();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.size() < kMaxFree) free_.push_back(std::move(pass));
  }

 private:
  static constexpr size_t kMaxFree = 4;
  const std::vector<ConvShape> shapes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ConvPass>> free_;
};

}  // namespace scanline
