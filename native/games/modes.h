// modes.h -- the modes that a game offers, and how the console's switches choose one.
//
// Takes a row, the game's state and a driver of the environment: `u8 ram(u8)`, `u8 cartridge(u16)`,
// `void press_select(u32 frames)`, `void soft_reset()`, `void act(Action)`, `u32 random()`.
// What ALE does without bound is bounded here: false means that the mode was not reached.
#pragma once

#include "game_state.h"
#include "row.h"
#include "special/video_checkers.h"

namespace scanline::games {

// Far above what any game needs (134 presses), far below what looks like a hang.
constexpr u32 kMaxPresses = 4096;

SCANLINE_HD inline u32 num_modes(const GameRow& row) {
  const Modes& modes = row.modes;
  return modes.product ? modes.ranges[0].count * modes.ranges[1].count
                       : modes.ranges[0].count + modes.ranges[1].count;
}

SCANLINE_HD inline u32 member(const Range& range, u32 index) {
  return range.first + index * range.step;
}

// The first one is the default.
SCANLINE_HD inline u32 mode_at(const GameRow& row, u32 index) {
  const Range& first = row.modes.ranges[0];
  const Range& second = row.modes.ranges[1];
  if (row.modes.product) {
    return member(first, index / second.count) + member(second, index % second.count);
  }
  return index < first.count ? member(first, index) : member(second, index - first.count);
}

SCANLINE_HD inline bool has_mode(const GameRow& row, u32 mode) {
  for (u32 i = 0; i < num_modes(row); ++i) {
    if (mode_at(row, i) == mode) return true;
  }
  return false;
}

SCANLINE_HD inline bool has_difficulty(const GameRow& row, u32 difficulty) {
  return difficulty < 4 && (row.difficulties >> difficulty & 1) != 0;
}

namespace select {

SCANLINE_HD inline bool in_second_range(const Modes& modes, u32 mode) {
  return modes.ranges[1].count != 0 && mode >= modes.ranges[1].first;
}

template <class Driver>
SCANLINE_HD bool shows(const GameRow& row, u32 mode, Driver& driver) {
  const Select& how = row.select;
  const u8 byte = how.address >= 0x1000 ? driver.cartridge(how.address)
                                        : driver.ram(static_cast<u8>(how.address));
  const u32 found = static_cast<u32>(decode(how.decoder, byte));
  u32 wanted = how.scale * mode + how.offset;
  if (in_second_range(row.modes, mode)) wanted += how.second_offset;
  const bool reached = found == wanted || found == wanted + how.alternative;
  return reached && (how.also_address == 0 || driver.ram(how.also_address) == how.also_value);
}

template <class Driver>
SCANLINE_HD bool press(const GameRow& row, GameState& state, u32 mode, Driver& driver) {
  const Select& how = row.select;
  for (u32 i = 0; i < how.wait; ++i) driver.act(kNoop);
  if (how.resets_first) driver.soft_reset();
  if (how.first_press != 0) driver.press_select(how.first_press);
  for (u32 i = 0; i < kMaxPresses; ++i) {
    if (shows(row, mode, driver)) {
      state.end_masked = row.mode_masks_end;
      driver.soft_reset();
      return true;
    }
    driver.press_select(how.frames);
  }
  return false;
}

// Adventure seeds its third level from how long SELECT was held, so ALE holds it at random.
template <class Driver>
SCANLINE_HD bool adventure(u32 mode, Driver& driver) {
  for (u32 i = 0; i < kMaxPresses; ++i) {
    if ((driver.ram(0xDD) >> 1 & 3u) == mode) {
      driver.soft_reset();
      return true;
    }
    driver.press_select(2 + driver.random() % 256);
    driver.act(kNoop);
  }
  return false;
}

// Two bytes: the number shown, and whether the variation is the plain one (mode 0).
template <class Driver>
SCANLINE_HD bool ms_pacman(u32 mode, Driver& driver) {
  const u32 number = mode == 0 ? 1 : mode;
  const u32 plain = mode == 0 ? 1 : 0;
  for (u32 i = 0; i < kMaxPresses; ++i) {
    if (driver.ram(0x99) == number && driver.ram(0xA1) == plain) {
      driver.soft_reset();
      return true;
    }
    driver.press_select(10);
  }
  return false;
}

// Double Dunk's menu: a frame of the joystick and a frame of rest, until the line changes.
template <class Driver>
SCANLINE_HD bool next_line(Driver& driver) {
  const u8 line = driver.ram(0xB0);
  for (u32 i = 0; i < kMaxPresses; ++i) {
    if (driver.ram(0xB0) != line) return true;
    driver.act(kDown);
    driver.act(kNoop);
  }
  return false;
}

template <class Driver>
SCANLINE_HD bool set_option(u8 bit, bool on, Driver& driver) {
  for (u32 i = 0; i < kMaxPresses; ++i) {
    if (((driver.ram(0x80) & bit) != 0) == on) return true;
    driver.act(on ? kRight : kLeft);
    driver.act(kNoop);
  }
  return false;
}

// The last four lines are options; bits 0..3 of the mode say which are on.
template <class Driver>
SCANLINE_HD bool double_dunk(u32 mode, Driver& driver) {
  driver.press_select(1);
  if (!next_line(driver)) return false;
  constexpr u32 kOptionBits = 0x20041008;  // a byte a line, the first one lowest
  for (u32 line = 0; line < 4; ++line) {
    const u8 bit = static_cast<u8>(kOptionBits >> 8 * line);
    if (!next_line(driver) || !set_option(bit, mode >> line & 1, driver)) return false;
  }
  driver.soft_reset();
  driver.act(kUpFire);
  driver.act(kNoop);
  return true;
}

// Hundreds: the cube, where none means the first; units: one of three variations.
template <class Driver>
SCANLINE_HD bool video_cube(u32 mode, Driver& driver) {
  const u32 units = mode % 100;
  const u32 variation = units == 0 ? 0 : units == 1 ? 2 : 8;
  const u32 cube = mode < 100 ? 1 : mode / 100;
  for (u32 i = 0; (driver.ram(0xFB) & 0x1Fu) != variation; ++i) {
    if (i == kMaxPresses) return false;
    driver.press_select(2);
  }
  driver.soft_reset();
  for (u32 i = 0; static_cast<u32>(bcd_of(driver.ram(0x9F))) != cube; ++i) {
    if (i == kMaxPresses) return false;
    driver.act(kRight);
  }
  return true;
}

}  // namespace select

template <class Driver>
SCANLINE_HD bool select_mode(const GameRow& row, GameState& state, u32 mode, Driver& driver) {
  if (row.game == GameId::video_checkers) special::video_checkers::set_mode(state, mode);
  switch (row.select.rule) {
    case SelectRule::kPress:
      return select::press(row, state, mode, driver);
    case SelectRule::kAdventure:
      return select::adventure(mode, driver);
    case SelectRule::kDoubleDunk:
      return select::double_dunk(mode, driver);
    case SelectRule::kMsPacman:
      return select::ms_pacman(mode, driver);
    case SelectRule::kVideoCube:
      return select::video_cube(mode, driver);
    default:
      return true;
  }
}

}  // namespace scanline::games
