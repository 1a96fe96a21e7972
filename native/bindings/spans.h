// spans.h -- arrays as arguments from Python: an address and a number of elements.
//
// The caller (scanline.native_arrays) keeps the memory alive and without gaps; each binding checks
// the sizes of its spans.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "../core/types.h"

namespace scanline {

using Span = std::pair<uintptr_t, size_t>;
using Spans = std::vector<Span>;

inline float* floats(const Span& span) { return reinterpret_cast<float*>(span.first); }

[[noreturn]] inline void throw_value_error(const std::string& why) {
  throw nanobind::value_error(why.c_str());
}

inline void check_size(const Span& span, i32 num, i32 each, const char* what) {
  if (span.second != static_cast<size_t>(num) * static_cast<size_t>(each))
    throw_value_error(std::string(what) + " has " + std::to_string(span.second) + " floats, but " +
                      std::to_string(num) + " rows need " + std::to_string(each) + " each.");
}

}  // namespace scanline
