// executable_bytes.h -- pages that hold code: written once, executable afterwards.
//
// Takes bytes; gives where they start, or null where the system refuses generated code.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "../../core/types.h"

namespace scanline {

class ExecutableBytes {
 public:
  explicit ExecutableBytes(const std::vector<u8>& bytes) : size_(bytes.size()) {
    void* pages = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return;
    std::memcpy(pages, bytes.data(), size_);
    if (mprotect(pages, size_, PROT_READ | PROT_EXEC) == 0) {
      start_ = static_cast<const u8*>(pages);
    } else {
      munmap(pages, size_);
    }
  }
  ~ExecutableBytes() {
    if (start_ != nullptr) munmap(const_cast<u8*>(start_), size_);
  }
  ExecutableBytes(const ExecutableBytes&) = delete;
  ExecutableBytes& operator=(const ExecutableBytes&) = delete;

  const u8* start() const { return start_; }  // null if the system refused

 private:
  size_t size_;
  const u8* start_ = nullptr;
};

}  // namespace scanline
