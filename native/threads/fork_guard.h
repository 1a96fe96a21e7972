// fork_guard.h -- objects that own threads, in a process that was forked from theirs.
//
// Takes an object that owns threads; gives access to it in the process that made it, and throws in
// a forked one. A fork copies a process's memory and one of its threads. The other threads do not
// exist in the copy and their locks may stay locked, so using or destroying the object would hang.
#pragma once

#include <memory>
#include <stdexcept>
#include <utility>

#include "../core/types.h"

namespace scanline {

// Forks between the first process that loaded this library and this one.
u32 num_forks();

// Owns an object with threads. In a forked process access throws, and the object is leaked.
template <class T>
class ForkGuarded {
 public:
  ForkGuarded() = default;
  explicit ForkGuarded(std::unique_ptr<T> owned)
      : owned_(std::move(owned)), forks_at_creation_(num_forks()) {}
  ~ForkGuarded() { leak_if_forked(); }
  ForkGuarded(const ForkGuarded&) = delete;
  ForkGuarded& operator=(ForkGuarded&& other) {
    leak_if_forked();
    owned_ = std::move(other.owned_);
    forks_at_creation_ = other.forks_at_creation_;
    return *this;
  }

  // Whether there is an object, made in this process.
  bool is_usable() const { return owned_ != nullptr && forks_at_creation_ == num_forks(); }

  T& operator*() const {
    if (!is_usable())
      throw std::runtime_error(
          "This was made before the process was forked, and its threads do not exist here; make "
          "it anew in this process, or start processes with the method 'spawn'.");
    return *owned_;
  }
  T* operator->() const { return &**this; }

 private:
  void leak_if_forked() {
    if (!is_usable()) (void)owned_.release();
  }

  std::unique_ptr<T> owned_;
  u32 forks_at_creation_ = 0;
};

}  // namespace scanline
