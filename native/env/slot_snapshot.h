// slot_snapshot.h -- one environment with its episode as bytes, complete and versioned.
//
// Console with pictures, game and random stream; episode; pooled picture. Restorable into any
// environment of the same ROM, mode and settings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "game_environment.h"
#include "slot.h"
#include "snapshot_bytes.h"

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

// The parts of a snapshot outside of any environment.
struct Unpacked {
  Unpacked(Slot<GameEnvironment>& slot, const u8* bytes, u64 size)
      : env(std::make_unique<GameEnvironment::Snapshot>(GameEnvironment::blank_snapshot())),
        pooled(slot.episode.pooled().size()),
        refusal(unpack(header_of(slot), bytes, size, {env.get(), &episode, pooled.data()}, [&] {
          const WrongField wrong = slot.env.check(*env);
          return wrong ? wrong : wrong_field(episode, slot.rules->settings);
        })) {}

  std::unique_ptr<GameEnvironment::Snapshot> env;
  EpisodeState episode{};
  std::vector<u8> pooled;
  std::string refusal;  // why they must not be restored, to follow "because"; empty if they may
};

// Empty if the snapshot would be restored, else the reason why not.
inline std::string refusal(Slot<GameEnvironment>& slot, const u8* bytes, u64 size) {
  return Unpacked(slot, bytes, size).refusal;
}

// The same, and restores it; nothing is changed if there is a reason not to.
inline std::string restore(Slot<GameEnvironment>& slot, const u8* bytes, u64 size) {
  Unpacked parts(slot, bytes, size);
  if (!parts.refusal.empty()) return parts.refusal;
  slot.env.restore(*parts.env);
  slot.episode.state = parts.episode;
  slot.episode.pooled().swap(parts.pooled);
  return {};
}

}  // namespace scanline
