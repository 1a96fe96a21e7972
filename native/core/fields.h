// fields.h -- structs that are written down as one list of fields.
//
// A list is a macro that calls, widest fields first,
//   SCALAR(type, name, bound)   and   ARRAY(type, name, count, bound)
// and generates the struct, the proof that it has no padding (so that memcmp is equality and every
// byte of a snapshot means something), and the check of values that came from outside. `bound` is
// an expression over `value` (in an array also `index`), the whole `state`, and whatever the check
// has at hand: true for every value that is reached by emulation, false for every value that could
// do harm. It may also be the check of a nested struct. Fields are checked in their order, so a
// bound may rely on those above it. Pure; host and device.
#pragma once

#include "types.h"

namespace scanline {

// The first field that is out of bounds; without a name there is none.
struct WrongField {
  const char* name = nullptr;
  i32 index = -1;  // in an array; -1: it is none
  double value = 0;

  SCANLINE_HD explicit operator bool() const { return name != nullptr; }
};

template <class Value>
SCANLINE_HD inline WrongField wrong_unless(bool holds, const char* name, i32 index, Value value) {
  return holds ? WrongField() : WrongField{name, index, static_cast<double>(value)};
}
template <class Nested>
SCANLINE_HD inline WrongField wrong_unless(WrongField found, const char*, i32, const Nested&) {
  return found;
}

// -limit <= value <= limit.
template <class Value>
SCANLINE_HD constexpr bool is_within(Value value, Value limit) {
  return value >= -limit && value <= limit;
}

// A counter of 31 bits: it starts again at 0 where an i32 ends.
SCANLINE_HD constexpr i32 counted(i32 count, i32 more = 1) {
  return static_cast<i32>((static_cast<u32>(count) + static_cast<u32>(more)) & 0x7FFFFFFFu);
}

}  // namespace scanline

#define SCANLINE_DECLARE_SCALAR(type, name, bound) type name;
#define SCANLINE_DECLARE_ARRAY(type, name, count, bound) type name[count];
#define SCANLINE_SIZE_OF_SCALAR(type, name, bound) +sizeof(type)
#define SCANLINE_SIZE_OF_ARRAY(type, name, count, bound) +sizeof(type) * (count)

// The members of a struct; behind it, the proof that they are all of it.
#define SCANLINE_DECLARE(FIELDS) FIELDS(SCANLINE_DECLARE_SCALAR, SCANLINE_DECLARE_ARRAY)
#define SCANLINE_NO_PADDING(Struct, FIELDS)                                                  \
  static_assert(sizeof(Struct) == 0 FIELDS(SCANLINE_SIZE_OF_SCALAR, SCANLINE_SIZE_OF_ARRAY), \
                #Struct " has padding")

#define SCANLINE_CHECK_SCALAR(type, name, bound)                                        \
  {                                                                                     \
    [[maybe_unused]] const auto& value = state.name;                                    \
    if (const WrongField wrong = wrong_unless((bound), #name, -1, value)) return wrong; \
  }
#define SCANLINE_CHECK_ARRAY(type, name, count, bound)                                          \
  for (u32 index = 0; index < (count); ++index) {                                               \
    [[maybe_unused]] const auto& value = state.name[index];                                     \
    if (const WrongField wrong = wrong_unless((bound), #name, i32(index), value)) return wrong; \
  }

// The body of a check of `state`. Snapshots are checked on the host; OpenCL's strings have an
// address space of their own.
#if defined(__OPENCL_CPP_VERSION__)
#define SCANLINE_CHECK(FIELDS) \
  return {}
#else
#define SCANLINE_CHECK(FIELDS)                        \
  FIELDS(SCANLINE_CHECK_SCALAR, SCANLINE_CHECK_ARRAY) \
  return {}
#endif
