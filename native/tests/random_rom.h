// random_rom.h -- cartridges nobody would make, and places nobody would jump to.
//
// Takes a random source; gives ROM images of any cartridge type: random bytes that are likely to
// mean something and rarely jam the processor, or a real ROM with damage. An image points into its
// own object, which therefore is neither copied nor moved.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "../core/decode.h"
#include "../core/state.h"
#include "check.h"

namespace scanline {

struct TestRom {
  std::vector<u8> bytes;
  std::vector<DecodedOp> ops;
  RomImage image;

  TestRom(CartridgeType type, Properties properties, std::vector<u8> content)
      : bytes(std::move(content)),
        image{bytes.data(), u32(bytes.size()), type, properties, nullptr, nullptr} {
    ops.resize(num_decoded_ops(image));
    decode_rom(image, ops.data());
    image.ops = ops.data();
  }
  TestRom(const TestRom&) = delete;
  TestRom& operator=(const TestRom&) = delete;
};

inline u32 image_bytes(CartridgeType type) {
  switch (type) {
    case CartridgeType::k2K:
      return 2048;
    case CartridgeType::k4K:
      return 4096;
    case CartridgeType::kF6:
    case CartridgeType::kF6SC:
      return 16384;
    case CartridgeType::kDPC:
      return 10240;
    default:
      return 8192;
  }
}

inline bool is_jam(u8 code) { return (code & 0x0F) == 2 && (code < 0x80 || (code & 0x10)); }

// A byte of zero-page address, absolute high byte or code, each likely to mean something.
inline u8 likely_byte(check::Random& random) {
  static constexpr u8 kPages[6] = {0xF0, 0xFF, 0x02, 0x00, 0x01, 0xD1};
  switch (random.below(4)) {
    case 0:
      return u8(0x80 + random.below(128));
    case 1:
      return u8(random.below(0x40));
    case 2:
      return kPages[random.below(6)];
    default:
      return u8(random.below(256));
  }
}

inline u8 byte_without_jam(check::Random& random) {
  u8 byte;
  do {
    byte = random.one_in(2) ? likely_byte(random) : u8(random.below(256));
  } while (is_jam(byte));
  return byte;
}

// Waiting loops, bank switches and VSYNC, which random bytes hardly make.
inline void plant_idioms(std::vector<u8>& bytes, check::Random& random) {
  static constexpr u8 kIdioms[8][5] = {
      {0xAD, 0x84, 0x02, 0xD0, 0xFB}, {0xAE, 0x84, 0x02, 0x10, 0xFB},
      {0xAC, 0x86, 0x02, 0x30, 0xFB}, {0x2C, 0x85, 0x02, 0x10, 0xFB},
      {0xCA, 0xD0, 0xFD, 0x88, 0x10}, {0xAD, 0xF8, 0xFF, 0x8D, 0x96},
      {0x8D, 0xE2, 0xFF, 0x85, 0x02}, {0x85, 0x00, 0x85, 0x02, 0x85},
  };
  for (u32 i = 0; i < bytes.size() / 64; ++i) {
    const u32 place = u32(random.below(int(bytes.size()) - 8));
    std::memcpy(&bytes[place], kIdioms[random.below(8)], 5);
  }
}

inline std::vector<u8> random_bytes(CartridgeType type, check::Random& random) {
  std::vector<u8> bytes(image_bytes(type));
  for (u8& byte : bytes) byte = byte_without_jam(random);
  plant_idioms(bytes, random);
  return bytes;
}

// Single bytes, blocks from elsewhere, and swapped operands of a program that once worked.
inline std::vector<u8> damaged_bytes(std::vector<u8> bytes, check::Random& random) {
  const int size = int(bytes.size());
  for (int i = 1 << random.below(8); i > 0; --i)
    bytes[size_t(random.below(size))] =
        random.one_in(4) ? u8(random.below(256)) : likely_byte(random);
  for (int i = random.below(4); i > 0; --i) {
    const int length = 1 + random.below(256);
    std::memmove(&bytes[size_t(random.below(size - length))],
                 &bytes[size_t(random.below(size - length))], size_t(length));
  }
  return bytes;
}

// Somewhere else in the program, with other registers and memory.
inline void shuffle(MachineState& machine, check::Random& random) {
  machine.pc = u16(random.below(0x10000) | (random.one_in(10) ? 0 : 0x1000));
  machine.a = u8(random.below(256));
  machine.x = u8(random.below(256));
  machine.y = u8(random.below(256));
  machine.sp = random.one_in(3) ? u8(random.below(256)) : 0xFF;
  machine.p = u8(random.below(256) | 0x30);
  machine.jammed = 0;
  for (u8& byte : machine.ram) {
    if (random.one_in(3)) byte = likely_byte(random);
  }
}

}  // namespace scanline
