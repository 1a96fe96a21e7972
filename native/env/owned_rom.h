// owned_rom.h -- one ROM file in memory, identified, decoded and translated, for every console that
// runs it.
//
// Takes the bytes of a file; owns them and the instructions that `image` points to, so it is
// neither copied nor moved. Refusal of a cartridge that cannot run is the caller's business.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../core/decode.h"
#include "../core/rom_identify.h"
#include "translation/translator.h"

namespace scanline {

class OwnedRom {
 public:
  explicit OwnedRom(std::vector<u8> bytes)
      : bytes_(std::move(bytes)),
        image_(identify_rom(bytes_.data(), static_cast<u32>(bytes_.size()))),
        ops_(num_decoded_ops(image_)) {
    if (ops_.empty()) return;
    decode_rom(image_, ops_.data());
    image_.ops = ops_.data();
    translator_ = std::make_unique<Translator>(image_);
    image_.translation = translator_->translation();
  }
  OwnedRom(const OwnedRom&) = delete;
  OwnedRom& operator=(const OwnedRom&) = delete;

  const RomImage& image() const { return image_; }
  bool can_run() const { return is_supported(image_.type); }
  std::string refusal() const {
    return "A ROM of " + std::to_string(bytes_.size()) + " bytes with cartridge type " +
           cartridge_type_name(image_.type) +
           " cannot run here; supported are 2K, 4K, F8, F8SC, F6, F6SC, E0, FE and DPC.";
  }

 private:
  std::vector<u8> bytes_;
  RomImage image_;
  std::vector<DecodedOp> ops_;
  std::unique_ptr<Translator> translator_;
};

}  // namespace scanline
