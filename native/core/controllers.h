// controllers.h -- from actions to the lines the chips read: joysticks, paddles, switches.
//
// Actions are numbered 0 to 17 as in ALE, for both players. Changes the input fields of
// MachineState only. Which controllers are plugged in is a matter of the ROM's properties.
#pragma once

#include "properties.h"
#include "state.h"

namespace scanline {

constexpr u32 kNumActions = 18;
constexpr i32 kPaddleMin = 27450;   // resistance at the start of the paddle's travel
constexpr i32 kPaddleStep = 23000;  // resistance per frame at full strength
constexpr u8 kSwitchReset = 0x01, kSwitchSelect = 0x02, kSwitchColour = 0x08;
constexpr u8 kSwitchLeftA = 0x40, kSwitchRightA = 0x80;

// What one action presses: the four directions in the order of the port's pins, then fire.
enum Pressed : u8 { kLineUp = 1, kLineDown = 2, kLineLeft = 4, kLineRight = 8, kLineFire = 16 };

SCANLINE_HD inline u8 pressed_by(u32 action) {
  SCANLINE_TABLE u8 kPressed[kNumActions] = {
      0,
      kLineFire,
      kLineUp,
      kLineRight,
      kLineLeft,
      kLineDown,
      kLineUp | kLineRight,
      kLineUp | kLineLeft,
      kLineDown | kLineRight,
      kLineDown | kLineLeft,
      kLineUp | kLineFire,
      kLineRight | kLineFire,
      kLineLeft | kLineFire,
      kLineDown | kLineFire,
      kLineUp | kLineRight | kLineFire,
      kLineUp | kLineLeft | kLineFire,
      kLineDown | kLineRight | kLineFire,
      kLineDown | kLineLeft | kLineFire,
  };
  return action < kNumActions ? kPressed[action] : 0;
}

SCANLINE_HD inline bool uses_paddles(const Properties& properties) {
  return properties.left_paddles || properties.right_paddles;
}

SCANLINE_HD inline void set_joysticks(MachineState& s, const Properties& properties, u32 action_a,
                                      u32 action_b) {
  const u8 a = pressed_by(action_a), b = pressed_by(action_b);
  const u8 left = properties.swap_ports ? b : a, right = properties.swap_ports ? a : b;
  s.swcha = u8(~(((left & 15) << 4) | (right & 15)));
  s.fire_lines = u8((left >> 4) | ((right >> 4) << 1));
}

// Buttons of paddles 0 and 1 are two direction lines of the left port. ALE never presses those of
// paddles 2 and 3.
SCANLINE_HD inline void set_paddle_buttons(MachineState& s, const Properties& properties,
                                           bool button0, bool button1) {
  const bool pin3 = properties.swap_paddles ? button0 : button1;
  const bool pin4 = properties.swap_paddles ? button1 : button0;
  const u8 pressed = u8((pin3 ? kLineLeft : 0) | (pin4 ? kLineRight : 0));
  s.swcha = 0xFF;
  if (properties.left_paddles) s.swcha = u8(~(properties.swap_ports ? pressed : pressed << 4));
  s.fire_lines = 0;
}

// Cycles a capacitor of 10 nF takes to charge through the paddle, in ALE's double arithmetic.
SCANLINE_HD inline u32 paddle_charge_cycles(i32 resistance) {
  if (resistance == 0) return kZeroPaddle;
  const double seconds = 1.6 * resistance * 0.01e-6;
  return u32(seconds * 1.19e6);
}

// Paddles 0 and 1 sit on the left jack; 2 and 3, if any, stay at resistance 0 in ALE.
SCANLINE_HD inline void set_paddle_resistances(MachineState& s, const Properties& properties,
                                               i32 paddle0, i32 paddle1) {
  for (u32& threshold : s.paddle_threshold_cycles) threshold = kNoPaddle;
  const u32 left = properties.swap_ports ? 2 : 0, right = 2 - left;
  if (properties.left_paddles) {
    const u32 swap = properties.swap_paddles ? 1 : 0;
    s.paddle_threshold_cycles[left + swap] = paddle_charge_cycles(paddle0);
    s.paddle_threshold_cycles[left + 1 - swap] = paddle_charge_cycles(paddle1);
  }
  if (properties.right_paddles) {
    s.paddle_threshold_cycles[right] = s.paddle_threshold_cycles[right + 1] = kZeroPaddle;
  }
}

SCANLINE_HD inline bool is_paddle_threshold(const Properties& properties, u32 cycles) {
  return cycles >= kZeroPaddle || cycles <= paddle_charge_cycles(properties.paddle_max);
}

// The buttons Select and Reset, and the difficulty switches: bit 0 left A, bit 1 right A.
SCANLINE_HD inline void set_switches(MachineState& s, bool select, bool reset, u32 difficulty) {
  s.swchb = u8(0x3F & ~(select ? kSwitchSelect : 0) & ~(reset ? kSwitchReset : 0));
  s.swchb |= u8(((difficulty & 1) ? kSwitchLeftA : 0) | ((difficulty & 2) ? kSwitchRightA : 0));
}

// Nothing pressed, no event sent yet: ALE's paddles read resistance 0 until the first one.
SCANLINE_HD inline void plug_in_controllers(MachineState& s, const Properties& properties) {
  s.swcha = 0xFF;
  s.fire_lines = 0;
  set_switches(s, false, false,
               (properties.left_difficulty_a ? 1 : 0) | (properties.right_difficulty_a ? 2 : 0));
  set_paddle_resistances(s, properties, 0, 0);
}

// A paddle's resistance halfway along its travel.
SCANLINE_HD inline i32 centred_paddle(const Properties& properties) {
  return (kPaddleMin + properties.paddle_max) / 2;
}

// Left raises the resistance, right lowers it; strength is in 0..1.
SCANLINE_HD inline void turn_paddle(i32& resistance, const Properties& properties, u32 action,
                                    float strength) {
  const u8 pressed = pressed_by(action);
  const double step = double(kPaddleStep) * (strength < 0 ? -double(strength) : double(strength));
  if (pressed & kLineRight) resistance += i32(-step);
  if (pressed & kLineLeft) resistance += i32(step);
  if (resistance < kPaddleMin) resistance = kPaddleMin;
  if (resistance > properties.paddle_max) resistance = properties.paddle_max;
}

}  // namespace scanline
