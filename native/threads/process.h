// process.h -- things that have threads, in a process that was forked from theirs.
//
// A fork copies the memory of a process and one of its threads. Threads of the copy's objects do
// not exist, their locks may be taken for ever: to use such an object would hang, to end it too.
#pragma once

#include <memory>
#include <stdexcept>
#include <utility>

#include "../core/types.h"

namespace scanline {

// Forks between the first process and this one, as far as this library has seen them.
u32 num_forks();

// Owns something that has threads. Where they do not exist it is refused, and left alone at the
// end.
template <class T>
class OfOneProcess {
 public:
  OfOneProcess() = default;
  explicit OfOneProcess(std::unique_ptr<T> owned) : owned_(std::move(owned)), made_(num_forks()) {}
  ~OfOneProcess() { leave(); }
  OfOneProcess(const OfOneProcess&) = delete;
  OfOneProcess& operator=(OfOneProcess&& other) {
    leave();
    owned_ = std::move(other.owned_);
    made_ = other.made_;
    return *this;
  }

  bool is_here() const { return owned_ != nullptr && made_ == num_forks(); }

  T& operator*() const {
    if (!is_here())
      throw std::runtime_error(
          "This was made before the process was forked, and its threads do not exist here; make "
          "it anew in this process, or start processes with the method 'spawn'.");
    return *owned_;
  }
  T* operator->() const { return &**this; }

 private:
  void leave() {
    if (!is_here()) (void)owned_.release();
  }

  std::unique_ptr<T> owned_;
  u32 made_ = 0;
};

}  // namespace scanline
