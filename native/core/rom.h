// rom.h -- one cartridge image, shared by every console that runs it.
//
// Immutable; does not own its bytes. The type says which policy of cartridge.h reads them.
#pragma once

#include "properties.h"

namespace scanline {

enum class CartridgeType : u8 { k2K, k4K, kF8, kF8SC, kF6, kF6SC, kE0, kFE, kDPC, kUnsupported };

struct RomImage {
  const u8* bytes = nullptr;
  u32 size_bytes = 0;
  CartridgeType type = CartridgeType::kUnsupported;
  Properties properties;
};

}  // namespace scanline
