// rom_identify.h -- from the bytes of a ROM file to its cartridge type and properties.
//
// Known dumps by their md5. Any other file by size and by byte patterns of bank-switching code,
// in ALE's order, with default properties; a scheme without a policy is named so that the caller
// can refuse it.
#pragma once

#include "md5.h"
#include "rom.h"
#include "rom_table.h"

namespace scanline {

// Occurrences are counted without overlap, with one byte left out after each, and never at the
// very end of the file.
inline bool contains(const RomImage& rom, const u8* pattern, u32 length, u32 num_wanted) {
  u32 num_found = 0;
  for (u32 i = 0; i + length < rom.size_bytes; ++i) {
    u32 matched = 0;
    while (matched < length && rom.bytes[i + matched] == pattern[matched]) ++matched;
    if (matched < length) continue;
    if (++num_found == num_wanted) return true;
    i += length;
  }
  return false;
}

template <u32 num_patterns, u32 length>
inline bool contains_any(const RomImage& rom, const u8 (&patterns)[num_patterns][length]) {
  for (const auto& pattern : patterns) {
    if (contains(rom, pattern, length, 1)) return true;
  }
  return false;
}

inline bool all_equal(const RomImage& rom, u32 begin, u32 end) {
  for (u32 i = begin; i < end; ++i) {
    if (rom.bytes[i] != rom.bytes[begin]) return false;
  }
  return true;
}

inline bool halves_equal(const RomImage& rom) {
  const u32 half = rom.size_bytes / 2;
  for (u32 i = 0; i < half; ++i) {
    if (rom.bytes[i] != rom.bytes[i + half]) return false;
  }
  return true;
}

// SuperChip: the 256 bytes under the RAM are filler in every bank.
inline bool looks_like_super_chip(const RomImage& rom) {
  for (u32 bank = 0; bank < rom.size_bytes; bank += 0x1000) {
    if (!all_equal(rom, bank, bank + 0x100)) return false;
  }
  return true;
}

// E7: filler under its RAM, but not around it.
inline bool looks_like_e7(const RomImage& rom) {
  return all_equal(rom, 0x3800, 0x3A00) &&
         !(all_equal(rom, 0x3800 - 32, 0x3A00) && all_equal(rom, 0x3800, 0x3A00 + 32));
}

inline bool looks_like_cv(const RomImage& rom) {
  static constexpr u8 kStores[2][3] = {{0x9D, 0xFF, 0xF3}, {0x99, 0x00, 0xF4}};
  return contains_any(rom, kStores);
}

inline bool looks_like_e0(const RomImage& rom) {
  static constexpr u8 kAccesses[6][3] = {{0x8D, 0xE0, 0x1F}, {0x8D, 0xE0, 0x5F},
                                         {0x8D, 0xE9, 0xFF}, {0xAD, 0xE9, 0xFF},
                                         {0xAD, 0xED, 0xFF}, {0xAD, 0xF3, 0xBF}};
  return contains_any(rom, kAccesses);
}

inline bool looks_like_ua(const RomImage& rom) {
  static constexpr u8 kStore[1][3] = {{0x8D, 0x40, 0x02}};
  return contains_any(rom, kStore);
}

inline bool looks_like_fe(const RomImage& rom) {
  static constexpr u8 kCalls[4][5] = {{0x20, 0x00, 0xD0, 0xC6, 0xC5},
                                      {0x20, 0xC3, 0xF8, 0xA5, 0x82},
                                      {0xD0, 0xFB, 0x20, 0x73, 0xFE},
                                      {0x20, 0x00, 0xF0, 0x84, 0xD6}};
  return contains_any(rom, kCalls);
}

inline CartridgeType tigervision_or(const RomImage& rom, CartridgeType otherwise) {
  static constexpr u8 kStore3E[4] = {0x85, 0x3E, 0xA9, 0x00}, kStore3F[2] = {0x85, 0x3F};
  if (contains(rom, kStore3E, 4, 1)) return CartridgeType::k3E;
  if (contains(rom, kStore3F, 2, 2)) return CartridgeType::k3F;
  return otherwise;
}

inline CartridgeType guess_small_type(const RomImage& rom) {
  if (looks_like_cv(rom)) return CartridgeType::kCV;
  return rom.size_bytes == 2048 || halves_equal(rom) ? CartridgeType::k2K : CartridgeType::k4K;
}

inline CartridgeType guess_8k_type(const RomImage& rom) {
  if (looks_like_super_chip(rom)) return CartridgeType::kF8SC;
  if (halves_equal(rom)) return CartridgeType::k4K;
  if (looks_like_e0(rom)) return CartridgeType::kE0;
  const CartridgeType type = tigervision_or(rom, CartridgeType::kF8);
  if (type != CartridgeType::kF8) return type;
  if (looks_like_ua(rom)) return CartridgeType::kUA;
  return looks_like_fe(rom) ? CartridgeType::kFE : CartridgeType::kF8;
}

inline CartridgeType guess_16k_type(const RomImage& rom) {
  if (looks_like_super_chip(rom)) return CartridgeType::kF6SC;
  if (looks_like_e7(rom)) return CartridgeType::kE7;
  return tigervision_or(rom, CartridgeType::kF6);
}

inline CartridgeType guess_type(const RomImage& rom) {
  if (rom.size_bytes == 0) return CartridgeType::kUnknown;
  if (rom.size_bytes % 8448 == 0) return CartridgeType::kAR;
  switch (rom.size_bytes) {
    case 2048:
    case 4096:
      return guess_small_type(rom);
    case 8192:
      return guess_8k_type(rom);
    case 10240:
    case 10495:
    case 10496:
      return CartridgeType::kDPC;
    case 12288:
      return CartridgeType::kFASC;
    case 16384:
      return guess_16k_type(rom);
    case 32768:
      return looks_like_super_chip(rom) ? CartridgeType::kF4SC
                                        : tigervision_or(rom, CartridgeType::kF4);
    case 65536:
      return tigervision_or(rom, CartridgeType::kMB);
    case 131072:
      return tigervision_or(rom, CartridgeType::kMC);
    default:
      return tigervision_or(rom, CartridgeType::kUnknown);
  }
}

inline RomImage identify_rom(const u8* bytes, u32 size_bytes) {
  RomImage rom{bytes, size_bytes, CartridgeType::kUnknown, {}};
  const Md5Digest md5 = md5_of(bytes, size_bytes);
  if (const RomRow* row = find_rom(md5.high, md5.low)) {
    rom.type = row->type;
    rom.properties = properties_of(*row);
  } else {
    rom.type = guess_type(rom);
  }
  return rom;
}

}  // namespace scanline
