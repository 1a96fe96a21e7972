// console.h -- one whole console on the host: power-on, reset, frames, pictures, snapshots.
//
// Wires a cartridge, a TIA and a loop together; construction does what ALE does when it loads a
// ROM (random RAM, format detection), so that RAM is equal to ALE's from the first frame on.
// Knows nothing of scores, episodes or actions' meaning; inputs are set in `machine` with the
// functions of controllers.h.
#pragma once

#include "cartridge_any.h"
#include "console_state.h"
#include "controllers.h"
#include "loop_plain.h"
#include "machine.h"
#include "sinks.h"
#include "state_check.h"
#include "tia_plain.h"

namespace scanline {

constexpr u32 kDetectionFrames = 60, kDetectionFirstFrame = 30;
constexpr u32 kPalFrames = 15;  // this many tall frames of the last thirty mean PAL
constexpr i32 kTallFrameLines = 285;
constexpr i32 kNtscHeight = 210, kPalHeight = 250, kMinScreenHeight = 200;

// For a console with a ROM of this type, whose format has been detected.
inline WrongField wrong_field(const ConsoleSnapshot& snapshot, CartridgeType type,
                              const Properties& properties) {
  WrongField wrong{"cartridge type", 0, static_cast<double>(type)};
  visit_cartridge(type, [&](auto cartridge) {
    wrong = wrong_field<decltype(cartridge)>(snapshot.machine, properties);
  });
  return wrong ? wrong : wrong_field(snapshot.cartridge);
}

template <class Loop, template <class> class Tia>
class BasicConsole {
 public:
  MachineState machine;  // public: inputs and RAM are plain fields of it

  explicit BasicConsole(const RomImage& rom) : rom_(rom), properties_(rom.properties) {
    power_on();
    if (properties_.detect_format) detect_format();
    system_reset();
  }

  const Properties& properties() const { return properties_; }
  const CartridgeState& cartridge() const { return cartridge_; }
  u8 ram(u8 address) const { return machine.ram[address & 0x7F]; }

  void system_reset() {
    visit_cartridge(rom_.type, [this](auto cartridge) {
      reset_machine<decltype(cartridge)>(machine, cartridge_, rom_);
    });
    for (u8& pixel : pictures_) pixel = 0;
  }

  // Without `draw` the state is the same, the pictures are left as they were.
  void run_frame(bool draw);

  i32 screen_height() const {
    return properties_.height < kMinScreenHeight ? kMinScreenHeight : properties_.height;
  }
  u8* pictures() { return pictures_; }  // two, one after the other
  const u8* screen() const { return pictures_ + (machine.buffer_parity ? kPictureBytes : 0); }
  const u8* previous_screen() const {
    return pictures_ + (machine.buffer_parity ? 0 : kPictureBytes);
  }

  // What a game's score rules may read of the cartridge: its RAM, without side effects.
  u8 cartridge_ram(u16 address) const { return cartridge_.ram[address & 0x7F]; }

  ConsoleState state() const { return {machine, cartridge_}; }
  void set_state(const ConsoleState& state) {
    machine = state.machine;
    cartridge_ = state.cartridge;
  }

  void save(ConsoleSnapshot& snapshot) const {
    snapshot.machine = machine;
    snapshot.cartridge = cartridge_;
    for (i32 i = 0; i < 2 * kPictureBytes; ++i) snapshot.pictures[i] = pictures_[i];
  }
  void restore(const ConsoleSnapshot& snapshot) {
    machine = snapshot.machine;
    cartridge_ = snapshot.cartridge;
    for (i32 i = 0; i < 2 * kPictureBytes; ++i) pictures_[i] = snapshot.pictures[i];
  }

 private:
  template <class Cartridge, class Sink>
  void run(Sink sink) {
    Tia<Sink> tia(machine, properties_, sink);
    scanline::run_frame<Loop, Cartridge>(machine, cartridge_, rom_, tia);
  }

  // The RIOT draws one more word for a timer value that the first reset replaces.
  void power_on() {
    machine = MachineState{};
    cartridge_ = CartridgeState{};
    cartridge_.shift_register = 1;
    MersenneTwister random = system_random(0);
    for (u8& byte : machine.ram) byte = u8(random.next());
    machine.system_random_draws = 128 + 1;
    plug_in_controllers(machine, properties_);
  }

  void detect_format() {
    system_reset();
    u32 num_tall = 0;
    for (u32 frame = 0; frame < kDetectionFrames; ++frame) {
      run_frame(false);
      const i32 lines = lines_since_frame_start(machine, clock_of(machine.cycles));
      if (frame >= kDetectionFirstFrame && lines > kTallFrameLines) ++num_tall;
    }
    properties_.pal = num_tall >= kPalFrames;
    if (properties_.pal && properties_.height == kNtscHeight) properties_.height = kPalHeight;
  }

  RomImage rom_;
  Properties properties_;
  CartridgeState cartridge_;
  u8 pictures_[2 * kPictureBytes];
};

// Not inline: it contains the whole emulator, and one object file per program is enough of it.
template <class Loop, template <class> class Tia>
void BasicConsole<Loop, Tia>::run_frame(bool draw) {
  visit_cartridge(rom_.type, [this, draw](auto cartridge) {
    using Cartridge = decltype(cartridge);
    if (draw) {
      run<Cartridge>(Pixels<>(pictures_));
    } else {
      run<Cartridge>(NoPixels());
    }
  });
}

using Console = BasicConsole<PlainLoop, PlainTia>;

}  // namespace scanline
