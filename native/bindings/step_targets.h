// step_targets.h -- the arrays of a step, as objects of Python.
//
// Takes arrays, checks them once, and gives plain pointers with an owner that keeps the arrays
// alive while threads write to them. Knows nothing of games or groups but the sizes it compares
// with.
#pragma once

#include <memory>
#include <string>

#include "../cpu/stack_arrays.h"
#include "../cpu/step_arrays.h"
#include "arrays.h"
#include "settings_from.h"

namespace scanline {

inline const char* const kTenArrays = "out must be a tuple of the ten arrays of a step";

// Keeps a Python object from any thread.
inline std::shared_ptr<const void> kept(nb::object object) {
  return {object.release().ptr(), [](const void* pointer) {
            const nb::gil_scoped_acquire gil;
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(pointer)));
          }};
}

[[noreturn]] inline void refuse_rows(const char* name, i32 size, i32 wanted_bytes, size_t given,
                                     i32 given_bytes) {
  refuse(std::string(name) + " must be an array of " + std::to_string(size) + " rows of " +
         std::to_string(wanted_bytes) + " bytes, not of " + std::to_string(given) + " rows of " +
         std::to_string(given_bytes) + ".");
}

// Arrays that a step is written to, which live as long as it does or a job writes to them.
class StepTarget {
 public:
  explicit StepTarget(nb::handle given) {
    const nb::tuple out = tuple_of(given, 10, kTenArrays);
    const Array<u8> frame(out[0], "frame"), final_frame(out[8], "final_frame"),
        start_frames(out[9], "start_frames");
    size_ = frame.shape().empty() ? 0 : frame.shape()[0];
    const size_t frame_bytes = size_ ? frame.size() / size_ : 0;
    const size_t start_bytes = size_ ? start_frames.size() / size_ : 0;
    bytes_ = {static_cast<i32>(frame_bytes), static_cast<i32>(start_bytes)};
    arrays_.frame = frame.rows(size_, frame_bytes);
    arrays_.depth = column<u8>(out[1], "depth");
    arrays_.reward = column<float>(out[2], "reward");
    arrays_.raw_reward = column<float>(out[3], "raw_reward");
    arrays_.terminated = column<bool>(out[4], "terminated");
    arrays_.truncated = column<bool>(out[5], "truncated");
    arrays_.life_lost = column<bool>(out[6], "life_lost");
    arrays_.lives = column<i32>(out[7], "lives");
    arrays_.final_frame = final_frame.rows(size_, frame_bytes);
    arrays_.start_frames = start_frames.rows(size_, start_bytes);
    arrays_.owner = kept(out);
  }

  // Refuses a group of other sizes.
  const StepArrays& arrays(i32 size, const RowBytes& bytes) const {
    if (size_ != static_cast<size_t>(size) || bytes_.frame != bytes.frame)
      refuse_rows("frame", size, bytes.frame, size_, bytes_.frame);
    if (bytes_.start_frames != bytes.start_frames)
      refuse_rows("start_frames", size, bytes.start_frames, size_, bytes_.start_frames);
    return arrays_;
  }

 private:
  template <class T>
  T* column(nb::handle given, const char* name) const {
    return Array<T>(given, name, {size_}).data();
  }

  size_t size_ = 0;
  RowBytes bytes_;
  StepArrays arrays_;
};

// Where the stacks of a group's step are written, by the threads that step.
class StackTarget {
 public:
  StackTarget(nb::handle ring, int newest, nb::handle finals, nb::handle observations)
      : ring_(ring, "ring"), observations_(observations, "observations") {
    if (ring_.shape().size() < 3 || newest < 0 || static_cast<size_t>(newest) >= ring_.shape()[0])
      refuse("ring must have shape [S, b, ...], and newest name one of its S entries.");
    arrays_.ring = ring_.data();
    arrays_.newest = newest;
    if (!finals.is_none())
      arrays_.finals = Array<u8>(finals, "finals", observations_.shape()).data();
    arrays_.observations = observations_.data();
    arrays_.owner = kept(nb::make_tuple(ring, finals, observations));
  }

  // Refuses a group of other sizes, and frames that are not the ring's newest.
  const StackArrays& arrays(i32 size, i32 stack, i32 frame_bytes, const StepArrays* out) const {
    const size_t b = static_cast<size_t>(size), s = static_cast<size_t>(stack),
                 bytes = static_cast<size_t>(frame_bytes);
    if (ring_.shape()[1] != b) refuse("ring must have rows of the whole group.");
    const u8* newest = ring_.rows(s, b * bytes) + static_cast<size_t>(arrays_.newest) * b * bytes;
    (void)observations_.rows(b, s * bytes);
    if (out == nullptr || out->frame != newest)
      refuse("out's frames must be the ring's newest entry.");
    return arrays_;
  }

 private:
  Array<u8> ring_, observations_;
  StackArrays arrays_;
};

}  // namespace scanline
