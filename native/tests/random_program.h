// random_program.h -- random TIA accesses in the rhythm of a game, to compare two TIAs.
//
// Takes a seed; gives the same accesses every time. Registers and distances are chosen so that
// rare paths are met often: resets over copies, writes at line ends, short and endless frames.
#pragma once

#include <cstring>
#include <vector>

#include "../core/state.h"
#include "../core/tia_registers.h"
#include "check.h"

namespace scanline {

struct Access {
  bool is_read;
  u16 address;
  u8 value;
  u32 cycles_before;  // since the previous access, without what WSYNC waits
};

inline u8 random_value(check::Random& random) {
  static constexpr u8 kLikely[] = {0, 0, 2, 0xFF, 0x80, 0x08, 0x10, 0x70, 0x60, 0x35, 0x07, 0x05};
  return random.one_in(2) ? kLikely[random.below(sizeof(kLikely))] : u8(random.below(256));
}

// One frame: blank lines, displayed lines, then VSYNC (sometimes early, late or never).
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed), style_(random_.below(4)) {}

  std::vector<Access> frame() {
    accesses_.clear();
    if (random_.one_in(3)) style_ = random_.below(4);
    const int num_lines = random_.one_in(6) ? random_.below(320) : 262;
    write(VSYNC, 2, 2);
    for (int line = 0; line < num_lines; ++line) one_line(line);
    if (random_.one_in(8)) return cut_at_line_end();
    if (!random_.one_in(10)) write(VSYNC, 0, 3 + random_.below(70));
    return accesses_;
  }

 private:
  void write(int address, u8 value, int cycles_before) {
    accesses_.push_back({false, u16(address), value, u32(cycles_before)});
  }

  void one_line(int line) {
    if (line == 30) write(VBLANK, random_.one_in(8) ? 2 : u8(random_.below(2) << 7), 3);
    if (line == 230 && !random_.one_in(4)) write(VBLANK, 2, 3);
    int num_accesses = style_ == 0 ? random_.below(3) : random_.below(14);
    if (style_ == 3 && !random_.one_in(5)) num_accesses = 0;
    while (num_accesses-- > 0) one_access();
    if (!random_.one_in(9)) write(WSYNC, 0, 3);
    if (random_.one_in(4)) write(HMOVE, 0, 3);
  }

  void one_access() {
    const int gap = random_.one_in(4) ? random_.below(30) : 3 + random_.below(3);
    if (random_.one_in(25)) {
      accesses_.push_back({true, u16(random_.below(16)), 0, u32(gap)});
    } else if (random_.one_in(40)) {
      cosmic_ark();
    } else {
      write(random_register(), random_value(random_), gap);
    }
  }

  int random_register() {
    static constexpr u8 kShapes[] = {GRP0, GRP1, ENAM0, ENAM1, ENABL, PF0, PF1, PF2, COLUPF, REFP0};
    static constexpr u8 kMoves[] = {RESP0,  RESP1,  RESM0,  RESM1, RESBL,
                                    NUSIZ0, NUSIZ1, CTRLPF, HMOVE};
    if (style_ == 1) return kShapes[random_.below(sizeof(kShapes))];
    if (style_ == 2 && random_.one_in(2)) return kMoves[random_.below(sizeof(kMoves))];
    const int address = random_.below(0x40);
    if (address == VBLANK && !random_.one_in(4)) return GRP0;
    return address == VSYNC ? static_cast<int>(CTRLPF) : address;
  }

  // A partial frame whose last access falls on the first clock of a line.
  std::vector<Access> cut_at_line_end() {
    accesses_.resize(accesses_.size() / 2 + 1, {false, 0x15, 0, 3});
    write(WSYNC, 0, 3);
    write(0x15, 0, 0);
    return accesses_;
  }

  // Sets missile 0 running, and shows it or keeps it locked.
  void cosmic_ark() {
    if (random_.one_in(2)) {
      write(RESMP0, 2, 3);
    } else {
      write(ENAM0, 2, 3);
    }
    write(HMM0, 0x70, 3);
    write(HMOVE, 0, 3);
    write(HMM0, 0x60, 21);
  }

  check::Random random_;
  int style_;
  std::vector<Access> accesses_;
};

// Runs accesses as a CPU loop would: until the frame ends or the accesses do (a partial frame).
// A frame that ends leaves the rest of the accesses unused.
template <class Tia>
std::vector<u8> run_accesses(Tia& tia, MachineState& state, const std::vector<Access>& accesses) {
  std::vector<u8> reads;
  if (!state.partial) tia.start_frame();
  state.partial = 1;
  for (const Access& access : accesses) {
    state.cycles += access.cycles_before;
    if (access.is_read) {
      reads.push_back(tia.read(access.address, access.value, state.cycles));
    } else if (tia.write(access.address, access.value, state.cycles, true)) {
      break;
    }
  }
  state.cycles += 2;
  tia.finish();
  return reads;
}

}  // namespace scanline
