// snapshot.h -- one environment of a batch as bytes, complete and versioned.
//
// Console with pictures, game and random stream; episode; pooled picture. Restorable into any
// environment of the same ROM, mode and settings.
#pragma once

#include <memory>
#include <vector>

#include "../env/game_environment.h"
#include "../env/snapshot_bytes.h"
#include "batch.h"

namespace scanline {

inline SnapshotHeader header_of(Slot<GameEnvironment>& slot) {
  const GameVariant& variant = slot.env.variant();
  const u64 words[3] = {fingerprint(&slot.rules->settings, sizeof(EnvSettings)), variant.mode,
                        variant.difficulty};
  SnapshotHeader header = snapshot_header(variant.rom.image(), fingerprint(words, sizeof words));
  header.part_bytes[0] = sizeof(GameEnvironment::Snapshot);
  header.part_bytes[1] = sizeof(EpisodeState);
  header.part_bytes[2] = static_cast<u32>(slot.episode.pooled().size());
  return header;
}

inline std::vector<u8> snapshot_of(Slot<GameEnvironment>& slot) {
  auto env = std::make_unique<GameEnvironment::Snapshot>(GameEnvironment::blank_snapshot());
  slot.env.save(*env);
  return packed(header_of(slot), {env.get(), &slot.episode.state, slot.episode.pooled().data()});
}

// Null if it was restored, else the reason why not; nothing is changed then.
inline const char* restore(Slot<GameEnvironment>& slot, const u8* bytes, u64 size) {
  const SnapshotHeader header = header_of(slot);
  if (const char* reason = misfit(header, bytes, size)) return reason;
  auto env = std::make_unique<GameEnvironment::Snapshot>(GameEnvironment::blank_snapshot());
  unpack(header, bytes, {env.get(), &slot.episode.state, slot.episode.pooled().data()});
  slot.env.restore(*env);
  return nullptr;
}

}  // namespace scanline
