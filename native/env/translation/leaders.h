// leaders.h -- the places of a ROM that somebody may jump to.
//
// Takes a decoded ROM and the places that its program was seen to reach; gives, by place, whether a
// block begins there: whatever can be reached from the reset vectors and from the places wanted.
// Knows how the banks lie in the slot, and no code.
#pragma once

#include <vector>

#include "../../core/decode.h"
#include "opcodes.h"

namespace scanline {

// How the image lies in the slot.
struct Layout {
  u32 region_bytes, plain_begin, plain_end;
  bool fixed;  // code in a bank sees that bank: not so in E0 and FE
  u32 mask;    // of an address, giving its place in the bank
};

class Leaders {
 public:
  Leaders(const RomImage& rom, const std::vector<u8>& wanted)
      : rom_(rom),
        num_ops_(num_decoded_ops(rom)),
        layout_(layout_of(rom)),
        is_leader_(num_ops_, 0),
        is_seen_(num_ops_, 0) {
    find_leaders(wanted);
  }

  u32 num_ops() const { return num_ops_; }
  const Layout& layout() const { return layout_; }
  bool has(u32 place) const { return is_leader_[place] != 0; }

  // Where an address of the cartridge lies as the code at `place` sees it; -1 if that depends.
  i32 place_seen_from(u32 place, u16 address) const {
    if (layout_.fixed) return static_cast<i32>(bank_start(place) + (address & layout_.mask));
    if (rom_.type == CartridgeType::kFE) return (address & 0xFFF) + (address & 0x2000 ? 0 : 0x1000);
    return (address & 0xFFF) >= 0xC00 ? 0x1000 + (address & 0xFFF) : -1;
  }
  u32 bank_start(u32 place) const { return place & ~layout_.mask; }

  bool can_translate(u32 place) const {
    const u16 handler = rom_.ops[place].handler;
    const u8 code = rom_.bytes[place];
    return handler != kSlow && is_translated(operation_of(code));
  }

 private:
  static Layout layout_of(const RomImage& rom) {
    Layout layout{};
    visit_cartridge(rom.type, [&](auto cartridge) {
      using Cartridge = decltype(cartridge);
      layout = {Cartridge::kRegionBytes, Cartridge::kPlainBegin, Cartridge::kPlainEnd,
                rom.type != CartridgeType::kE0 && rom.type != CartridgeType::kFE,
                rom.type == CartridgeType::k2K ? 0x7FFu : 0xFFFu};
    });
    return layout;
  }

  void find_leaders(const std::vector<u8>& wanted) {
    const u32 step = rom_.type == CartridgeType::kE0 ? num_ops_ : layout_.region_bytes;
    for (u32 end = step; end <= num_ops_; end += step) {
      const u16 start = u16(rom_.bytes[end - 4] | (rom_.bytes[end - 3] << 8));
      if (is_cartridge(start)) add_leader(place_seen_from(end - 1, start));
    }
    for (u32 place = 0; place < num_ops_; ++place) {
      if (wanted[place]) add_leader(static_cast<i32>(place));
    }
    while (!to_follow_.empty()) {
      const u32 place = to_follow_.back();
      to_follow_.pop_back();
      follow(place);
    }
  }

  void add_leader(i32 place) {
    if (place < 0 || static_cast<u32>(place) >= num_ops_ || is_leader_[static_cast<u32>(place)])
      return;
    is_leader_[static_cast<u32>(place)] = 1;
    to_follow_.push_back(static_cast<u32>(place));
  }

  void follow(u32 place) {
    while (place < num_ops_ && !is_seen_[place]) {
      is_seen_[place] = 1;
      if (!note_targets(place)) return;
      place += length_of(rom_.bytes[place]);
    }
  }

  // Marks where the program may go from here; false if not to the next instruction.
  bool note_targets(u32 place) {
    const DecodedOp& op = rom_.ops[place];
    const u8 code = rom_.bytes[place];
    const u32 next = place + length_of(code);
    if (!can_translate(place)) return add_leader(static_cast<i32>(next)), false;
    if (op.handler == kStoreA || op.handler == kStoreX || op.handler == kStoreY)
      add_leader(static_cast<i32>(next));  // VSYNC: here the next frame begins
    if (op.handler / 256u * 256u == kGeneric && is_cartridge(op.operand))
      note_bank_switch(op, next);
    const OpcodeFacts facts = facts_of(code);
    if (facts.shape == Shape::Branch) add_leader(static_cast<i32>(place) + op.extra);
    return facts.shape != Shape::Control || note_control(operation_of(code), op, place);
  }

  bool note_control(Does does, const DecodedOp& op, u32 place) {
    const bool constant = op.handler >= kConstant && op.handler < kTia;
    if (does == Does::jsr) add_leader(static_cast<i32>(place) + 3);
    if (does == Does::jsr || does == Does::jmp_absolute || constant)
      add_leader(place_seen_from(place, op.operand));
    return does >= Does::pha;
  }

  // The program goes on in any bank.
  void note_bank_switch(const DecodedOp& op, u32 next) {
    if (!layout_.fixed || (op.operand & 0xFFFu) < layout_.plain_end) return;
    for (u32 bank = 0; bank < num_ops_; bank += 0x1000)
      add_leader(static_cast<i32>(bank + (next & 0xFFF)));
  }

  const RomImage& rom_;
  u32 num_ops_;
  Layout layout_;
  std::vector<u8> is_leader_, is_seen_;
  std::vector<u32> to_follow_;
};

}  // namespace scanline
