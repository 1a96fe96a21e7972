// properties.h -- what a ROM's database entry says about its console.
//
// Constant while a console runs; `pal` and `height` may change once, between the format detection
// and the reset that follows it.
#pragma once

#include "types.h"

namespace scanline {

struct Properties {
  i32 y_start = 34;          // first scan line that is drawn
  i32 height = 210;          // number of scan lines drawn
  bool pal = false;          // colour loss, 342 lines at most instead of 290
  bool hmove_blanks = true;  // HMOVE draws its comb
  bool swap_ports = false;
  bool swap_paddles = false;
  bool left_paddles = false;
  bool right_paddles = false;
  bool left_difficulty_a = false;  // console switches until the first input sets them
  bool right_difficulty_a = false;
  bool detect_format = true;  // find out `pal` by running 60 frames at power-on
  i32 paddle_max = 790196;    // resistance at the end of the paddle's travel
};

}  // namespace scanline
