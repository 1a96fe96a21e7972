// readers.h -- which outputs of a layer read an input, and with which tap.
//
// Takes the taps of every output as numbers of inputs; gives the same pairs by input and tap.
// Knows no weights and no values.
#pragma once

#include <cstddef>
#include <vector>

#include "../core/types.h"

namespace scanline {

class Readers {
 public:
  // Outputs 1 .. num_outputs with rows of `stride` numbers, `num_taps` of them; inputs 1 ..
  // num_inputs. Input 0 is border: nobody asks for its readers.
  void list(const i32* taps, i32 stride, i32 num_outputs, i32 num_taps, i32 num_inputs) {
    num_taps_ = num_taps;
    const size_t num_places = static_cast<size_t>(num_inputs + 1) * static_cast<size_t>(num_taps);
    ends_.assign(num_places + 1, 0);
    const auto for_each = [&](const auto& give) {
      for (i32 output = 1; output <= num_outputs; ++output) {
        const i32* const mine = taps + static_cast<i64>(output) * stride;
        for (i32 tap = 0; tap < num_taps; ++tap) give(place(mine[tap], tap), output);
      }
    };
    for_each([&](size_t at, i32) { ++ends_[at + 1]; });
    for (size_t at = 0; at < num_places; ++at) ends_[at + 1] += ends_[at];
    outputs_.resize(static_cast<size_t>(ends_[num_places]));
    // Each place's begin moves to its end while it is filled: the next one's begin.
    for_each([&](size_t at, i32 output) { outputs_[static_cast<size_t>(ends_[at]++)] = output; });
  }

  i32 num_taps() const { return num_taps_; }

  // Outputs in rising order.
  const i32* begin(i32 input, i32 tap) const {
    const size_t at = place(input, tap);
    return outputs_.data() + (at == 0 ? 0 : ends_[at - 1]);
  }
  const i32* end(i32 input, i32 tap) const { return outputs_.data() + ends_[place(input, tap)]; }

 private:
  size_t place(i32 input, i32 tap) const {
    return static_cast<size_t>(input) * static_cast<size_t>(num_taps_) + static_cast<size_t>(tap);
  }

  i32 num_taps_ = 0;
  std::vector<i32> ends_;  // per input and tap
  std::vector<i32> outputs_;
};

}  // namespace scanline
