// translator.cpp -- versions of a ROM's code, each with more of its places than the one before.
#include "translator.h"

#if defined(__x86_64__) && (defined(__linux__) || defined(__APPLE__))
#include "emitter.h"
#include "executable_bytes.h"

namespace scanline {

Translator::Translator(const RomImage& rom) : rom_(rom), wanted_(num_decoded_ops(rom), 0) {
  shared_.owner = this;
  if (rom.ops == nullptr || !translate()) return;
  shared_.public_part.missed = &Translator::missed;
}

Translator::~Translator() = default;

bool Translator::translate() {
  const Emitter emitter(rom_, wanted_);
  auto version = std::make_unique<Version>();
  version->code = std::make_unique<ExecutableBytes>(emitter.bytes());
  const u8* start = version->code->start();
  if (start == nullptr) return false;
  for (u32 place = 0; place < wanted_.size(); ++place)
    version->entries.push_back(start + emitter.entry(place));
  Translation& translation = shared_.public_part;
  // The way in is the same in every version.
  if (versions_.empty())
    translation.enter =
        reinterpret_cast<void (*)(TranslatedRun*, const void*)>(reinterpret_cast<size_t>(start));
  __atomic_store_n(&translation.entries, version->entries.data(), __ATOMIC_RELEASE);
  versions_.push_back(std::move(version));
  return true;
}

void Translator::missed(Translation* translation, u32 place) {
  reinterpret_cast<Shared*>(translation)->owner->note_miss(place);
}

// Each version waits for more misses than the one before, so that there are few.
void Translator::note_miss(u32 place) {
  constexpr size_t kMissesPerVersion = 64, kMaxVersions = 24;
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || versions_.size() == kMaxVersions) return;
  has_new_places_ |= !wanted_[place];
  wanted_[place] = 1;
  if (++num_misses_ < kMissesPerVersion * versions_.size() || !has_new_places_) return;
  num_misses_ = 0;
  has_new_places_ = false;
  translate();
}

}  // namespace scanline

#else

namespace scanline {

class ExecutableBytes {};

Translator::Translator(const RomImage& rom) : rom_(rom) {}
Translator::~Translator() = default;

}  // namespace scanline

#endif
