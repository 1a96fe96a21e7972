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

#if defined(__CUDA_ARCH__)
#define SCANLINE_HANDLER SCANLINE_INLINE
#else
#define SCANLINE_HANDLER SCANLINE_NOINLINE
#endif

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
  static constexpr bool kDraws = Sink::kDraws;

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

  // ALE's clock of an access that changed nothing.
  SCANLINE_HD void reach(i32 clock) { advance_to(clock); }
  // Evaluates up to there; writes do so by themselves where they must.
  SCANLINE_HD void settle() { flush(); }

  SCANLINE_HD bool write(u16 address, u8 value, u32& cycles, bool after_read) {
    switch (address & 0x3F) {
#define SCANLINE_CASE(target) \
  case target:                \
    return write_to<target>(value, cycles, after_read);
      SCANLINE_TIA_WRITES(SCANLINE_CASE)
#undef SCANLINE_CASE
      default:
        return write_to<kNoRegister>(value, cycles, after_read);
    }
  }

  // The same for a register that the caller knows at compile time. On the host out of line, each
  // with as few saved registers as it needs; a write behind the last line is another function for
  // that reason. On the device code size counts for more.
  template <u32 target>
  SCANLINE_HD SCANLINE_HANDLER bool write_to(u8 value, u32& cycles, bool after_read) {
    return write_now<target>(value, cycles, after_read);
  }

  // The same within the caller.
  template <u32 target>
  SCANLINE_HD SCANLINE_INLINE bool write_now(u8 value, u32& cycles, bool after_read) {
#if defined(__CUDA_ARCH__)
    const bool late = clock_of(cycles) >= limit_clock_;
    const bool ended = apply<target>(value, cycles, after_read);
    if (late) state_.partial = 0;
    return ended || late;
#else
    if (SCANLINE_UNLIKELY(clock_of(cycles) >= limit_clock_))
      return write_late<target>(value, cycles, after_read);
    return apply<target>(value, cycles, after_read);
#endif
  }

  SCANLINE_HD void finish() {
    flush();
    settle_comb();
    const i32 x = drawn_ - line_start_ - kBlankClocks;
    sink_.end(row_, x > 0 ? x : 0);
    finish_tia_frame(state_, properties_, sink_);
  }

 private:
  static constexpr u32 kAllObjects = (1u << kNumObjects) - 1;
  static constexpr u32 kNoRegister = 0x3F;
  static constexpr i32 kNoRow = -2;

  SCANLINE_HD void rebuild() {
    sink_.select(state_.buffer_parity);
    const Window window = window_of(state_, properties_);
    start_clock_ = window.start;
    stop_clock_ = window.stop;
    limit_clock_ = state_.frame_start_clock + kLineClocks * (line_limit(properties_) + 1);
    line_phase_ = static_cast<u32>(-state_.frame_start_clock) / 3;
    drawn_ = comb_clock_ = state_.last_clock;
    // A line that is drawn exactly to its end stays the current one until the next clock.
    const i32 gone = drawn_ - state_.draw_origin_clock;
    row_ = gone > 0 ? (gone - 1) / kLineClocks : 0;
    line_start_ = state_.draw_origin_clock + row_ * kLineClocks;
    enabled_ = enabled_objects(state_);
    renewed_ = 0;
    dirty_ = kAllObjects;
    for (Bits160& mask : masks_) mask = Bits160::none();
    plain_row_ = kNoRow;
    brush_is_stale_ = true;
    loss_ = colour_loss(state_, properties_);
  }

  // Playfield registers wait for their pixel clock: by the line's cycle modulo 4, and a line's 76
  // cycles are a multiple of it.
  template <u32 target>
  SCANLINE_HD SCANLINE_INLINE i32 delay_of(u32 cycles) const {
    if constexpr (target >= PF0 && target <= PF2)
      return 2 + static_cast<i32>((cycles + line_phase_ + 2) & 3);
    return write_delay(target, 0);
  }

  SCANLINE_HD SCANLINE_INLINE u32 cycles_to_next_line(u32 cycles) const {
    const u32 cycle = (cycles + line_phase_) % 76;
    return cycle == 0 ? 0 : 76 - cycle;
  }

  // ALE's clock of the last update.
  SCANLINE_HD SCANLINE_INLINE void advance_to(i32 clock) {
    if (clock < start_clock_ || clock <= state_.last_clock) return;
    state_.last_clock = clock < stop_clock_ ? clock : stop_clock_;
  }

  SCANLINE_HD SCANLINE_INLINE void flush() {
    if (drawn_ == state_.last_clock) return;
    if (state_.last_clock - line_start_ <= kBlankClocks) {
      drawn_ = state_.last_clock;
    } else {
      evaluate();
    }
  }

  // --- writes: flush if something visible changes, then change it --------------------------------

  // Something visible is different from here on.
  SCANLINE_HD void touch() {
    if (Sink::kDraws) plain_row_ = kNoRow;
  }

  SCANLINE_HD void set_enabled(u32 object, bool enabled) {
    enabled_ = (enabled_ & ~object_bit(object)) | (enabled ? object_bit(object) : 0);
    touch();
  }

  SCANLINE_HD void reshape(u32 objects) {
    dirty_ |= objects;
    if (objects & enabled_) touch();
  }

  SCANLINE_HD void player_changed(u32 i) {
    reshape(object_bit(kP0 + i));
    set_enabled(kP0 + i, player_byte(state_, i) != 0);
  }

  SCANLINE_HD void missile_changed(u32 i) {
    reshape(object_bit(kM0 + i));
    set_enabled(kM0 + i, missile_enabled(state_, i));
  }

  // Line ends may move or reshape missile 0, so that its values lag behind until a flush.
  SCANLINE_HD bool missile_lags(u32 i) const {
    return i == 0 && (state_.cosmic_ark || state_.m0_variant != kMissileNormal);
  }

  // Ends the frame whatever it writes.
  template <u32 target>
  SCANLINE_HD SCANLINE_HANDLER bool write_late(u8 value, u32& cycles, bool after_read) {
    apply<target>(value, cycles, after_read);
    state_.partial = 0;
    return true;
  }

  // True if the write ended the frame, which VSYNC alone can do.
  template <u32 target>
  SCANLINE_HD SCANLINE_INLINE bool apply(u8 value, u32& cycles, bool after_read) {
    const i32 clock = clock_of(cycles);
    advance_to(clock + delay_of<target>(cycles));
    if constexpr (target == VSYNC) return change_vsync(value, clock);
    if constexpr (target == WSYNC) cycles += after_read ? cycles_to_next_line(cycles) : 0;
    if constexpr (target == VBLANK) change_vblank(value, clock);
    if constexpr (target == NUSIZ0 || target == NUSIZ1) change_nusiz(target - NUSIZ0, value);
    if constexpr (target >= COLUP0 && target <= COLUBK) change_colour(target - COLUP0, value);
    if constexpr (target == CTRLPF) change_ctrlpf(value, clock);
    if constexpr (target == REFP0 || target == REFP1) change_refp(target - REFP0, value);
    if constexpr (target >= PF0 && target <= PF2) change_playfield(target - PF0, value);
    if constexpr (target == RESP0 || target == RESP1) strobe_player(target - RESP0, clock);
    if constexpr (target == RESM0 || target == RESM1) strobe_missile(target - RESM0, clock);
    if constexpr (target == RESBL) strobe_ball(clock);
    if constexpr (target == GRP0 || target == GRP1) change_grp<target - GRP0>(value);
    if constexpr (target == ENAM0 || target == ENAM1) change_enam(target - ENAM0, value);
    if constexpr (target == ENABL) change_enabl(value);
    if constexpr (target >= HMP0 && target <= HMBL) change_motion(target - HMP0, value, clock);
    if constexpr (target == VDELP0 || target == VDELP1) change_vdelp(target - VDELP0, value);
    if constexpr (target == VDELBL) change_vdelbl(value);
    if constexpr (target == RESMP0 || target == RESMP1) change_resmp(target - RESMP0, value);
    if constexpr (target == HMOVE) strobe_motion(cycles);
    if constexpr (target == HMCLR) clear_motion(state_);
    if constexpr (target == CXCLR) clear_latches();
    return false;
  }

  SCANLINE_HD bool change_vsync(u8 value, i32 clock) {
    if (!write_vsync(state_, value, clock)) return false;
    state_.partial = 0;
    return true;
  }

  SCANLINE_HD void change_vblank(u8 value, i32 clock) {
    if ((state_.vblank ^ value) & 2) {
      flush();
      touch();
    }
    write_vblank(state_, value, clock);
  }

  SCANLINE_HD void change_nusiz(u32 i, u8 value) {
    const u32 both = object_bit(kP0 + i) | object_bit(kM0 + i);
    const bool changes = ((state_.nusiz[i] ^ value) & 0x37) != 0 || state_.suppress[i];
    if (changes || missile_lags(i)) {
      if ((enabled_ & both) || missile_lags(i)) flush();
      reshape(both);
    }
    write_nusiz(state_, i, value);
  }

  SCANLINE_HD void change_colour(u32 which, u8 value) {
    const u8 colour = static_cast<u8>((value & 0xFE) | loss_);
    if (Sink::kDraws && state_.colu[which] != colour && colour_is_used(which)) {
      flush();
      touch();
    }
    state_.colu[which] = colour;
  }

  // By an enabled object, lit or not; score lends the players' colours to the playfield.
  SCANLINE_HD bool colour_is_used(u32 which) const {
    constexpr u32 kFields = (1u << kBall) | (1u << kPlayfield);
    if (which == kColourBackground) return true;
    if (which == kColourPlayfield) return (enabled_ & kFields) != 0;
    return (enabled_ & (object_bit(kP0 + which) | object_bit(kM0 + which))) != 0 ||
           (state_.ctrlpf & 2) != 0;
  }

  // Reflection may wait for a line end; nothing else of this register does.
  SCANLINE_HD void change_ctrlpf(u8 value, i32 clock) {
    constexpr u32 kVisible = Sink::kDraws ? 0x37 : 0x31;
    const bool waits = state_.reflect_now != (state_.ctrlpf & 1);
    if (((state_.ctrlpf ^ value) & kVisible) == 0 && !waits) {
      state_.ctrlpf = value;
      return;
    }
    flush();
    write_ctrlpf(state_, value, clock);
    dirty_ |= object_bit(kPlayfield) | object_bit(kBall);
    brush_is_stale_ = true;
    touch();
  }

  SCANLINE_HD void change_refp(u32 i, u8 value) {
    const u8 reflected = (value >> 3) & 1;
    if (state_.refp[i] == reflected) return;
    if (enabled_ & object_bit(kP0 + i)) flush();
    state_.refp[i] = reflected;
    reshape(object_bit(kP0 + i));
  }

  SCANLINE_HD void change_playfield(u32 part, u8 value) {
    if (part == 0) value &= 0xF0;
    if (state_.pf[part] == value) return;
    flush();
    state_.pf[part] = value;
    reshape(object_bit(kPlayfield));
    set_enabled(kPlayfield, (state_.pf[0] | state_.pf[1] | state_.pf[2]) != 0);
  }

  SCANLINE_HD void strobe_player(u32 i, i32 clock) {
    const i32 position = player_reset_position(line_clock(state_, clock));
    const ResetMeets meets = player_reset_meets(state_.nusiz[i], state_.pos[kP0 + i], position);
    if (meets == ResetMeets::kCopy) advance_to(clock + kResetOverCopyClocks);
    flush();
    reset_player(state_, i, position, meets);
    reshape(object_bit(kP0 + i));
  }

  SCANLINE_HD void strobe_missile(u32 i, i32 clock) {
    if ((enabled_ & object_bit(kM0 + i)) || missile_lags(i)) flush();
    reset_missile(state_, i, clock);
    reshape(object_bit(kM0 + i));
  }

  SCANLINE_HD void strobe_ball(i32 clock) {
    if (enabled_ & object_bit(kBall)) flush();
    reset_ball(state_, clock);
    reshape(object_bit(kBall));
  }

  // Most writes change nothing that is shown; the others are out of line.
  template <u32 i>
  SCANLINE_HD SCANLINE_INLINE void change_grp(u8 value) {
    constexpr u32 other = i ^ 1;
    const bool own_changes = !state_.vdelp[i] && state_.grp[i] != value;
    const bool other_changes = state_.vdelp[other] && state_.dgrp[other] != state_.grp[other];
    const bool ball_changes = i == 1 && state_.vdelbl && state_.denabl != state_.enabl;
    if (own_changes || other_changes || ball_changes) return show_grp<i>(value);
    write_grp(state_, i, value);
  }

  template <u32 i>
  SCANLINE_HD SCANLINE_HANDLER void show_grp(u8 value) {
    flush();
    const u8 old[2] = {player_byte(state_, 0), player_byte(state_, 1)};
    write_grp(state_, i, value);
    if (old[0] != player_byte(state_, 0)) player_changed(0);
    if (old[1] != player_byte(state_, 1)) player_changed(1);
    if (i == 1) set_enabled(kBall, ball_enabled(state_));
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

  SCANLINE_HD void strobe_motion(u32 cycles) {
    const i32 cycle = static_cast<i32>((cycles + line_phase_) % 76);
    if (properties_.hmove_blanks && hmove_draws_comb(cycle)) {
      if (Sink::kDraws) flush();
      state_.comb = 1;
      comb_clock_ = state_.last_clock;
    }
    const u32 hidden = static_cast<u32>(state_.suppress[0]) | state_.suppress[1];
    if (hidden || missile_lags(0)) {
      flush();
      reshape(object_bit(kP0) | object_bit(kP1) | object_bit(kM0));
    }
    if (!motion_is_clear() || !hmove_keeps_zero(hmove_bounds(cycle))) move(cycle);
    end_hmove(state_, clock_of(cycles));
  }

  SCANLINE_HD bool motion_is_clear() const {
    return (state_.hm[0] | state_.hm[1] | state_.hm[2] | state_.hm[3] | state_.hm[4]) == 0;
  }

  // Objects that are not enabled may move without a flush.
  SCANLINE_HD SCANLINE_HANDLER void move(i32 cycle) {
    const HmoveBounds bounds = hmove_bounds(cycle);
    u32 moved = 0;
    for (u32 object = kP0; object <= kBall; ++object)
      moved |= hmove_motion(bounds, state_.hm[object]) != 0 ? object_bit(object) : 0;
    if (moved & enabled_) flush();
    reshape(moved);
    for (; moved != 0; moved &= moved - 1) {
      const u32 object = lowest_bit(moved);
      const i32 dx = hmove_motion(bounds, state_.hm[object]);
      state_.pos[object] = static_cast<u8>(wrap(state_.pos[object] + dx));
    }
  }

  SCANLINE_HD void clear_latches() {
    flush();
    state_.collision = 0;
  }

  // --- evaluation --------------------------------------------------------------------------------

  // Everything in [drawn_, last_clock), with the registers as they are.
  SCANLINE_HD SCANLINE_NOINLINE void evaluate() {
    const i32 last = state_.last_clock;
    if (!Sink::kDraws && needed_latches() == 0 && !state_.cosmic_ark) return pass_lines(last);
    while (drawn_ != last) {
      const i32 line_end = line_start_ + kLineClocks;
      if (drawn_ == line_end) {
        next_line();
        continue;
      }
      const i32 stop = last < line_end ? last : line_end;
      // After a whole line without anything pending, the lines below it add no collision.
      const bool whole = drawn_ == line_start_ && stop == line_end && row_ > 0;
      evaluate_line(drawn_ - line_start_, stop - line_start_);
      drawn_ = stop;
      if (!Sink::kDraws && whole && !state_.cosmic_ark) return pass_lines(last);
    }
  }

  // Nothing of the lines to come matters but their ends, and these only once.
  SCANLINE_HD void pass_lines(i32 last) {
    drawn_ = last;
    if (last - line_start_ <= kLineClocks) return;
    next_line();
    const i32 lines = (last - line_start_ - 1) / kLineClocks;
    row_ += lines;
    line_start_ += lines * kLineClocks;
  }

  SCANLINE_HD void next_line() {
    u32 changed = 0;
    if (state_.suppress[0]) changed |= object_bit(kP0);
    if (state_.suppress[1]) changed |= object_bit(kP1);
    if (state_.reflect_now != (state_.ctrlpf & 1)) changed |= object_bit(kPlayfield);
    if (state_.cosmic_ark) changed |= object_bit(kM0);
    reshape(changed);
    end_line(state_);
    line_start_ += kLineClocks;
    ++row_;
  }

  // Clocks begin <= c < end of the current line.
  SCANLINE_HD void evaluate_line(i32 begin, i32 end) {
    if (end <= kBlankClocks) return;
    const i32 first = begin > kBlankClocks ? begin - kBlankClocks : 0;
    if (needed_latches() != 0) collide(first, end - kBlankClocks);
    if (Sink::kDraws) draw(first, end - kBlankClocks);
  }

  SCANLINE_HD void draw(i32 first, i32 end) {
    const bool whole = first == 0 && end == kWidth;
    if (whole && plain_row_ == row_ - 1 && plain_comb_ == state_.comb) {
      sink_.repeat_row(row_);
      plain_row_ = row_;
    } else {
      if (Sink::kPaints) renew_brush();
      sink_.draw(state_, {row_, first, end, enabled_}, brush_);
      if (whole) plain_row_ = row_;
      if (whole) plain_comb_ = state_.comb;
    }
    if (end >= kCombPixels && first < kCombPixels) state_.comb = 0;
  }

  // Without pixels nobody looks at the comb in between: it is gone if a line's first eight pixels
  // have been passed since HMOVE set it.
  SCANLINE_HD void settle_comb() {
    if (Sink::kDraws || !state_.comb) return;
    constexpr i32 kCombEnd = kBlankClocks + kCombPixels;
    const i32 since = comb_clock_ - state_.draw_origin_clock;
    const i32 line = since < kCombEnd ? 0 : (since - kCombEnd) / kLineClocks + 1;
    const i32 passed = state_.draw_origin_clock + line * kLineClocks + kCombEnd;
    if (state_.last_clock >= passed) state_.comb = 0;
  }

  // Latches that may still be set by the enabled objects.
  SCANLINE_HD u32 needed_latches() const {
    SCANLINE_TABLE LatchTable kTable = make_latch_table();
    if (state_.vblank & 2) return 0;
    return kTable.latches[enabled_] & ~static_cast<u32>(state_.collision);
  }

  SCANLINE_HD void collide(i32 first, i32 end) {
    renew_masks();
    const Bits160 span = Bits160::span(first, end);
    if (!meet(overlaps(), span)) return;
    for (u32 needed = needed_latches(); needed != 0; needed &= needed - 1) {
      const u32 latch = lowest_bit(needed);
      const LatchPair pair = latch_pair(latch);
      if (meet(masks_[pair.first] & span, masks_[pair.second]))
        state_.collision = static_cast<u16>(state_.collision | (1u << latch));
    }
  }

  // Pixels on which any two objects are lit.
  SCANLINE_HD Bits160 overlaps() const {
    Bits160 lit = masks_[0];
    Bits160 twice = Bits160::none();
    for (u32 object = 1; object < kNumObjects; ++object) {
      twice = twice | (lit & masks_[object]);
      lit = lit | masks_[object];
    }
    return twice;
  }

  SCANLINE_HD void renew_brush() {
    renew_masks();
    if (!brush_is_stale_) return;
    brush_ = Brush(layers_of(priority_of(state_.ctrlpf, enabled_), masks_));
    brush_is_stale_ = false;
  }

  SCANLINE_HD void renew_masks() {
    u32 stale = (dirty_ & enabled_) | (enabled_ ^ renewed_);
    if (stale == 0) return;
    brush_is_stale_ = true;
    renew_mask<kP0>(stale);
    renew_mask<kP1>(stale);
    renew_mask<kM0>(stale);
    renew_mask<kM1>(stale);
    renew_mask<kBall>(stale);
    renew_mask<kPlayfield>(stale);
    dirty_ &= ~enabled_;
    renewed_ = enabled_;
  }

  // One test per object: a jump by the object's number would seldom be predicted.
  template <u32 object>
  SCANLINE_HD SCANLINE_INLINE void renew_mask(u32 stale) {
    if ((stale & object_bit(object)) == 0) return;
    const bool enabled = (enabled_ & object_bit(object)) != 0;
    if (enabled && (dirty_ & object_bit(object))) shapes_[object] = mask_of<object>();
    masks_[object] = enabled ? shapes_[object] : Bits160::none();
  }

  SCANLINE_HD SCANLINE_INLINE Bits160 player_shape(u32 i) const {
    const u8 byte = player_byte(state_, i);
    return player_mask(state_.refp[i] ? byte : reverse_bits(byte), state_.nusiz[i],
                       state_.pos[kP0 + i], state_.suppress[i]);
  }

  template <u32 object>
  SCANLINE_HD SCANLINE_INLINE Bits160 mask_of() const {
    if constexpr (object == kP0 || object == kP1) return player_shape(object);
    if constexpr (object == kM0)
      return missile_mask(state_.nusiz[0], missile0_width(state_), state_.pos[kM0]);
    if constexpr (object == kM1)
      return missile_mask(state_.nusiz[1], narrow_width(state_.nusiz[1]), state_.pos[kM1]);
    if constexpr (object == kBall) return ball_mask(narrow_width(state_.ctrlpf), state_.pos[kBall]);
    if constexpr (object == kPlayfield)
      return playfield_mask(state_.pf[0], state_.pf[1], state_.pf[2], state_.reflect_now);
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
  u32 line_phase_;  // cycles of a line already gone at cycle 0
  i32 comb_clock_;  // last_clock when the comb was set
  u32 enabled_;     // set of enabled objects
  u32 dirty_;       // set of objects whose shape is out of date
  u32 renewed_;     // enabled_ when the masks were renewed
  i32 plain_row_;   // last row drawn as one span if nothing visible has changed since, or kNoRow
  u8 plain_comb_;   // whether that row has a comb
  u8 loss_;         // bit 0 of colours written now
  Bits160 shapes_[kNumObjects];  // where objects would be lit
  Bits160 masks_[kNumObjects];   // the same, empty for those not enabled
  Brush brush_;
  bool brush_is_stale_;
};

}  // namespace scanline
