// ale_snapshot.h -- one console with ALE's environment around it as bytes, complete and versioned.
//
// Pictures, game and random stream included; restorable into any environment of the same ROM.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ale_environment.h"
#include "snapshot_bytes.h"

namespace scanline {

template <class Ale>
SnapshotHeader header_of(const RomImage& rom) {
  static_assert(!Ale::kSnapshotHasPadding, "every byte is part of a field");
  SnapshotHeader header = snapshot_header(rom, 0);
  header.part_bytes[0] = sizeof(typename Ale::Snapshot);
  return header;
}

template <class Ale>
std::vector<u8> snapshot_of(Ale& ale, const RomImage& rom) {
  const auto snapshot = std::make_unique<typename Ale::Snapshot>(ale.blank_snapshot());
  ale.save(*snapshot);
  return packed(header_of<Ale>(rom), {snapshot.get(), nullptr, nullptr});
}

// Empty if it was restored, else the reason why not, to follow "because"; nothing is changed then.
template <class Ale>
std::string restore(Ale& ale, const RomImage& rom, const u8* bytes, u64 size) {
  const auto snapshot = std::make_unique<typename Ale::Snapshot>(ale.blank_snapshot());
  const std::string reason =
      unpack(header_of<Ale>(rom), bytes, size, {snapshot.get(), nullptr, nullptr},
             [&] { return Ale::check(*snapshot, rom.type, ale.properties(), ale.row()); });
  if (reason.empty()) ale.restore(*snapshot);
  return reason;
}

}  // namespace scanline
