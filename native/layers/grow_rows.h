// grow_rows.h -- scratch buffers of rows that grow on demand.
#pragma once

#include <cstddef>
#include <vector>

#include "../core/types.h"

namespace scanline {

// Makes a buffer large enough for `num` rows, with half as much again in reserve. Old rows keep
// their content; that of new rows is unspecified.
template <class T>
void grow_rows(std::vector<T>& rows, i32 num, i32 row_size) {
  const size_t needed = static_cast<size_t>(num) * static_cast<size_t>(row_size);
  if (rows.size() < needed) rows.resize(needed + needed / 2);
}

}  // namespace scanline
