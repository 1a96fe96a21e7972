// screens.h -- arrays of pictures that own their memory, for Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>
#include <vector>

#include "../core/palette.h"

namespace scanline {

namespace nb = nanobind;

using Screens = nb::ndarray<nb::numpy, u8>;

// A fresh array that owns its memory.
inline Screens fresh_array(std::vector<size_t> shape) {
  size_t size = 1;
  for (size_t n : shape) size *= n;
  u8* data = new u8[size];
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<u8*>(p); });
  return Screens(data, shape.size(), shape.data(), owner);
}

// Colours [..., 3] of colour indices; `shape` is that of the indices.
inline Screens coloured(const Palette& palette, const u8* indices, std::vector<size_t> shape) {
  shape.push_back(3);
  Screens out = fresh_array(std::move(shape));
  for (size_t i = 0; i < out.size() / 3; ++i)
    std::memcpy(out.data() + 3 * i, palette.rgb[indices[i]], 3);
  return out;
}

}  // namespace scanline
