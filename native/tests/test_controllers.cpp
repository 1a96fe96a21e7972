// Which lines an action pulls, and how long a paddle charges.
#include "../core/controllers.h"
#include "check.h"

using namespace scanline;

namespace {

void test_joysticks() {
  MachineState s{};
  Properties properties;
  set_joysticks(s, properties, 14, 4);  // A: up, right and fire; B: left
  CHECK(s.swcha == u8(~0x94) && s.fire_lines == 1);
  properties.swap_ports = true;
  set_joysticks(s, properties, 14, 4);
  CHECK(s.swcha == u8(~0x49) && s.fire_lines == 2);
  set_joysticks(s, properties, 0, 0);
  CHECK(s.swcha == 0xFF && s.fire_lines == 0);
  set_joysticks(s, properties, 40, 0);  // the reset switch is no direction
  CHECK(s.swcha == 0xFF);
}

void test_switches() {
  MachineState s{};
  set_switches(s, false, false, 0);
  CHECK(s.swchb == 0x3F);
  set_switches(s, true, false, 1);
  CHECK(s.swchb == 0x7D);
  set_switches(s, false, true, 2);
  CHECK(s.swchb == 0xBE);
}

void test_paddles() {
  MachineState s{};
  Properties properties;
  properties.left_paddles = true;
  plug_in_controllers(s, properties);
  CHECK(s.paddle_threshold_cycles[0] == kZeroPaddle && s.paddle_threshold_cycles[2] == kNoPaddle);
  i32 resistance = centred_paddle(properties);
  CHECK(resistance == (27450 + 790196) / 2);
  turn_paddle(resistance, properties, 3, 1.0f);
  CHECK(resistance == (27450 + 790196) / 2 - 23000);
  for (int i = 0; i < 100; ++i) turn_paddle(resistance, properties, 4, 1.0f);
  CHECK(resistance == 790196);
  set_paddle_resistances(s, properties, 790196, 27450);
  CHECK(s.paddle_threshold_cycles[0] == 15045 && s.paddle_threshold_cycles[1] == 522);
  set_paddle_buttons(s, properties, true, false);
  CHECK(s.swcha == 0x7F);
  properties.swap_paddles = true;
  set_paddle_resistances(s, properties, 790196, 27450);
  CHECK(s.paddle_threshold_cycles[1] == 15045 && s.paddle_threshold_cycles[0] == 522);
  set_paddle_buttons(s, properties, true, false);
  CHECK(s.swcha == 0xBF);
}

}  // namespace

int main() {
  test_joysticks();
  test_switches();
  test_paddles();
  return check::result("controllers");
}
