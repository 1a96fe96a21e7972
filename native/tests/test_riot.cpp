// The timer against a clock that counts cycle by cycle, and the ports.
#include "../core/riot.h"
#include "check.h"

using namespace scanline;

namespace {

// Counts down as the chip does until it expires: the first step one cycle after the write, then one
// per interval.
int counted_timer(int value, int interval, int cycles_since) {
  for (int cycle = 1; cycle <= cycles_since; ++cycle) {
    if ((cycle - 1) % interval == 0) --value;
  }
  return value;
}

void test_running_timer() {
  static const int kIntervals[4] = {1, 8, 64, 1024};
  for (u32 which = 0; which < 4; ++which) {
    MachineState s{};
    write_riot(s, u16(0x294 + which), 10, 1000);
    for (int since = 2; since < 9 * kIntervals[which]; since += 1 + kIntervals[which] / 3) {
      const u32 now = u32(1000 + since);
      CHECK(read_riot(s, 0x284, now) == u8(counted_timer(10, kIntervals[which], since)));
      CHECK(read_riot(s, 0x285, now) == 0);
    }
  }
}

void test_expired_timer() {
  MachineState s{};
  write_riot(s, 0x296, 2, 0);
  const u32 expiry = 2 * 64;
  CHECK(read_riot(s, 0x285, expiry + 1) == 0x80);
  CHECK(read_riot(s, 0x284, expiry + 1) == 0xFF);  // -1: not yet an acknowledgement
  CHECK(s.timer_read_after_interrupt == 0);
  CHECK(read_riot(s, 0x285, expiry + 2) == 0x80);
  read_riot(s, 0x284, expiry + 20);
  CHECK(s.timer_read_after_interrupt == 1 && s.timer_interrupt_read_cycle == i32(expiry + 20));
  CHECK(read_riot(s, 0x285, expiry + 21) == 0x00);
  const u8 first = read_riot(s, 0x284, expiry + 21);
  CHECK(read_riot(s, 0x284, expiry + 21 + 64) == u8(first - 1));  // the prescaler is back
  write_riot(s, 0x296, 2, 500);
  CHECK(s.timer_read_after_interrupt == 0 && read_riot(s, 0x285, 502) == 0);
}

void test_rebase_keeps_the_value() {
  MachineState s{}, rebased{};
  s.cycles = rebased.cycles = 900;
  write_riot(s, 0x297, 200, 777);
  write_riot(rebased, 0x297, 200, 777);
  rebase_riot(rebased);
  for (u32 later = 0; later < 5000; later += 333) {
    CHECK(read_riot(s, 0x284, 900 + later) == read_riot(rebased, 0x284, later));
  }
}

void test_ports() {
  MachineState s{};
  s.swcha = 0x5A;
  s.swchb = 0x3F;
  write_riot(s, 0x281, 0xF0, 0);
  write_riot(s, 0x280, 0xFF, 0);
  write_riot(s, 0x283, 0xFF, 0);
  CHECK(read_riot(s, 0x280, 0) == 0x5A && read_riot(s, 0x281, 0) == 0xF0);
  CHECK(read_riot(s, 0x282, 0) == 0x3F && read_riot(s, 0x283, 0) == 0);
  CHECK(s.timer == 0);
  write_riot(s, 0x284, 7, 0);  // edge detection: no timer
  CHECK(s.timer == 0);
}

}  // namespace

int main() {
  test_running_timer();
  test_expired_timer();
  test_rebase_keeps_the_value();
  test_ports();
  return check::result("riot");
}
