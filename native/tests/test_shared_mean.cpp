// test_shared_mean.cpp -- means and numbers of learners that are threads here, in many rounds.
#include <cstdlib>
#include <cstring>
#include <thread>

#include "../learners/shared_mean.h"
#include "check.h"

using namespace scanline;

namespace {

constexpr i32 kCount = 3, kNumRounds = 40;
std::atomic<i64> num_wrong{0};  // counted in all threads, checked in one

void wait_for_all(SharedMean& mean) {
  while (!mean.wait(std::chrono::seconds(10))) ++num_wrong;
}

// Element i of learner r in a round is i + r + round: their mean is known.
void learn(void* block, i32 rank) {
  SharedMean mean(block, rank, kCount);
  std::vector<float> first(5), second(SharedMean::kPieceFloats + 100);
  const std::vector<Floats> arrays = {{5, first.data()},
                                      {static_cast<i64>(second.size()), second.data()}};
  for (i32 round = 0; round < kNumRounds; ++round) {
    mean.say(rank * 1000 + round);
    wait_for_all(mean);
    for (i32 other = 0; other < kCount; ++other)
      num_wrong += mean.heard(other) != other * 1000 + round;
    i64 i = 0;
    for (const Floats& array : arrays)
      for (i64 j = 0; j < array.num; ++j)
        array.data[j] = static_cast<float>(i++ % 1000 + rank + round);
    for (i64 at = 0; at < i; at += SharedMean::kPieceFloats) {
      mean.put(arrays, at);
      wait_for_all(mean);
      mean.reduce();
      wait_for_all(mean);
      mean.take(arrays, at);
    }
    i = 0;
    for (const Floats& array : arrays)
      for (i64 j = 0; j < array.num; ++j)
        num_wrong += array.data[j] != static_cast<float>(i++ % 1000 + 1 + round);
  }
}

void test_learners_agree_in_every_round() {
  const size_t size = (SharedMean::block_bytes(kCount) + 63) / 64 * 64;
  void* const block = std::aligned_alloc(64, size);
  std::memset(block, 0, size);
  std::vector<std::thread> others;
  for (i32 rank = 1; rank < kCount; ++rank) others.emplace_back(learn, block, rank);
  learn(block, 0);
  for (std::thread& other : others) other.join();
  CHECK(num_wrong == 0);
  std::free(block);
}

void test_a_learner_that_does_not_come_is_waited_for_no_longer_than_the_limit() {
  std::vector<char> memory(SharedMean::block_bytes(2) + 64);
  void* block = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
  SharedMean mean(block, 0, 2);
  mean.say(1);
  CHECK(!mean.wait(std::chrono::milliseconds(20)));
}

}  // namespace

int main() {
  test_learners_agree_in_every_round();
  test_a_learner_that_does_not_come_is_waited_for_no_longer_than_the_limit();
  return 0;
}
