// senders.h -- gradients of a layer's inputs, from those of the outputs that read them.
//
// Takes which outputs read an input with which tap, and the gradients of all outputs; gives those
// of the inputs. Knows no picture and no thread.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels.h"
#include "readers.h"

namespace scanline {

// A layer on the way back: gradients of its outputs to those of its inputs.
struct WayBack {
  MarkedRows gradients;  // of the outputs
  i32 channels;
  const float* panels;  // per tap and sixteen channels: [filters][16]
  const float* inputs;  // what the rectifier below let through
  float* below;         // gradients of the inputs
};

// Inputs that one tap of some output reads, and the gradients that come from there.
struct Senders {
  std::vector<i32> inputs;
  std::vector<MarkedRow> rows;
  std::vector<float> sums;  // where several outputs read one input with the same tap
  std::vector<u64> marks;

  void find(const Readers& readers, i32 tap, i32 first, i32 end, const MarkedRows& gradients) {
    inputs.clear();
    rows.clear();
    const size_t num = static_cast<size_t>(end - first);
    sums.resize(num * static_cast<size_t>(gradients.num_floats));
    marks.resize(num * static_cast<size_t>(gradients.words));
    for (i32 input = first; input < end; ++input) {
      const i32 *const reader = readers.begin(input, tap), *const last = readers.end(input, tap);
      if (reader == last) continue;
      inputs.push_back(input);
      rows.push_back(last - reader == 1 ? gradients.row(*reader)
                                        : sum(reader, last, input - first, gradients));
    }
  }

 private:
  MarkedRow sum(const i32* reader, const i32* last, i32 place, const MarkedRows& gradients) {
    float* const to = sums.data() + static_cast<i64>(place) * gradients.num_floats;
    u64* const present = marks.data() + static_cast<i64>(place) * gradients.words;
    MarkedRow known = gradients.row(*reader);
    std::copy_n(known.present, gradients.words, present);
    while (++reader != last) {
      const MarkedRow more = gradients.row(*reader);
      sum_rows(known.floats, more.floats, gradients.num_floats, to);
      for (i32 w = 0; w < gradients.words; ++w) present[w] |= more.present[w];
      known.floats = to;
    }
    return {to, present};
  }
};

// Gradients of inputs first .. end.
inline void input_gradients(const Readers& readers, i32 first, i32 end, const WayBack& way) {
  static thread_local Senders senders;
  const i64 begin = static_cast<i64>(first) * way.channels;
  const i32 num = end - first, filters = way.gradients.num_floats;
  std::fill_n(way.below + begin, static_cast<i64>(num) * way.channels, 0.0F);
  const float* panels = way.panels;
  for (i32 tap = 0; tap < readers.num_taps(); ++tap, panels += way.channels * filters) {
    senders.find(readers, tap, first, end, way.gradients);
    add_input_gradients(senders.inputs.data(), senders.rows.data(),
                        static_cast<i64>(senders.rows.size()), filters, way.channels, panels,
                        way.below);
  }
  pass_rows(num, way.channels, way.inputs + begin, way.below + begin);
}

}  // namespace scanline
