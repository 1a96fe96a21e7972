// translator.h -- the instructions of one ROM as machine code of this processor.
//
// Takes a decoded ROM (core/decode.h); gives the Translation that core/loop_translated.h runs, or
// null where there is none: another processor, or a system that allows no generated code. Which
// instructions are translated changes the speed and nothing else, so places that the program turns
// out to reach (`missed`) are added while it runs, for all consoles that share the ROM.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "../../core/rom.h"
#include "../../core/translation.h"

namespace scanline {

class ExecutableBytes;

class Translator {
 public:
  // `rom` must be decoded and must outlive the translator.
  explicit Translator(const RomImage& rom);
  ~Translator();
  Translator(const Translator&) = delete;
  Translator& operator=(const Translator&) = delete;

  Translation* translation() {
    return shared_.public_part.entries ? &shared_.public_part : nullptr;
  }

 private:
  // One version of the code; older ones stay, because another thread may be running them.
  struct Version {
    std::unique_ptr<ExecutableBytes> code;
    std::vector<const void*> entries;
  };

  // The public part comes first, so that `missed` finds its owner.
  struct Shared {
    Translation public_part;
    Translator* owner;
  };

  static void missed(Translation* translation, u32 place);
  void note_miss(u32 place);
  bool translate();

  const RomImage& rom_;
  Shared shared_{};
  std::mutex mutex_;
  std::vector<u8> wanted_;  // by place: the program has been seen to go there
  bool has_new_places_ = false;
  u32 num_misses_ = 0;
  std::vector<std::unique_ptr<Version>> versions_;
};

}  // namespace scanline
