// test_seen_console.cpp -- pictures of a console that draws on demand equal those of one that
// draws always.
//
// The program under test makes whole, short and unfinished frames in an order that a table of the
// cartridge decides; which frames are seen is random.
#include <cstring>
#include <memory>
#include <vector>

#include "../core/console.h"
#include "../env/seen_console.h"
#include "check.h"

using namespace scanline;

namespace {

constexpr u16 kTable = 0x0F00;  // one byte per frame: lines to draw, 0 for a long pause

// 6507 code at F000. RAM 80 counts frames.
const std::vector<u8> kProgram = {
    0xA9, 0x02, 0x85, 0x00,              // F000 LDA #2, STA VSYNC
    0x85, 0x02, 0x85, 0x02, 0x85, 0x02,  // F004 STA WSYNC x3
    0xA9, 0x00, 0x85, 0x00,              // F00A LDA #0, STA VSYNC: the frame ends
    0xE6, 0x80, 0xA6, 0x80,              // F00E INC 80, LDX 80
    0xBD, 0x00, 0xFF,                    // F012 LDA FF00,X
    0xF0, 0x11,                          // F015 BEQ pause
    0xA8,                                // F017 TAY
    0x84, 0x09, 0x86, 0x08, 0x84, 0x0E,  // F018 line: STY COLUBK, STX COLUPF, STY PF1
    0x85, 0x02, 0x85, 0x02,              // F01E STA WSYNC x2
    0x88, 0xD0, 0xF3,                    // F022 DEY, BNE line
    0x4C, 0x00, 0xF0,                    // F025 JMP F000
    0xA0, 0x40, 0xA2, 0x00,              // F028 pause: LDY #40, LDX #0
    0xCA, 0xD0, 0xFD, 0x88, 0xD0, 0xFA,  // F02C DEX, BNE, DEY, BNE: 32,000 instructions
    0x4C, 0x00, 0xF0,                    // F032 JMP F000
};

std::vector<u8> cartridge(u64 seed) {
  check::Random random(seed);
  std::vector<u8> rom(4096, 0xEA);
  std::memcpy(rom.data(), kProgram.data(), kProgram.size());
  for (u32 i = 0; i < 256; ++i) {
    rom[kTable + i] = random.one_in(6) ? u8(random.below(120)) : 125;
    if (random.one_in(9)) rom[kTable + i] = 0;
  }
  rom[0xFFC] = 0x00;
  rom[0xFFD] = 0xF0;
  return rom;
}

bool equal(const u8* a, const u8* b) { return std::memcmp(a, b, 210 * 160) == 0; }

template <class Console>
void compare(u64 seed) {
  const std::vector<u8> bytes = cartridge(seed);
  RomImage rom;
  rom.bytes = bytes.data();
  rom.size_bytes = u32(bytes.size());
  rom.type = CartridgeType::k4K;
  auto always = std::make_unique<Console>(rom);
  auto on_demand = std::make_unique<SeenConsole<Console>>(rom);
  check::Random random(seed + 1);
  const int chance = 1 + random.below(6);
  std::vector<u8> before(210 * 160);
  for (int frame = 0; frame < 400; ++frame) {
    if (random.one_in(150)) {
      always->system_reset();
      on_demand->system_reset();
    }
    const u8 pressed = u8(random.below(256));
    always->machine.swcha = on_demand->machine.swcha = pressed;
    std::memcpy(before.data(), always->screen(), before.size());
    always->run_frame(true);
    on_demand->run_frame(random.one_in(chance));
    CHECK(std::memcmp(&always->machine, &on_demand->machine, sizeof(MachineState)) == 0);
    if (random.one_in(3)) {
      on_demand->machine.swcha = u8(~pressed);
      on_demand->show_pictures(1);
      CHECK(equal(always->screen(), on_demand->screen()));
      CHECK(on_demand->machine.swcha == u8(~pressed));
    }
    if (random.one_in(3)) {
      on_demand->show_pictures(2);
      CHECK(equal(always->screen(), on_demand->screen()));
      CHECK(equal(before.data(), on_demand->previous_screen()));
    }
    if (random.one_in(40)) {
      auto snapshot = std::make_unique<ConsoleSnapshot>();
      on_demand->save(*snapshot);
      on_demand->run_frame(false);
      on_demand->restore(*snapshot);
    }
  }
}

}  // namespace

int main() {
  for (u64 seed = 0; seed < 12; ++seed) compare<Console>(seed);
  return check::result("test_seen_console");
}
