// store_log.h -- stores to the TIA, kept per lane until all lanes of a warp apply theirs together.
//
// Takes stores as the program makes them; follows at once what the program can notice (WSYNC's
// wait, the end of a frame, the clock of the TIA's last access), drops stores that change nothing,
// and keeps the others for `drain`, which gives them to the TIA in their order, at their times.
// Bounded: a lane whose log is full must be drained before its next store. Exact: whatever the
// times of drains, the states are the same.
#pragma once

#include "../core/tia_frame.h"
#include "../core/tia_registers.h"

namespace scanline::gpu {

constexpr u32 kLogEntries = 48;

// What the log needs to know of a register. Audio, RSYNC and what does not exist change nothing.
namespace store_facts {
constexpr u8 kDelay = 0xF;        // clocks after which a store is seen
constexpr u8 kPlayfield = 0x10;   // and those until its pixel clock
constexpr u8 kRepeatable = 0x20;  // the same value again changes nothing
constexpr u8 kColour = 0x40;
constexpr u8 kIdle = 0x80;  // any value changes nothing
}  // namespace store_facts

struct StoreTable {
  u8 facts[64];
};

SCANLINE_HD constexpr u8 store_facts_of(u32 target) {
  u32 facts = static_cast<u32>(write_delay(target, 0));
  if (target >= PF0 && target <= PF2) facts = 2 | store_facts::kPlayfield;
  if (target >= COLUP0 && target <= COLUBK) facts |= store_facts::kColour;
  const bool repeats = target == VBLANK || (target >= COLUP0 && target <= COLUBK) ||
                       (target >= REFP0 && target <= PF2) ||
                       (target >= ENAM0 && target <= RESMP1 && target != HMM0);
  if (repeats) facts |= store_facts::kRepeatable;
  const bool idles =
      target == WSYNC || target == 0x03 || (target >= 0x15 && target <= 0x1A) || target > CXCLR;
  if (idles) facts |= store_facts::kIdle;
  return static_cast<u8>(facts);
}

SCANLINE_HD constexpr StoreTable make_store_table() {
  StoreTable table{};
  for (u32 target = 0; target < 64; ++target) table.facts[target] = store_facts_of(target);
  return table;
}

struct StoreEntry {
  u32 cycles;
  u32 bits;  // 0-7 value, 8-13 register, 16-: clocks from `cycles` to the furthest access so far
};

// What changes with every store: a value of its own, so that a compiler keeps it in registers.
struct StoreFront {
  i32 limit_clock;            // a store at or after it ends the frame
  u32 phase;                  // cycles of a line already gone at cycle 0
  i32 reach;                  // furthest clock of an access, delays included
  u32 num;                    // entries
  u32 known_low, known_high;  // registers whose last value is in the log's shadow
  u32 players;                // GRP0, GRP1 and their delayed copies
  bool ball_waits;            // the ball's delayed copy may differ
  bool has_vblank;            // a change of VBLANK is among the entries
  bool is_parked;             // a line has ended with WSYNC: other lanes may come to that, too

  SCANLINE_HD bool is_full() const { return num == kLogEntries; }
  // An access to the TIA moves its clock.
  SCANLINE_HD SCANLINE_INLINE void touch(i32 clock) { reach = clock > reach ? clock : reach; }
};

template <class Tia, bool draws>
class StoreLog {
 public:
  SCANLINE_HD StoreLog(MachineState& state, const Properties& properties, Tia& tia)
      : state_(state), tia_(tia), loss_(colour_loss(state, properties)) {}

  SCANLINE_HD StoreFront begin(const Properties& properties) const {
    StoreFront front{};
    front.limit_clock = state_.frame_start_clock + kLineClocks * (line_limit(properties) + 1);
    front.phase = static_cast<u32>(-state_.frame_start_clock) / 3;
    front.reach = -0x7FFFFFFF - 1;
    remember(front);
    return front;
  }

  // True if the frame ends with this store; WSYNC moves `cycles`, if it `halts`.
  SCANLINE_HD SCANLINE_INLINE bool store(StoreFront& front, u32 address, u32 value, u32& cycles,
                                         bool halts = true) {
    SCANLINE_TABLE StoreTable kTable = make_store_table();
    const u32 target = address & 0x3F;
    const u32 facts = kTable.facts[target];
    const i32 clock = clock_of(cycles);
    const u32 wait = facts & store_facts::kPlayfield ? (cycles + front.phase + 2) & 3 : 0;
    front.touch(clock + static_cast<i32>((facts & store_facts::kDelay) + wait));
    bool ends = clock >= front.limit_clock;
    if (ends) state_.partial = 0;
    if (target == WSYNC && halts) {
      const u32 cycle = (cycles + front.phase) % 76;
      cycles += cycle == 0 ? 0 : 76 - cycle;
      front.is_parked = true;
    }
    if (target == VSYNC) {
      ends = change_vsync(value, clock) || ends;
    } else if (changes(front, target, facts, value)) {
      append(front, target, value, cycles, clock);
    }
    return ends;
  }

  // Gives all that was kept to the TIA, and moves it on to the last access.
  SCANLINE_HD void drain(StoreFront& front) {
    drain(front.num, front.reach);
    front.num = 0;
    front.has_vblank = false;
  }
  SCANLINE_HD void drain(u32 num, i32 reach) {
    for (u32 i = 0; i < num; ++i) {
      const StoreEntry entry = entries_[i];
      u32 cycles = entry.cycles;
      tia_.reach(clock_of(cycles) + static_cast<i32>(entry.bits >> 16));
      tia_.settle();  // here by all lanes together, not by each register's write
      tia_.write(static_cast<u16>((entry.bits >> 8) & 0x3F), static_cast<u8>(entry.bits), cycles,
                 true);
    }
    tia_.reach(reach);
  }

  // At the end of a run: colours that no frame shows have been kept apart.
  SCANLINE_HD void finish(StoreFront& front) {
    drain(front);
    if (draws) return;
    for (u32 i = 0; i < 4; ++i)
      if ((front.known_low >> (COLUP0 + i)) & 1)
        state_.colu[i] = static_cast<u8>((shadow_[COLUP0 + i] & 0xFE) | loss_);
  }

 private:
  SCANLINE_HD void remember(StoreFront& front) const {
    front.players = state_.grp[0] | (u32(state_.grp[1]) << 8) | (u32(state_.dgrp[0]) << 16) |
                    (u32(state_.dgrp[1]) << 24);
    front.ball_waits = state_.enabl != state_.denabl;
  }

  SCANLINE_HD bool change_vsync(u32 value, i32 clock) {
    if (!write_vsync(state_, static_cast<u8>(value), clock)) return false;
    state_.partial = 0;
    return true;
  }

  // Whether the TIA must be told; keeps the values by which that is known.
  SCANLINE_HD SCANLINE_INLINE bool changes(StoreFront& front, u32 target, u32 facts, u32 value) {
    if (target == GRP0 || target == GRP1) return changes_players(front, target, value);
    const u32 bit = 1u << (target & 31);
    const bool is_high = (target & 32) != 0;
    const u32 known = is_high ? front.known_high : front.known_low;
    const bool is_new = !(known & bit) || shadow_[target] != value;
    front.known_low |= is_high ? 0 : bit;
    front.known_high |= is_high ? bit : 0;
    shadow_[target] = static_cast<u8>(value);
    if (target == HMCLR) front.known_high &= ~0x1Fu;
    const bool is_kept = draws || !(facts & store_facts::kColour);
    return is_kept && !(facts & store_facts::kIdle) &&
           (is_new || !(facts & store_facts::kRepeatable));
  }

  // GRP0 and GRP1 each latch the other's delayed copy, GRP1 the ball's as well.
  SCANLINE_HD SCANLINE_INLINE bool changes_players(StoreFront& front, u32 target, u32 value) {
    const u32 old = front.players;
    const bool is_first = target == GRP0;
    const u32 first = (old & 0x00FFFF00) | value | ((old & 0xFF00) << 16);
    const u32 second = (old & 0xFF0000FF) | (value << 8) | ((old & 0xFF) << 16);
    front.players = is_first ? first : second;
    const bool is_new = front.players != old || (!is_first && front.ball_waits);
    front.ball_waits = is_first && front.ball_waits;
    return is_new;
  }

  SCANLINE_HD SCANLINE_INLINE void append(StoreFront& front, u32 target, u32 value, u32 cycles,
                                          i32 clock) {
    entries_[front.num].cycles = cycles;
    entries_[front.num].bits =
        value | (target << 8) | (static_cast<u32>(front.reach - clock) << 16);
    ++front.num;
    front.ball_waits = front.ball_waits || target == ENABL;
    front.has_vblank = front.has_vblank || target == VBLANK;
  }

  MachineState& state_;
  Tia& tia_;
  u8 loss_;  // bit 0 of colours
  u8 shadow_[64];
  StoreEntry entries_[kLogEntries];
};

}  // namespace scanline::gpu
