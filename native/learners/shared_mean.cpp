// shared_mean.cpp -- see shared_mean.h.
//
// Why no learner can overtake another one: a slot is written again only after the second arrival of
// the last piece, when all have read it; the result only after the first arrival of the next piece,
// when all have taken it; numbers alternate between two places.
#include "shared_mean.h"

#include <algorithm>
#include <cstring>

#include "../threads/spin_wait.h"

namespace scanline {
namespace {

// Calls visit(array part, offset in the piece, number) for the elements of a piece.
template <class Visit>
i64 visit_piece(const std::vector<Floats>& arrays, i64 first, const Visit& visit) {
  i64 before = 0, done = 0;
  for (const Floats& array : arrays) {
    const i64 begin = std::max<i64>(first + done - before, 0);
    const i64 num = std::min(array.num - begin, SharedMean::kPieceFloats - done);
    before += array.num;
    if (num <= 0) continue;
    visit(array.data + begin, done, num);
    done += num;
  }
  return done;
}

}  // namespace

size_t SharedMean::block_bytes(i32 count) {
  const size_t num = static_cast<size_t>(count);
  return num * sizeof(Line) + (num + 1) * static_cast<size_t>(kPieceFloats) * sizeof(float);
}

SharedMean::SharedMean(void* block, i32 rank, i32 count)
    : lines_(static_cast<Line*>(block)),
      slots_(reinterpret_cast<float*>(lines_ + count)),
      rank_(rank),
      count_(count) {}

void SharedMean::say(i64 number) {
  line(rank_).numbers[(sequence_ + 1) % 2] = number;
  arrive();
}

i64 SharedMean::heard(i32 rank) const { return line(rank).numbers[sequence_ % 2]; }

void SharedMean::put(const std::vector<Floats>& arrays, i64 first) {
  float* const out = slot(rank_);
  num_ = visit_piece(arrays, first, [&](const float* part, i64 at, i64 num) {
    std::memcpy(out + at, part, static_cast<size_t>(num) * sizeof(float));
  });
  arrive();
}

void SharedMean::reduce() {
  const i64 begin = num_ * rank_ / count_, end = num_ * (rank_ + 1) / count_;
  float* __restrict const sums = result();
  std::memcpy(sums + begin, slot(0) + begin, static_cast<size_t>(end - begin) * sizeof(float));
  for (i32 rank = 1; rank < count_; ++rank) {
    const float* __restrict const theirs = slot(rank);
    const float divisor = rank + 1 < count_ ? 1.0F : static_cast<float>(count_);
    for (i64 i = begin; i < end; ++i) sums[i] = (sums[i] + theirs[i]) / divisor;
  }
  arrive();
}

void SharedMean::take(const std::vector<Floats>& arrays, i64 first) const {
  const float* const in = result();
  visit_piece(arrays, first, [&](float* part, i64 at, i64 num) {
    std::memcpy(part, in + at, static_cast<size_t>(num) * sizeof(float));
  });
}

bool SharedMean::wait(std::chrono::duration<double> limit) const {
  const auto all_are_there = [&] {
    for (i32 rank = 0; rank < count_; ++rank) {
      const u32 theirs = line(rank).arrived.load(std::memory_order_acquire);
      if (static_cast<i32>(theirs - sequence_) < 0) return false;
    }
    return true;
  };
  return spin_wait(all_are_there,
                   Timeout(std::chrono::duration_cast<Timeout::Clock::duration>(limit)));
}

void SharedMean::arrive() { line(rank_).arrived.store(++sequence_, std::memory_order_release); }

}  // namespace scanline
