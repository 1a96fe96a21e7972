// snapshot_bytes.h -- structs as versioned bytes, and the refusal of bytes that do not fit.
//
// Takes a header that says what the bytes belong to, and the parts; gives them as one run. Reading
// compares headers and a fingerprint of the content and checks every field before anything is
// restored: the fingerprint notices damage, not intent, and bytes may come from anywhere. The bytes
// are those of the structs, so they are for the same build on the same kind of machine.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "../core/md5.h"
#include "../core/rom.h"
#include "../core/state.h"
#include "fingerprint.h"

namespace scanline {

struct SnapshotHeader {
  char magic[8] = {'s', 'c', 'a', 'n', 'l', 'i', 'n', 'e'};
  u32 version = kStateVersion;
  u32 part_bytes[3] = {0, 0, 0};
  u64 rom_high = 0, rom_low = 0;
  u64 settings = 0;  // fingerprint of what the environment was built with
  u64 content = 0;   // fingerprint of the parts

  u64 content_bytes() const { return u64{part_bytes[0]} + part_bytes[1] + part_bytes[2]; }
};
static_assert(sizeof(SnapshotHeader) == 56, "no padding");

inline SnapshotHeader snapshot_header(const RomImage& rom, u64 settings) {
  SnapshotHeader header;
  const Md5Digest md5 = md5_of(rom.bytes, rom.size_bytes);
  header.rom_high = md5.high;
  header.rom_low = md5.low;
  header.settings = settings;
  return header;
}

inline std::vector<u8> packed(SnapshotHeader header, const void* const (&parts)[3]) {
  std::vector<u8> bytes(sizeof header + header.content_bytes());
  u8* to = bytes.data() + sizeof header;
  for (u32 i = 0; i < 3; ++i) {
    if (header.part_bytes[i] > 0) std::memcpy(to, parts[i], header.part_bytes[i]);
    to += header.part_bytes[i];
  }
  header.content = fingerprint(bytes.data() + sizeof header, header.content_bytes());
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

// Null if the bytes fit the header, else the reason why not, to follow "because".
inline const char* misfit(const SnapshotHeader& wanted, const u8* bytes, u64 size) {
  SnapshotHeader found;
  if (size < sizeof found) return "it is too short";
  std::memcpy(&found, bytes, sizeof found);
  if (std::memcmp(found.magic, wanted.magic, 8) != 0) return "it is none of this engine";
  if (found.version != wanted.version) return "another version of scanline took it";
  if (found.rom_high != wanted.rom_high || found.rom_low != wanted.rom_low)
    return "it was taken from another game";
  if (found.settings != wanted.settings)
    return "it was taken under another protocol or other settings";
  if (std::memcmp(found.part_bytes, wanted.part_bytes, sizeof found.part_bytes) != 0 ||
      size != sizeof found + found.content_bytes())
    return "its length is wrong";
  if (fingerprint(bytes + sizeof found, found.content_bytes()) != found.content)
    return "its bytes are damaged";
  return nullptr;
}

inline std::string described(const WrongField& wrong) {
  const std::string place = wrong.index < 0 ? "" : "[" + std::to_string(wrong.index) + "]";
  char value[32];
  std::snprintf(value, sizeof value, "%.10g", wrong.value);
  return wrong.name + place + "=" + value + " is out of bounds";
}

// Copies the parts out of the bytes and lets `check` look at them; empty if they may be restored,
// else the reason why not, to follow "because". The only way to the content: the parts must be
// memory of the caller's that nothing depends on until then.
template <class Check>
std::string unpack(const SnapshotHeader& wanted, const u8* bytes, u64 size, void* const (&parts)[3],
                   Check check) {
  if (const char* reason = misfit(wanted, bytes, size)) return reason;
  bytes += sizeof wanted;
  for (u32 i = 0; i < 3; ++i) {
    if (wanted.part_bytes[i] > 0) std::memcpy(parts[i], bytes, wanted.part_bytes[i]);
    bytes += wanted.part_bytes[i];
  }
  const WrongField wrong = check();
  return wrong ? described(wrong) : std::string();
}

}  // namespace scanline
