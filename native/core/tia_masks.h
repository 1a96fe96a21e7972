// tia_masks.h -- the TIA by whole spans: objects are lines of bits, collisions are their overlaps.
//
// Same interface, same states and pictures as tia_plain.h. Two clocks make it fast: `last_clock`
// follows every access as in ALE, but what lies between `drawn_` and it is evaluated only when a
// write is about to change something visible, when a latch is read, and at the end ("flush").
// Everything private below is derived from the state and never saved.
// Checked against PlainTia by tests/test_tia_masks.cpp.
#pragma once

#include "object_masks.h"
#include "sinks.h"
#include "state.h"
#include "tia_frame.h"
#include "tia_registers.h"

namespace scanline {

SCANLINE_HD SCANLINE_INLINE u32 lowest_bit(u32 bits) {
#if defined(__CUDA_ARCH__)
  return static_cast<u32>(__ffs(static_cast<i32>(bits)) - 1);
#else
  return static_cast<u32>(__builtin_ctz(bits));
#endif
}

// Latches of every set of objects.
struct LatchTable {
  u16 latches[64];
};

SCANLINE_HD constexpr LatchTable make_latch_table() {
  LatchTable table{};
  for (u32 objects = 0; objects < 64; ++objects)
    table.latches[objects] = static_cast<u16>(latches_of(objects));
  return table;
}

template <class Sink>
class MaskTia {
 public:
  SCANLINE_HD MaskTia(MachineState& state, const Properties& properties, Sink sink)
      : state_(state), properties_(properties), sink_(sink) {
    rebuild();
  }

  SCANLINE_HD void start_frame() {
    start_tia_frame(state_, properties_);
    rebuild();
  }

  SCANLINE_HD u8 read(u16 address, u8 data_bus, u32 cycles) {
    advance_to(clock_of(cycles));
    if ((address & 8) == 0) flush();
    return static_cast<u8>(read_register(state_, address, cycles) | (data_bus & 0x3F));
  }

  SCANLINE_HD bool write(u16 address, u8 value, u32& cycles, bool after_read) {
    const u32 target = address & 0x3F;
    const i32 clock = clock_of(cycles);
    bool ended = clock >= limit_clock_;
    switch (target) {
        // clang-format off
      case VSYNC:
        advance_to(clock);
        ended |= write_vsync(state_, value, clock);
        break;
      case WSYNC:
        advance_to(clock);
        if (after_read) cycles += cycles_to_line_end(state_, cycles);
        break;
      case VBLANK: advance_to(clock + 1); change_vblank(value, clock); break;
      case NUSIZ0: case NUSIZ1: advance_to(clock + 8); change_nusiz(target - NUSIZ0, value); break;
      case COLUP0: case COLUP1: case COLUPF: case COLUBK:
        advance_to(clock);
        change_colour(target - COLUP0, value);
        break;
      case CTRLPF: advance_to(clock); change_ctrlpf(value, clock); break;
      case REFP0: case REFP1: advance_to(clock + 1); change_refp(target - REFP0, value); break;
      case PF0: case PF1: case PF2:
        advance_to(clock + write_delay(PF0, line_clock(state_, clock)));
        change_playfield(target - PF0, value);
        break;
      case RESP0: case RESP1: advance_to(clock); strobe_player(target - RESP0, clock); break;
      case RESM0: case RESM1: advance_to(clock + 8); strobe_missile(target - RESM0, clock); break;
      case RESBL: advance_to(clock); strobe_ball(clock); break;
      case GRP0: case GRP1: advance_to(clock + 1); change_grp(target - GRP0, value); break;
      case ENAM0: case ENAM1: advance_to(clock); change_enam(target - ENAM0, value); break;
      case ENABL: advance_to(clock); change_enabl(value); break;
      case HMP0: case HMP1: case HMM0: case HMM1: case HMBL:
        advance_to(clock);
        change_motion(target - HMP0, value, clock);
        break;
      case VDELP0: case VDELP1: advance_to(clock); change_vdelp(target - VDELP0, value); break;
      case VDELBL: advance_to(clock); change_vdelbl(value); break;
      case RESMP0: case RESMP1: advance_to(clock); change_resmp(target - RESMP0, value); break;
      case HMOVE: advance_to(clock); strobe_motion(clock); break;
      case HMCLR: advance_to(clock); clear_motion(state_); break;
      case CXCLR: advance_to(clock); flush(); state_.collision = 0; break;
      default: advance_to(clock); break;
        // clang-format on
    }
    if (ended) state_.partial = 0;
    return ended;
  }

  SCANLINE_HD void finish() {
    flush();
    finish_tia_frame(state_, properties_, sink_);
  }

 private:
  static constexpr u32 kAllObjects = (1u << kNumObjects) - 1;

  SCANLINE_HD void rebuild() {
    sink_.select(state_.buffer_parity);
    const Window window = window_of(state_, properties_);
    start_clock_ = window.start;
    stop_clock_ = window.stop;
    limit_clock_ = state_.frame_start_clock + kLineClocks * (line_limit(properties_) + 1);
    drawn_ = state_.last_clock;
    // A line that is drawn exactly to its end stays the current one until the next clock.
    const i32 gone = drawn_ - state_.draw_origin_clock;
    row_ = gone > 0 ? (gone - 1) / kLineClocks : 0;
    line_start_ = state_.draw_origin_clock + row_ * kLineClocks;
    enabled_ = enabled_objects(state_);
    dirty_ = kAllObjects;
  }

  // ALE's clock of the last update.
  SCANLINE_HD SCANLINE_INLINE void advance_to(i32 clock) {
    if (clock < start_clock_ || clock <= state_.last_clock) return;
    state_.last_clock = clock < stop_clock_ ? clock : stop_clock_;
  }

  SCANLINE_HD SCANLINE_INLINE void flush() {
    if (drawn_ != state_.last_clock) evaluate();
  }

  // --- writes: flush if something visible changes, then change it --------------------------------

  SCANLINE_HD void set_enabled(u32 object, bool enabled) {
    enabled_ = (enabled_ & ~object_bit(object)) | (enabled ? object_bit(object) : 0);
  }

  SCANLINE_HD void player_changed(u32 i) {
    dirty_ |= object_bit(kP0 + i);
    set_enabled(kP0 + i, player_pattern(state_, i) != 0);
  }

  SCANLINE_HD void missile_changed(u32 i) {
    dirty_ |= object_bit(kM0 + i);
    set_enabled(kM0 + i, missile_enabled(state_, i));
  }

  // Line ends may move or reshape missile 0, so that its values lag behind until a flush.
  SCANLINE_HD bool missile_lags(u32 i) const {
    return i == 0 && (state_.cosmic_ark || state_.m0_variant != kMissileNormal);
  }

  SCANLINE_HD void change_vblank(u8 value, i32 clock) {
    if ((state_.vblank ^ value) & 2) flush();
    write_vblank(state_, value, clock);
  }

  SCANLINE_HD void change_nusiz(u32 i, u8 value) {
    const u32 both = object_bit(kP0 + i) | object_bit(kM0 + i);
    const bool changes = ((state_.nusiz[i] ^ value) & 0x37) != 0 || state_.suppress[i];
    if (((enabled_ & both) && changes) || missile_lags(i)) flush();
    if (changes || missile_lags(i)) dirty_ |= both;
    write_nusiz(state_, i, value);
  }

  SCANLINE_HD void change_colour(u32 which, u8 value) {
    const u8 colour = static_cast<u8>((value & 0xFE) | colour_loss(state_, properties_));
    if (Sink::kDraws && state_.colu[which] != colour) flush();
    state_.colu[which] = colour;
  }

  // Reflection may wait for a line end; nothing else of this register does.
  SCANLINE_HD void change_ctrlpf(u8 value, i32 clock) {
    constexpr u32 kVisible = Sink::kDraws ? 0x37 : 0x31;
    const bool waits = state_.reflect_now != (state_.ctrlpf & 1);
    if (((state_.ctrlpf ^ value) & kVisible) || waits) {
      flush();
      dirty_ |= object_bit(kPlayfield) | object_bit(kBall);
    }
    write_ctrlpf(state_, value, clock);
  }

  SCANLINE_HD void change_refp(u32 i, u8 value) {
    const u8 reflected = (value >> 3) & 1;
    if (state_.refp[i] == reflected) return;
    if (enabled_ & object_bit(kP0 + i)) flush();
    state_.refp[i] = reflected;
    dirty_ |= object_bit(kP0 + i);
  }

  SCANLINE_HD void change_playfield(u32 part, u8 value) {
    if (part == 0) value &= 0xF0;
    if (state_.pf[part] == value) return;
    flush();
    state_.pf[part] = value;
    dirty_ |= object_bit(kPlayfield);
    set_enabled(kPlayfield, (state_.pf[0] | state_.pf[1] | state_.pf[2]) != 0);
  }

  SCANLINE_HD void strobe_player(u32 i, i32 clock) {
    const i32 position = player_reset_position(line_clock(state_, clock));
    const ResetMeets meets = player_reset_meets(state_.nusiz[i], state_.pos[kP0 + i], position);
    if (meets == ResetMeets::kCopy) advance_to(clock + kResetOverCopyClocks);
    flush();
    reset_player(state_, i, position, meets);
    dirty_ |= object_bit(kP0 + i);
  }

  SCANLINE_HD void strobe_missile(u32 i, i32 clock) {
    if ((enabled_ & object_bit(kM0 + i)) || missile_lags(i)) flush();
    reset_missile(state_, i, clock);
    dirty_ |= object_bit(kM0 + i);
  }

  SCANLINE_HD void strobe_ball(i32 clock) {
    if (enabled_ & object_bit(kBall)) flush();
    reset_ball(state_, clock);
    dirty_ |= object_bit(kBall);
  }

  SCANLINE_HD void change_grp(u32 i, u8 value) {
    const u32 other = i ^ 1;
    const bool own_changes = !state_.vdelp[i] && state_.grp[i] != value;
    const bool other_changes = state_.vdelp[other] && state_.dgrp[other] != state_.grp[other];
    const bool ball_changes = i == 1 && state_.vdelbl && state_.denabl != state_.enabl;
    if (own_changes || other_changes || ball_changes) flush();
    write_grp(state_, i, value);
    if (own_changes) player_changed(i);
    if (other_changes) player_changed(other);
    if (ball_changes) set_enabled(kBall, ball_enabled(state_));
  }

  SCANLINE_HD void change_enam(u32 i, u8 value) {
    const u8 enabled = (value >> 1) & 1;
    if (state_.enam[i] == enabled) return;
    if (!state_.resmp[i]) flush();
    state_.enam[i] = enabled;
    set_enabled(kM0 + i, missile_enabled(state_, i));
  }

  SCANLINE_HD void change_enabl(u8 value) {
    const u8 enabled = (value >> 1) & 1;
    if (state_.enabl == enabled) return;
    if (!state_.vdelbl) flush();
    state_.enabl = enabled;
    set_enabled(kBall, ball_enabled(state_));
  }

  // Only the write that sets missile 0 running has an effect at once.
  SCANLINE_HD void change_motion(u32 object, u8 value, i32 clock) {
    if (object == kM0 && state_.hm[kM0] == 7) flush();
    write_motion(state_, object, value, clock);
  }

  SCANLINE_HD void change_vdelp(u32 i, u8 value) {
    if (state_.vdelp[i] == (value & 1)) return;
    if (state_.grp[i] != state_.dgrp[i]) flush();
    state_.vdelp[i] = value & 1;
    player_changed(i);
  }

  SCANLINE_HD void change_vdelbl(u8 value) {
    if (state_.vdelbl == (value & 1)) return;
    if (state_.enabl != state_.denabl) flush();
    state_.vdelbl = value & 1;
    set_enabled(kBall, ball_enabled(state_));
  }

  SCANLINE_HD void change_resmp(u32 i, u8 value) {
    if (state_.resmp[i] == ((value >> 1) & 1)) return;
    if (state_.enam[i] || missile_lags(i)) flush();
    write_resmp(state_, i, value);
    missile_changed(i);
  }

  SCANLINE_HD void strobe_motion(i32 clock) {
    flush();
    strobe_hmove(state_, properties_, clock);
    dirty_ |= kAllObjects & ~object_bit(kPlayfield);
  }

  // --- evaluation --------------------------------------------------------------------------------

  // Everything in [drawn_, last_clock), with the registers as they are.
  SCANLINE_HD SCANLINE_NOINLINE void evaluate() {
    const i32 last = state_.last_clock;
    i32 constant_rows = 0;  // whole rows in a row that this call found equal
    while (drawn_ != last) {
      const i32 line_end = line_start_ + kLineClocks;
      if (drawn_ == line_end) {
        next_line();
        continue;
      }
      const i32 stop = last < line_end ? last : line_end;
      const bool whole = drawn_ == line_start_ && stop == line_end && !state_.comb;
      evaluate_line(drawn_ - line_start_, stop - line_start_, whole && constant_rows > 0);
      constant_rows = whole && !state_.cosmic_ark && row_ > 0 ? constant_rows + 1 : 0;
      drawn_ = stop;
      if (!Sink::kDraws && constant_rows >= 1) return skip_lines(last);
    }
  }

  // A whole line without effects pending was evaluated: the lines below it add nothing.
  SCANLINE_HD void skip_lines(i32 last) {
    const i32 lines = (last - line_start_ - 1) / kLineClocks;
    row_ += lines;
    line_start_ += lines * kLineClocks;
    drawn_ = last;
  }

  SCANLINE_HD void next_line() {
    if (state_.suppress[0]) dirty_ |= object_bit(kP0);
    if (state_.suppress[1]) dirty_ |= object_bit(kP1);
    if (state_.reflect_now != (state_.ctrlpf & 1)) dirty_ |= object_bit(kPlayfield);
    if (state_.cosmic_ark) dirty_ |= object_bit(kM0);
    end_line(state_);
    line_start_ += kLineClocks;
    ++row_;
  }

  // Clocks begin <= c < end of the current line; `repeats` if its pixels equal the row above.
  SCANLINE_HD void evaluate_line(i32 begin, i32 end, bool repeats) {
    if (end <= kBlankClocks) return;
    const i32 first = begin > kBlankClocks ? begin - kBlankClocks : 0;
    if (Sink::kDraws && repeats) return sink_.repeat_row(row_);
    const bool blank = (state_.vblank & 2) != 0;
    const u32 needed = blank ? 0 : needed_latches();
    if (Sink::kDraws && !blank) renew_masks(enabled_);
    if (needed != 0) collide(needed, first, end - kBlankClocks);
    if (Sink::kDraws) sink_.draw(state_, {row_, first, end - kBlankClocks, enabled_, masks_});
    if (end >= kBlankClocks + kCombPixels && first < kCombPixels) state_.comb = 0;
  }

  SCANLINE_HD u32 needed_latches() const {
    static constexpr LatchTable kTable = make_latch_table();
    return kTable.latches[enabled_] & ~static_cast<u32>(state_.collision);
  }

  SCANLINE_HD void collide(u32 needed, i32 first, i32 end) {
    const Bits160 span = Bits160::span(first, end);
    if (!Sink::kDraws) renew_masks(enabled_);
    for (; needed != 0; needed &= needed - 1) {
      const u32 latch = lowest_bit(needed);
      const LatchPair pair = latch_pair(latch);
      if (meet(masks_[pair.first] & span, masks_[pair.second]))
        state_.collision = static_cast<u16>(state_.collision | (1u << latch));
    }
  }

  SCANLINE_HD void renew_masks(u32 objects) {
    for (u32 stale = dirty_ & objects; stale != 0; stale &= stale - 1)
      masks_[lowest_bit(stale)] = mask_of(lowest_bit(stale));
    dirty_ &= ~objects;
  }

  SCANLINE_HD Bits160 mask_of(u32 object) const {
    const i32 position = object < kPlayfield ? state_.pos[object] : 0;
    switch (object) {
      case kP0:
      case kP1:
        return player_mask(player_pattern(state_, object), state_.nusiz[object], position,
                           state_.suppress[object]);
      case kM0:
        return missile_mask(state_.nusiz[0], missile0_width(state_), position);
      case kM1:
        return missile_mask(state_.nusiz[1], narrow_width(state_.nusiz[1]), position);
      case kBall:
        return ball_mask(narrow_width(state_.ctrlpf), position);
      default:
        return playfield_mask(playfield_bits(state_), state_.reflect_now);
    }
  }

  MachineState& state_;
  const Properties& properties_;
  Sink sink_;
  i32 start_clock_;  // window
  i32 stop_clock_;
  i32 limit_clock_;  // a write at or after it ends the frame
  i32 drawn_;        // evaluated up to here; at most state_.last_clock
  i32 line_start_;   // of the line that contains drawn_, or ends with it
  i32 row_;
  u32 enabled_;  // set of enabled objects
  u32 dirty_;    // set of objects whose mask is out of date
  Bits160 masks_[kNumObjects];
};

}  // namespace scanline
