// fingerprint.h -- a short number for a run of bytes (FNV-1a): equal bytes, equal number.
//
// Tells settings and snapshots apart and notices damage; no protection against intent.
#pragma once

#include "../core/types.h"

namespace scanline {

inline u64 fingerprint(const void* data, u64 size) {
  const u8* bytes = static_cast<const u8*>(data);
  u64 hash = 0xCBF29CE484222325ull;
  for (u64 i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001B3ull;
  return hash;
}

}  // namespace scanline
