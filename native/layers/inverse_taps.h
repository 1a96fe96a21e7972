// inverse_taps.h -- the outputs of a layer that read an input with a given tap.
//
// Takes the tap table of a layer (per output the ids of the inputs that it reads); gives the
// transposed table, from (input, tap) to a list of outputs, in compressed rows. Knows no weights
// and no values.
#pragma once

#include <cstddef>
#include <vector>

#include "../core/types.h"

namespace scanline {

class InverseTaps {
 public:
  // `taps` has rows of `stride` ids for outputs 0 .. num_outputs, of which `num_taps` are used and
  // row 0 is not. Input ids are 0 .. num_inputs; input 0 is the zero border.
  void build(const i32* taps, i32 stride, i32 num_outputs, i32 num_taps, i32 num_inputs) {
    num_taps_ = num_taps;
    const size_t num_lists = static_cast<size_t>(num_inputs + 1) * static_cast<size_t>(num_taps);
    ends_.assign(num_lists + 1, 0);
    const auto for_each = [&](const auto& visit) {
      for (i32 output = 1; output <= num_outputs; ++output) {
        const i32* const inputs = taps + static_cast<i64>(output) * stride;
        for (i32 tap = 0; tap < num_taps; ++tap) visit(list_of(inputs[tap], tap), output);
      }
    };
    for_each([&](size_t list, i32) { ++ends_[list + 1]; });
    for (size_t list = 0; list < num_lists; ++list) ends_[list + 1] += ends_[list];
    outputs_.resize(static_cast<size_t>(ends_[num_lists]));
    // ends_[list] starts as the begin of the list and becomes its end while the list is filled.
    for_each(
        [&](size_t list, i32 output) { outputs_[static_cast<size_t>(ends_[list]++)] = output; });
  }

  i32 num_taps() const { return num_taps_; }

  // Output ids in rising order.
  const i32* begin(i32 input, i32 tap) const {
    const size_t list = list_of(input, tap);
    return outputs_.data() + (list == 0 ? 0 : ends_[list - 1]);
  }
  const i32* end(i32 input, i32 tap) const { return outputs_.data() + ends_[list_of(input, tap)]; }

 private:
  size_t list_of(i32 input, i32 tap) const {
    return static_cast<size_t>(input) * static_cast<size_t>(num_taps_) + static_cast<size_t>(tap);
  }

  i32 num_taps_ = 0;
  std::vector<i32> ends_;  // per list
  std::vector<i32> outputs_;
};

}  // namespace scanline
