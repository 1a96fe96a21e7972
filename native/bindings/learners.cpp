// learners.cpp -- the Python class of what learner processes exchange through shared memory: checks
// sizes, holds no logic.
#include <nanobind/nanobind.h>

#include "../learners/shared_mean.h"
#include "spans.h"

namespace nb = nanobind;

namespace scanline {

static std::vector<Floats> arrays_of(const Spans& spans) {
  std::vector<Floats> arrays;
  for (const Span& span : spans) arrays.push_back({static_cast<i64>(span.second), floats(span)});
  return arrays;
}

static void check_place(const Span& block, i32 rank, i32 count) {
  if (count < 1 || rank < 0 || rank >= count)
    throw_value_error("the rank must be from 0 to below the count.");
  if (block.second < SharedMean::block_bytes(count))
    throw_value_error("the block is too small; use SharedMean.block_bytes.");
}

void bind_learners(nb::module_& m) {
  nb::class_<SharedMean>(m, "SharedMean")
      .def_static("block_bytes", &SharedMean::block_bytes, nb::arg("count"))
      .def_ro_static("PIECE_FLOATS", &SharedMean::kPieceFloats)
      .def(
          "__init__",
          [](SharedMean* self, const Span& block, i32 rank, i32 count) {
            check_place(block, rank, count);
            new (self) SharedMean(reinterpret_cast<void*>(block.first), rank, count);
          },
          nb::arg("block"), nb::arg("rank"), nb::arg("count"))
      .def("say", &SharedMean::say, nb::arg("number"))
      .def("heard", &SharedMean::heard, nb::arg("rank"))
      .def("put", [](SharedMean& self, const Spans& spans,
                     i64 first) { self.put(arrays_of(spans), first); })
      .def("reduce", &SharedMean::reduce)
      .def("take", [](const SharedMean& self, const Spans& spans,
                      i64 first) { self.take(arrays_of(spans), first); })
      .def(
          "wait",
          [](const SharedMean& self, double seconds) {
            return self.wait(std::chrono::duration<double>(seconds));
          },
          nb::arg("seconds"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace scanline
