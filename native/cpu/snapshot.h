// snapshot.h -- one environment as bytes, complete and versioned.
//
// Header, console with pictures, game, random stream, episode, pooled picture. Restorable into any
// environment of the same ROM and settings; anything else is refused by comparing headers. The
// bytes are those of the structs, so they are for the same build on the same kind of machine.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "../core/md5.h"
#include "../env/fingerprint.h"
#include "../env/game_environment.h"
#include "batch.h"

namespace scanline {

struct SnapshotHeader {
  char magic[8] = {'s', 'c', 'a', 'n', 'l', 'n', 'e', '1'};
  u32 version = kStateVersion;
  u32 env_bytes = sizeof(GameEnvironment::Snapshot);
  u32 episode_bytes = sizeof(EpisodeState);
  u32 pooled_bytes = 0;
  u64 rom_high = 0, rom_low = 0;
  u64 settings = 0;
  u64 content = 0;  // fingerprint of what follows
};
static_assert(sizeof(SnapshotHeader) == 56, "no padding");

inline SnapshotHeader header_of(Slot<GameEnvironment>& slot) {
  SnapshotHeader header;
  const GameVariant& variant = slot.env.variant();
  const Md5Digest md5 = md5_of(variant.bytes.data(), static_cast<u32>(variant.bytes.size()));
  header.pooled_bytes = static_cast<u32>(slot.episode.pooled().size());
  header.rom_high = md5.high;
  header.rom_low = md5.low;
  header.settings = fingerprint(&slot.rules->settings, sizeof(EnvSettings));
  return header;
}

inline std::vector<u8> snapshot_of(Slot<GameEnvironment>& slot) {
  SnapshotHeader header = header_of(slot);
  auto env = std::make_unique<GameEnvironment::Snapshot>(slot.env.blank_snapshot());
  slot.env.save(*env);
  std::vector<u8> bytes(sizeof header + header.env_bytes + header.episode_bytes +
                        header.pooled_bytes);
  u8* to = bytes.data();
  const auto append = [&to](const void* from, size_t size) {
    if (size > 0) std::memcpy(to, from, size);
    to += size;
  };
  append(&header, sizeof header);
  append(env.get(), header.env_bytes);
  append(&slot.episode.state, header.episode_bytes);
  append(slot.episode.pooled().data(), header.pooled_bytes);
  header.content = fingerprint(bytes.data() + sizeof header, bytes.size() - sizeof header);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

// Null if it was restored, else a sentence that says why not. Nothing is changed then.
inline const char* restore(Slot<GameEnvironment>& slot, const u8* bytes, size_t size) {
  const SnapshotHeader wanted = header_of(slot);
  SnapshotHeader found;
  if (size < sizeof found) return "it is too short to be a snapshot";
  std::memcpy(&found, bytes, sizeof found);
  if (std::memcmp(found.magic, wanted.magic, 8) != 0) return "it is no snapshot of this engine";
  if (found.version != wanted.version || found.env_bytes != wanted.env_bytes ||
      found.episode_bytes != wanted.episode_bytes)
    return "it was taken by another version of scanline";
  if (found.rom_high != wanted.rom_high || found.rom_low != wanted.rom_low)
    return "it was taken from another game";
  if (found.settings != wanted.settings || found.pooled_bytes != wanted.pooled_bytes)
    return "it was taken under another protocol or with other engine settings";
  if (size != sizeof found + found.env_bytes + found.episode_bytes + found.pooled_bytes)
    return "its length is wrong";
  if (fingerprint(bytes + sizeof found, size - sizeof found) != found.content)
    return "its bytes are damaged";
  bytes += sizeof found;
  auto env = std::make_unique<GameEnvironment::Snapshot>(slot.env.blank_snapshot());
  std::memcpy(static_cast<void*>(env.get()), bytes, found.env_bytes);
  bytes += found.env_bytes;
  slot.env.restore(*env);
  std::memcpy(&slot.episode.state, bytes, found.episode_bytes);
  bytes += found.episode_bytes;
  if (found.pooled_bytes > 0) std::memcpy(slot.episode.pooled().data(), bytes, found.pooled_bytes);
  return nullptr;
}

}  // namespace scanline
