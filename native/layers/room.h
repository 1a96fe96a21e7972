// room.h -- memory that grows by half when it grows.
#pragma once

#include <cstddef>
#include <vector>

#include "../core/types.h"

namespace scanline {

// Room for `num` rows: what is there stays, what is new holds anything.
template <class T>
void make_room(std::vector<T>& rows, i32 num, i32 row_size) {
  const size_t needed = static_cast<size_t>(num) * static_cast<size_t>(row_size);
  if (rows.size() < needed) rows.resize(needed + needed / 2);
}

}  // namespace scanline
