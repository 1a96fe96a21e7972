// cartridge_any.h -- all cartridge policies together, chosen by the ROM's type at run time.
//
// For the host: `visit_cartridge` picks a policy once per frame; AnyCartridge is a policy itself
// and picks one per access, for code that is too rarely run to be compiled nine times. Devices are
// compiled for one type.
#pragma once

#include "cartridge_dpc.h"

namespace scanline {

// Calls `action` with the policy of a supported type; does nothing for the others.
template <class Action>
inline void visit_cartridge(CartridgeType type, Action action) {
  switch (type) {
    case CartridgeType::k2K:
      return action(Cartridge2K());
    case CartridgeType::k4K:
      return action(Cartridge4K());
    case CartridgeType::kF8:
      return action(CartridgeF8());
    case CartridgeType::kF8SC:
      return action(CartridgeF8SC());
    case CartridgeType::kF6:
      return action(CartridgeF6());
    case CartridgeType::kF6SC:
      return action(CartridgeF6SC());
    case CartridgeType::kE0:
      return action(CartridgeE0());
    case CartridgeType::kFE:
      return action(CartridgeFE());
    case CartridgeType::kDPC:
      return action(CartridgeDPC());
    default:
      return;
  }
}

struct AnyCartridge {
  static u8 read(CartridgeSlot slot, u16 address) {
    u8 value = 0;
    visit_cartridge(slot.type, [&](auto policy) { value = policy.read(slot, address); });
    return value;
  }
  static void write(CartridgeSlot slot, u16 address, u8 value) {
    visit_cartridge(slot.type, [&](auto policy) { policy.write(slot, address, value); });
  }
};

}  // namespace scanline
