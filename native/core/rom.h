// rom.h -- one cartridge image, shared by every console that runs it.
//
// Immutable; owns neither its bytes nor their decoded form. The type says which policy of
// cartridge.h reads them.
#pragma once

#include "properties.h"

namespace scanline {

// The first nine have a policy; the others are recognised in order to be refused by name.
// clang-format off
#define SCANLINE_CARTRIDGE_TYPES(TYPE)                                                \
  TYPE(2K) TYPE(4K) TYPE(F8) TYPE(F8SC) TYPE(F6) TYPE(F6SC) TYPE(E0) TYPE(FE) TYPE(DPC) \
  TYPE(3E) TYPE(3F) TYPE(AR) TYPE(CV) TYPE(E7) TYPE(F4) TYPE(F4SC) TYPE(FASC) TYPE(MB)  \
  TYPE(MC) TYPE(UA) TYPE(Unknown)
// clang-format on

#define SCANLINE_ENUMERATE(name) k##name,
enum class CartridgeType : u8 { SCANLINE_CARTRIDGE_TYPES(SCANLINE_ENUMERATE) };
#undef SCANLINE_ENUMERATE

SCANLINE_HD inline bool is_supported(CartridgeType type) { return type <= CartridgeType::kDPC; }

#if !defined(__OPENCL_CPP_VERSION__)
SCANLINE_HD inline const char* cartridge_type_name(CartridgeType type) {
#define SCANLINE_NAME(name) #name,
  static constexpr const char* kNames[] = {SCANLINE_CARTRIDGE_TYPES(SCANLINE_NAME)};
#undef SCANLINE_NAME
  return kNames[u32(type)];
}
#endif

struct DecodedOp;
struct Translation;

struct RomImage {
  const u8* bytes = nullptr;
  u32 size_bytes = 0;
  CartridgeType type = CartridgeType::kUnknown;
  Properties properties;
  const DecodedOp* ops = nullptr;      // one per byte, made by decode_rom; null: decode nothing
  Translation* translation = nullptr;  // machine code (env/translation/), where there is any
};

}  // namespace scanline
