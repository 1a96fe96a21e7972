// test_tia_plain.cpp -- PlainTia against pictures known from the specification of ALE's TIA.
//
// Each test writes registers at given lines and cycles and names the pixels that must follow, as
// intervals worked out by hand. Line 0 is the first one displayed. The masks are compared with
// PlainTia elsewhere; here PlainTia itself is held to something that is no code of ours.
#include <cstring>
#include <initializer_list>
#include <vector>

#include "../core/tia_plain.h"
#include "check.h"

using namespace scanline;

namespace {

constexpr u8 kP0Colour = 0x10, kP1Colour = 0x20, kFieldColour = 0x30, kBackColour = 0x40;

// One console without a processor: writes happen at the time they are given.
class Beam {
 public:
  explicit Beam(Properties properties = {})
      : properties_(properties), pictures_(2 * kPictureBytes) {
    tia().start_frame();
    colour(COLUP0, kP0Colour);
    colour(COLUP1, kP1Colour);
    colour(COLUPF, kFieldColour);
    colour(COLUBK, kBackColour);
  }

  // At a CPU cycle of a displayed line; before the picture for negative lines. True: frame ended.
  bool write(i32 line, i32 cycle, u32 address, u8 value) {
    state.cycles = cycles_at(line, cycle);
    return tia().write(u16(address), value, state.cycles, true);
  }

  // Before the picture, and far from any HMOVE.
  void set(u32 address, u8 value) { write(-20, 30, address, value); }
  void colour(u32 address, u8 value) { set(address, value); }

  u8 read(i32 line, i32 cycle, u32 address) {
    return u8(tia().read(u16(address), 0, cycles_at(line, cycle)) & 0xC0);
  }

  // Draws everything up to the end of a line.
  const u8* row(i32 line) {
    tia().read(0x0E, 0, cycles_at(line + 1, 0));
    return row_as_it_is(line);
  }

  void finish(i32 line, i32 cycle) {
    state.cycles = cycles_at(line, cycle);
    tia().finish();
  }

  const u8* row_as_it_is(i32 line) const {
    return pictures_.data() + (state.buffer_parity ? kPictureBytes : 0) + line * kWidth;
  }

  // The next frame; the old one ended with a whole line.
  void start_frame() {
    state.cycles = 262 * 76;
    tia().start_frame();
  }

  MachineState state{};

 private:
  PlainTia<Pixels<>> tia() {
    return PlainTia<Pixels<>>(state, properties_, Pixels<>(pictures_.data()));
  }
  u32 cycles_at(i32 line, i32 cycle) const {
    return u32((properties_.y_start + line) * 76 + cycle);
  }

  Properties properties_;
  std::vector<u8> pictures_;
};

struct Part {
  i32 begin, end;  // pixels, modulo 160
  u8 colour;
};

// The row is background but for the parts, later ones in front.
bool shows(const u8* row, std::initializer_list<Part> parts, u8 background = kBackColour) {
  u8 expected[kWidth];
  std::memset(expected, background, kWidth);
  for (const Part& part : parts) {
    for (i32 x = part.begin; x < part.end; ++x) expected[(x + kWidth) % kWidth] = part.colour;
  }
  return std::memcmp(row, expected, kWidth) == 0;
}

void playfield_registers_are_read_in_their_order() {
  Beam beam;
  beam.set(PF0, 0x10);
  beam.set(PF1, 0x80);
  beam.set(PF2, 0x01);
  const auto field = kFieldColour;
  CHECK(shows(beam.row(0), {{0, 4, field},
                            {16, 20, field},
                            {48, 52, field},
                            {80, 84, field},
                            {96, 100, field},
                            {128, 132, field}}));
  beam.write(1, 0, CTRLPF, 1);
  CHECK(shows(beam.row(1), {{0, 4, field},
                            {16, 20, field},
                            {48, 52, field},
                            {156, 160, field},
                            {140, 144, field},
                            {108, 112, field}}));
}

// Cycle 48 is clock 144, the last that counts; 49 is clock 147.
void reflection_waits_for_the_next_line_after_the_middle() {
  Beam beam;
  beam.set(PF0, 0x10);
  beam.write(0, 48, CTRLPF, 1);
  CHECK(shows(beam.row(0), {{0, 4, kFieldColour}, {156, 160, kFieldColour}}));
  beam.write(1, 49, CTRLPF, 0);
  CHECK(shows(beam.row(1), {{0, 4, kFieldColour}, {156, 160, kFieldColour}}));
  CHECK(shows(beam.row(2), {{0, 4, kFieldColour}, {80, 84, kFieldColour}}));
}

// RESP0 in cycle 30 of a line before: clock 90, pixel 27.
Beam with_player(u8 nusiz, u8 pattern = 0xFF) {
  Beam beam;
  beam.set(NUSIZ0, nusiz);
  beam.set(GRP0, pattern);
  beam.write(-10, 30, RESP0, 0);
  beam.write(-9, 30, HMOVE, 0);  // ends the suppression of the first copy, moves nothing
  return beam;
}

void nusiz_makes_copies_and_widths() {
  const u8 p = kP0Colour;
  CHECK(shows(with_player(0).row(0), {{27, 35, p}}));
  CHECK(shows(with_player(1).row(0), {{27, 35, p}, {43, 51, p}}));
  CHECK(shows(with_player(2).row(0), {{27, 35, p}, {59, 67, p}}));
  CHECK(shows(with_player(3).row(0), {{27, 35, p}, {43, 51, p}, {59, 67, p}}));
  CHECK(shows(with_player(4).row(0), {{27, 35, p}, {91, 99, p}}));
  CHECK(shows(with_player(5).row(0), {{28, 44, p}}));  // wide players come a pixel late
  CHECK(shows(with_player(6).row(0), {{27, 35, p}, {59, 67, p}, {91, 99, p}}));
  CHECK(shows(with_player(7).row(0), {{28, 60, p}}));
}

void patterns_begin_with_the_highest_bit_and_can_be_mirrored() {
  Beam beam = with_player(0, 0xB0);
  CHECK(shows(beam.row(0), {{27, 28, kP0Colour}, {29, 31, kP0Colour}}));
  beam.write(1, 0, REFP0, 8);
  CHECK(shows(beam.row(1), {{31, 33, kP0Colour}, {34, 35, kP0Colour}}));
  beam.write(2, 0, NUSIZ0, 5);
  CHECK(shows(beam.row(2), {{36, 40, kP0Colour}, {42, 44, kP0Colour}}));
}

void missiles_and_ball_have_four_widths_and_missiles_the_copies() {
  for (u32 size = 0; size < 4; ++size) {
    Beam beam;
    beam.set(NUSIZ1, u8(size << 4 | 1));
    beam.set(CTRLPF, u8(size << 4));
    beam.set(ENAM1, 2);
    beam.set(ENABL, 2);
    beam.write(-10, 30, RESM1, 0);  // pixel 26
    beam.write(-10, 60, RESBL, 0);  // pixel 116
    const i32 width = 1 << size;
    CHECK(shows(beam.row(0), {{26, 26 + width, kP1Colour},
                              {42, 42 + width, kP1Colour},
                              {116, 116 + width, kFieldColour}}));
  }
  Beam beam;
  beam.set(NUSIZ0, 7);  // a wide player's missile stays single and narrow
  beam.set(ENAM0, 2);
  beam.write(-10, 30, RESM0, 0);
  CHECK(shows(beam.row(0), {{26, 27, kP0Colour}}));
}

// HBLANK gives 3 and 2, otherwise 5 and 4 pixels behind the beam.
void strobes_place_objects_behind_the_beam() {
  for (i32 cycle : {0, 10, 22, 23, 40, 74, 75}) {
    const i32 pixel = 3 * cycle - 68;
    Beam beam;
    beam.set(GRP1, 0x80);
    beam.set(ENAM0, 2);
    beam.set(ENABL, 2);
    beam.set(CTRLPF, 4);  // the ball is in front of both
    beam.write(-10, cycle, RESP1, 0);
    beam.write(-9, cycle, RESM0, 0);
    beam.write(-8, cycle, RESBL, 0);
    beam.write(-7, 30, HMOVE, 0);
    const i32 player = pixel < 0 ? 3 : pixel + 5, narrow = pixel < 0 ? 2 : pixel + 4;
    CHECK(
        shows(beam.row(0), {{player, player + 1, kP1Colour}, {narrow, narrow + 1, kFieldColour}}));
  }
}

void a_strobe_hides_the_first_copy_until_the_line_ends() {
  Beam beam = with_player(1);
  beam.write(0, 50, RESP0, 0);  // pixel 87, nowhere near a copy: old copies are past
  CHECK(shows(beam.row(0), {{27, 35, kP0Colour}, {43, 51, kP0Colour}, {103, 111, kP0Colour}}));
  CHECK(shows(beam.row(1), {{87, 95, kP0Colour}, {103, 111, kP0Colour}}));
  Beam again = with_player(1);
  again.write(0, 33, RESP0, 0);  // pixel 36, 9 behind the old start: over the copy
  CHECK(shows(again.row(0), {{27, 35, kP0Colour}, {52, 60, kP0Colour}}));
  CHECK(shows(again.row(1), {{36, 44, kP0Colour}, {52, 60, kP0Colour}}));
  Beam close = with_player(1);
  close.write(0, 31, RESP0, 0);  // pixel 30, 3 behind the old start: all copies are shown
  CHECK(shows(close.row(0), {{30, 38, kP0Colour}, {46, 54, kP0Colour}}));
  Beam further = with_player(1);
  further.write(-3, 30, HMP0, 0x10);
  further.write(-2, 75, HMOVE, 0);  // one to the left: now pixel 30 is 4 behind the start
  further.write(0, 31, RESP0, 0);
  CHECK(shows(further.row(0), {{0, 8, 0}, {26, 34, kP0Colour}, {46, 54, kP0Colour}}));
  Beam wide = with_player(5);
  wide.write(0, 33, RESP0, 0);  // clock 99: the old copy is drawn for 11 clocks more
  CHECK(shows(wide.row(0), {{28, 42, kP0Colour}}));
  CHECK(shows(wide.row(1), {{37, 53, kP0Colour}}));
}

void hmove_draws_its_comb_and_moves() {
  Beam beam = with_player(0);
  beam.write(0, 3, HMOVE, 0);
  CHECK(shows(beam.row(0), {{0, 8, 0}, {27, 35, kP0Colour}}));
  CHECK(shows(beam.row(1), {{27, 35, kP0Colour}}));
  beam.write(2, 3, HMP0, 0x10);
  beam.write(3, 20, HMOVE, 0);  // the last cycle with a comb: motion to the left is lost
  CHECK(shows(beam.row(3), {{0, 8, 0}, {33, 41, kP0Colour}}));
  beam.write(4, 40, HMOVE, 0);  // no comb; clocks of the line itself are missing
  CHECK(shows(beam.row(5), {{33, 41, kP0Colour}}));
  beam.write(6, 75, HMOVE, 0);  // belongs to the line that follows
  CHECK(shows(beam.row(6), {{33, 41, kP0Colour}}));
  CHECK(shows(beam.row(7), {{0, 8, 0}, {32, 40, kP0Colour}}));
}

void motion_follows_the_register_and_wraps() {
  for (i32 nibble = 0; nibble < 16; ++nibble) {
    Beam beam = with_player(0, 0x80);
    beam.write(-2, 30, HMP0, u8(nibble << 4));
    beam.write(-1, 75, HMOVE, 0);
    const i32 right = nibble < 8 ? -nibble : 16 - nibble;
    CHECK(shows(beam.row(0), {{0, 8, 0}, {27 + right, 28 + right, kP0Colour}}));
    beam.write(0, 70, HMCLR, 0);
    beam.write(0, 75, HMOVE, 0);
    CHECK(shows(beam.row(1), {{0, 8, 0}, {27 + right, 28 + right, kP0Colour}}));
  }
  Beam beam;
  beam.set(ENABL, 2);
  beam.set(HMBL, 0x70);
  beam.write(-10, 0, RESBL, 0);
  beam.write(-1, 40, HMOVE, 0);  // too late to move anything to the left
  beam.write(-1, 75, HMOVE, 0);
  CHECK(shows(beam.row(0), {{0, 8, 0}, {155, 156, kFieldColour}}));
  Properties without_comb;
  without_comb.hmove_blanks = false;
  Beam asteroids(without_comb);
  asteroids.write(0, 3, HMOVE, 0);
  CHECK(shows(asteroids.row(0), {}));
}

void delayed_players_change_when_the_other_is_written() {
  Beam beam = with_player(0, 0x80);
  beam.write(0, 0, VDELP0, 1);
  CHECK(shows(beam.row(0), {}));  // GRP1 was never written: the delayed copy is empty
  beam.write(1, 0, GRP1, 0);
  CHECK(shows(beam.row(1), {{27, 28, kP0Colour}}));
  beam.write(2, 0, GRP0, 0x40);
  CHECK(shows(beam.row(2), {{27, 28, kP0Colour}}));
  beam.write(3, 0, GRP1, 0);
  CHECK(shows(beam.row(3), {{28, 29, kP0Colour}}));
}

void a_delayed_ball_changes_with_player_1() {
  Beam beam;
  beam.write(-10, 30, RESBL, 0);
  beam.set(VDELBL, 1);
  beam.write(0, 0, ENABL, 2);
  CHECK(shows(beam.row(0), {}));
  beam.write(1, 0, GRP0, 0);
  CHECK(shows(beam.row(1), {}));
  beam.write(2, 0, GRP1, 0);
  CHECK(shows(beam.row(2), {{26, 27, kFieldColour}}));
}

// Player 0 at 27..34, player 1 at 30..37, playfield at 32..35.
Beam overlapping(u8 ctrlpf) {
  Beam beam;
  beam.set(CTRLPF, ctrlpf);
  beam.set(GRP0, 0xFF);
  beam.set(GRP1, 0xFF);
  beam.set(PF1, 0x08);
  beam.write(-10, 30, RESP0, 0);
  beam.write(-10, 31, RESP1, 0);
  beam.write(-9, 30, HMOVE, 0);
  return beam;
}

void priority_decides_who_is_in_front() {
  CHECK(shows(overlapping(0).row(0), {{32, 36, kFieldColour},
                                      {112, 116, kFieldColour},
                                      {30, 38, kP1Colour},
                                      {27, 35, kP0Colour}}));
  CHECK(shows(overlapping(4).row(0), {{30, 38, kP1Colour},
                                      {27, 35, kP0Colour},
                                      {32, 36, kFieldColour},
                                      {112, 116, kFieldColour}}));
  // Score without priority: the left playfield shares the colour and the place of player 0.
  CHECK(shows(
      overlapping(2).row(0),
      {{112, 116, kP1Colour}, {30, 38, kP1Colour}, {32, 36, kP0Colour}, {27, 35, kP0Colour}}));
  // Both, with players enabled: priority wins and the playfield has its own colour.
  CHECK(shows(overlapping(6).row(0), {{30, 38, kP1Colour},
                                      {27, 35, kP0Colour},
                                      {32, 36, kFieldColour},
                                      {112, 116, kFieldColour}}));
}

void score_colours_the_halves_and_spares_the_ball() {
  for (u8 ctrlpf : {2, 6}) {
    Beam beam;
    beam.set(CTRLPF, ctrlpf);
    beam.set(PF1, 0x08);
    CHECK(shows(beam.row(0), {{32, 36, kP0Colour}, {112, 116, kP1Colour}}));
    beam.write(1, 30, RESBL, 0);
    beam.write(2, 0, ENABL, 2);
    const u8 left = ctrlpf == 2 ? kP0Colour : kFieldColour;
    const u8 right = ctrlpf == 2 ? kP1Colour : kFieldColour;
    CHECK(shows(beam.row(2), {{32, 36, left}, {112, 116, right}, {26, 27, kFieldColour}}));
  }
}

// Everything at one place: all latches; the playfield covers the line.
void each_overlap_sets_its_latch() {
  Beam beam;
  for (u32 address : {GRP0, GRP1, PF0, PF1, PF2}) beam.set(address, 0xFF);
  for (u32 address : {ENAM0, ENAM1, ENABL}) beam.set(address, 2);
  for (u32 address : {RESP0, RESP1}) beam.write(-10, 30, address, 0);
  for (u32 address : {RESM0, RESM1, RESBL}) beam.write(-10, 31, address, 0);
  beam.write(-9, 30, HMOVE, 0);
  for (u32 which = 0; which < 8; ++which) CHECK(beam.read(-1, 0, which) == 0);
  for (u32 which = 0; which < 6; ++which) CHECK(beam.read(1, 0, which) == 0xC0);
  CHECK(beam.read(1, 0, 6) == 0x80 && beam.read(1, 0, 7) == 0xC0);
  beam.write(1, 2, CXCLR, 0);
  for (u32 which = 0; which < 8; ++which) CHECK(beam.read(1, 5, which) == 0);
  CHECK(beam.read(1, 40, 7) == 0xC0);
}

void only_what_is_drawn_collides() {
  Beam beam = overlapping(0);
  beam.set(VBLANK, 2);
  CHECK(beam.read(3, 0, 7) == 0);
  CHECK(shows(beam.row(2), {}, 0));
  beam.write(3, 0, VBLANK, 0);
  CHECK(beam.read(4, 0, 7) == 0x80);  // the players
  CHECK(beam.read(4, 0, 2) == 0x80 && beam.read(4, 0, 3) == 0x80);
  beam.write(210, 0, CXCLR, 0);
  CHECK(beam.read(215, 0, 7) == 0);  // below the picture
  Beam combed;
  for (u32 address : {GRP0, GRP1}) combed.set(address, 0x80);
  for (u32 address : {RESP0, RESP1}) combed.write(-10, 10, address, 0);
  combed.write(0, 3, HMOVE, 0);
  CHECK(shows(combed.row(0), {{0, 8, 0}}));
  CHECK(combed.read(1, 0, 7) == 0x80);  // under the comb
}

void a_locked_missile_leaves_from_the_players_middle() {
  static constexpr i32 kMiddle[8] = {4, 4, 4, 4, 4, 8, 4, 16};
  for (u32 mode : {0u, 5u, 7u}) {
    Beam beam = with_player(u8(mode), 0);
    beam.set(ENAM0, 2);
    beam.write(0, 0, RESMP0, 2);
    CHECK(shows(beam.row(0), {}));
    beam.write(1, 0, RESMP0, 0);
    const i32 x = 27 + kMiddle[mode];
    CHECK(shows(beam.row(1), {{x, x + 1, kP0Colour}}));
  }
}

// The background changes under the beam: clock - 68, and later by each register's delay.
void writes_are_seen_after_their_delay() {
  Beam beam;
  beam.write(0, 40, COLUBK, 0x50);
  CHECK(shows(beam.row(0), {{0, 52, kBackColour}}, 0x50));
  beam.write(1, 40, VBLANK, 2);
  CHECK(shows(beam.row(1), {{0, 53, 0x50}}, 0));
  beam.write(2, 0, VBLANK, 0);
  static constexpr i32 kDelays[4] = {4, 5, 2, 3};  // by cycle modulo 4
  for (i32 phase = 0; phase < 4; ++phase) {
    Beam field;
    for (u32 address : {PF0, PF1, PF2}) field.set(address, 0xFF);
    for (u32 i = 0; i < 3; ++i) field.write(0, 36 + phase, PF0 + i, 0);
    const i32 x = 3 * (36 + phase) + kDelays[phase] - 68;
    CHECK(shows(field.row(0), {{0, x, kFieldColour}}));
  }
  Beam copies = with_player(1);
  copies.write(0, 36, NUSIZ0, 0);  // clock 108 + 8: pixel 48, within the second copy
  CHECK(shows(copies.row(0), {{27, 35, kP0Colour}, {43, 48, kP0Colour}}));
}

// Missile 0 runs by itself: 18, 33, 0, 17 to the left, wide on one line and hidden on the next.
void cosmic_arks_missile_runs() {
  Beam beam;
  beam.set(ENAM0, 2);
  beam.write(-10, 60, RESM0, 0);  // pixel 116
  beam.write(-2, 20, HMM0, 0x70);
  beam.write(-1, 40, HMOVE, 0);
  const i32 start = beam.state.pos[kM0];
  beam.write(-1, 61, HMM0, 0x60);
  CHECK(shows(beam.row(0), {{start, start + 1, kP0Colour}}));
  i32 x = start;
  static constexpr i32 kSteps[4] = {33, 0, 17, 18}, kWidths[4] = {2, 0, 1, 1};
  for (i32 line = 1; line < 9; ++line) {
    x -= kSteps[(line - 1) % 4];
    CHECK(shows(beam.row(line), {{x + 160, x + 160 + kWidths[(line - 1) % 4], kP0Colour}}));
  }
}

// Below the beam lies the picture of two frames ago.
void an_unfinished_frame_is_greyed_below_the_beam() {
  Beam beam;
  beam.set(COLUBK, 0x4E);
  beam.row(209);
  beam.start_frame();
  beam.start_frame();
  beam.set(COLUBK, 0x52);
  beam.row(149);
  beam.state.partial = 1;
  beam.finish(150, 10);
  CHECK(shows(beam.row_as_it_is(149), {}, 0x52));
  CHECK(shows(beam.row_as_it_is(150), {}, 0x0E >> 1));
  CHECK(shows(beam.row_as_it_is(209), {}, 0x0E >> 1));
  beam.finish(160, 10);  // once is enough
  CHECK(shows(beam.row_as_it_is(209), {}, 0x0E >> 1));
  Beam ended;
  ended.finish(250, 10);
  CHECK(ended.state.greyed == 0 && ended.state.lines_of_last_frame == 284);
}

void vsync_or_too_many_lines_end_a_frame() {
  Beam beam;
  CHECK(!beam.write(215, 10, VSYNC, 2));
  CHECK(!beam.write(216, 9, VSYNC, 0));  // 75 cycles: a line is not over
  CHECK(!beam.write(217, 10, VSYNC, 2));
  beam.state.partial = 1;
  CHECK(beam.write(218, 10, VSYNC, 0) && beam.state.partial == 0);
  Beam endless;
  CHECK(!endless.write(290 - 34, 75, COLUBK, 0));
  CHECK(endless.write(291 - 34, 0, COLUBK, 0));
  Properties pal;
  pal.pal = true;
  Beam european(pal);
  CHECK(!european.write(342 - 34, 75, COLUBK, 0));
  CHECK(european.write(343 - 34, 0, COLUBK, 0));
}

void pal_loses_colour_after_an_odd_number_of_lines() {
  Properties pal;
  pal.pal = true;
  Beam beam(pal);
  CHECK(shows(beam.row(0), {}));
  beam.state.lines_of_last_frame = 311;
  beam.start_frame();
  CHECK(shows(beam.row(0), {}, kBackColour + 1));
  beam.write(1, 0, COLUBK, 0x53);
  CHECK(shows(beam.row(1), {}, 0x53));
  Beam ntsc;
  ntsc.state.lines_of_last_frame = 261;
  ntsc.start_frame();
  ntsc.write(0, 0, COLUBK, 0x53);
  CHECK(shows(ntsc.row(0), {}, 0x52));
}

}  // namespace

int main() {
  playfield_registers_are_read_in_their_order();
  reflection_waits_for_the_next_line_after_the_middle();
  nusiz_makes_copies_and_widths();
  patterns_begin_with_the_highest_bit_and_can_be_mirrored();
  missiles_and_ball_have_four_widths_and_missiles_the_copies();
  strobes_place_objects_behind_the_beam();
  a_strobe_hides_the_first_copy_until_the_line_ends();
  hmove_draws_its_comb_and_moves();
  motion_follows_the_register_and_wraps();
  delayed_players_change_when_the_other_is_written();
  a_delayed_ball_changes_with_player_1();
  priority_decides_who_is_in_front();
  score_colours_the_halves_and_spares_the_ball();
  each_overlap_sets_its_latch();
  only_what_is_drawn_collides();
  a_locked_missile_leaves_from_the_players_middle();
  writes_are_seen_after_their_delay();
  cosmic_arks_missile_runs();
  an_unfinished_frame_is_greyed_below_the_beam();
  vsync_or_too_many_lines_end_a_frame();
  pal_loses_colour_after_an_odd_number_of_lines();
  return check::result("tia_plain");
}
