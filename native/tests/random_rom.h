// random_rom.h -- ROMs of random bytes that mean something, and random places to start in them.
//
// Takes a cartridge type and a random stream; gives a decoded ROM of that type. Jumps, bank
// switches and waiting loops are likely; a program hardly ever makes sense, which is the point: two
// loops must agree about it anyway.
#pragma once

#include <cstring>
#include <vector>

#include "../core/decode.h"
#include "../core/state.h"
#include "check.h"

namespace scanline {

struct Program {
  std::vector<u8> bytes;
  std::vector<DecodedOp> ops;
  RomImage image;
};

inline u32 size_of(CartridgeType type) {
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

// Waiting loops and bank switches, which random bytes hardly make.
inline void plant_idioms(std::vector<u8>& bytes, check::Random& random) {
  static constexpr u8 kIdioms[7][5] = {
      {0xAD, 0x84, 0x02, 0xD0, 0xFB}, {0xAE, 0x84, 0x02, 0x10, 0xFB},
      {0xAC, 0x86, 0x02, 0x30, 0xFB}, {0x2C, 0x85, 0x02, 0x10, 0xFB},
      {0xCA, 0xD0, 0xFD, 0x88, 0x10}, {0xAD, 0xF8, 0xFF, 0x8D, 0x96},
      {0x8D, 0xE2, 0xFF, 0x85, 0x02},
  };
  for (u32 i = 0; i < bytes.size() / 64; ++i) {
    const u32 place = u32(random.below(int(bytes.size()) - 8));
    std::memcpy(&bytes[place], kIdioms[random.below(7)], 5);
  }
}

inline Program random_program(CartridgeType type, check::Random& random) {
  Program program;
  program.bytes.resize(size_of(type));
  for (u8& byte : program.bytes) {
    do {
      byte = random.one_in(2) ? likely_byte(random) : u8(random.below(256));
    } while (is_jam(byte) && !random.one_in(20));
  }
  plant_idioms(program.bytes, random);
  program.image.bytes = program.bytes.data();
  program.image.size_bytes = u32(program.bytes.size());
  program.image.type = type;
  program.image.properties.detect_format = false;
  program.ops.resize(num_decoded_ops(program.image));
  decode_rom(program.image, program.ops.data());
  program.image.ops = program.ops.data();
  return program;
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
