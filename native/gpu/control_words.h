// control_words.h -- from decoded instructions to control words, once per ROM, on the host.
//
// Takes an image with its decoded instructions (core/decode.h, which knows what the ROM alone
// decides); gives one ControlWord per byte of program. What has no words is slow.
#pragma once

#include <vector>

#include "../core/decode.h"
#include "control_word.h"

namespace scanline::gpu {

std::vector<ControlWord> control_words(const RomImage& rom);

}  // namespace scanline::gpu
