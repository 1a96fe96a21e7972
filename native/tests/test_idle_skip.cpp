// Turns that may be skipped, against a loop that takes them one by one.
#include <initializer_list>

#include "../core/idle_skip.h"
#include "check.h"

using namespace scanline;

namespace {

bool taken(u8 branch, u8 value) {
  if (branch == opcode::kBne) return value != 0;
  return branch == opcode::kBpl ? value < 128 : value >= 128;
}

// Takes turns while the timer has not expired and the branch is taken.
u32 turns_one_by_one(MachineState s, PollLoop loop, u32 cycles, bool flag) {
  for (u32 turns = 0;; ++turns, cycles += loop.period_cycles) {
    if (timer_count(s, cycles) < 0) return turns;
    const u8 value = flag ? read_timer_flag(s, cycles) : read_timer(s, cycles);
    if (!taken(loop.branch, value)) return turns;
  }
}

void test_timer(u8 timer, u8 shift) {
  MachineState s{};
  s.timer = timer;
  s.timer_shift = shift;
  s.timer_set_cycle = -1000;
  const u32 interval = 1u << shift;
  for (u8 period : {u8(7), u8(8)}) {
    for (u32 since = 1; since < (u32(timer) + 2) * interval;
         since += 1 + interval / 3 + timer / 8) {
      const u32 cycles = since - 1000;
      for (u8 branch : {opcode::kBne, opcode::kBpl, opcode::kBmi}) {
        const PollLoop loop{branch, period};
        CHECK(timer_turns(s, loop, cycles) == turns_one_by_one(s, loop, cycles, false));
      }
      const PollLoop loop{opcode::kBpl, period};
      CHECK(timer_flag_turns(s, loop, cycles) == turns_one_by_one(s, loop, cycles, true));
    }
  }
}

void test_countdown() {
  for (u32 start = 0; start < 256; ++start) {
    for (u8 branch : {opcode::kBne, opcode::kBpl}) {
      u8 value = u8(start);
      u32 turns = 0;
      while (taken(branch, --value)) ++turns;
      CHECK(count_turns(u8(start), {branch, 5}) == turns);
    }
  }
}

void test_unknown_branches_wait() {
  MachineState s{};
  s.timer = 100;
  s.timer_shift = 6;
  CHECK(timer_turns(s, {0xF0, 7}, 10) == 0);
  CHECK(timer_flag_turns(s, {opcode::kBmi, 7}, 10) == 0);
}

}  // namespace

int main() {
  for (u32 timer = 0; timer < 256; timer += timer < 6 || (timer > 124 && timer < 132) ? 1 : 17) {
    for (u8 shift : {u8(0), u8(3), u8(6), u8(10)}) test_timer(u8(timer), shift);
  }
  test_countdown();
  test_unknown_branches_wait();
  return check::result("idle_skip");
}
