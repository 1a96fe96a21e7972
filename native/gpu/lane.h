// lane.h -- one environment as it lies in device memory, and what a lane runs it with.
//
// Plain structs that host and device read alike (their sizes are compared when kernels are
// compiled), and the console and environment of env/ over them: the rules are those of the host,
// only the place of the state differs. Nothing here decides what a step means.
#pragma once

#include "../core/cartridge_dpc.h"
#include "../core/machine.h"
#include "../core/tia_masks.h"
#include "../env/agent_step.h"
#include "../env/ale_environment.h"
#include "../env/area_sum.h"
#include "../env/seen_console.h"
#include "lane_loop.h"

namespace scanline::gpu {

// Sizes of an observation's resize; its weights are in buffers of their own.
struct ResizeSizes {
  i32 first_row;  // of the picture, after the crop
  i32 height, width, padded_width;
  i32 taps_x, taps_y;
};

// What all environments of one game share.
struct Game {
  StepRules rules;
  games::GameRow row;
  Properties properties;
  ResizeSizes resize;
  u32 rom_bytes;
  u32 num_starts;
  u8 grey[256];  // by colour index
};

// One way in which a game can begin; its first frame is in a buffer of its own.
struct Start {
  ConsoleSnapshot console;
  AleState state;
};

// Which pictures of a lane the observation is made of.
struct Sight {
  u32 is_due;        // 0: the frame has been written already
  u32 older, newer;  // offsets into Lane::pictures
};

// One environment. The third picture is the one that an unfinished frame puts aside.
struct Lane {
  CartridgeState cartridge;
  MachineState machine;
  AleState ale;
  EpisodeState episode;
  CounterRandom random;
  RecentFrames recent;
  Sight sight;
  u8 pictures[3 * kPictureBytes];
};

// The numbers of one step.
struct StepNumbers {
  float reward, raw_reward, episode_return;
  i32 lives, episode_agent_steps, frame_number, episode_frame_number;
  bool terminated, truncated, life_lost;
  u8 depth;

  // Where the rules write them; frames have places of their own.
  SCANLINE_HD StepRow row() {
    return {nullptr,         &depth,
            &reward,         &raw_reward,
            &terminated,     &truncated,
            &life_lost,      &lives,
            nullptr,         nullptr,
            &frame_number,   &episode_frame_number,
            &episode_return, &episode_agent_steps};
  }
};
static_assert(sizeof(StepNumbers) == 32, "as Python reads them");

// Where a lane's console takes its state from, and leaves it.
struct LaneView {
  Lane& lane;
  const Game& game;
  const u8* rom;
};

#if defined(SCANLINE_PLAIN_LOOP)
using FrameLoop = PlainLoop;  // for comparison
#else
using FrameLoop = LaneLoop;
#endif

// A console as SeenConsole wants it. Its state is a copy, so that a compiler may keep fields in
// registers; pictures stay where they are.
template <class Cartridge>
class LaneConsole {
 public:
  MachineState machine;

  SCANLINE_HD explicit LaneConsole(const LaneView& view)
      : machine(view.lane.machine),
        cartridge_(view.lane.cartridge),
        properties_(view.game.properties),
        pictures_(view.lane.pictures) {
    rom_.bytes = view.rom;
    rom_.size_bytes = view.game.rom_bytes;
    rom_.properties = view.game.properties;
  }

  SCANLINE_HD void store(Lane& lane) const {
    lane.machine = machine;
    lane.cartridge = cartridge_;
  }

  SCANLINE_HD const Properties& properties() const { return properties_; }
  SCANLINE_HD u8 ram(u8 address) const { return machine.ram[address & 0x7F]; }
  SCANLINE_HD u8 cartridge_ram(u16 address) const { return cartridge_.ram[address & 0x7F]; }
  SCANLINE_HD const u8* screen() const { return picture(machine.buffer_parity); }
  SCANLINE_HD const u8* previous_screen() const { return picture(!machine.buffer_parity); }

  SCANLINE_HD ConsoleState state() const { return {machine, cartridge_}; }
  SCANLINE_HD void set_state(const ConsoleState& state) {
    machine = state.machine;
    cartridge_ = state.cartridge;
  }

  SCANLINE_HD void system_reset() {
    reset_machine<Cartridge>(machine, cartridge_, rom_);
    for (i32 i = 0; i < 2 * kPictureBytes; ++i) pictures_[i] = 0;
  }

  SCANLINE_HD void restore(const ConsoleSnapshot& snapshot) {
    machine = snapshot.machine;
    cartridge_ = snapshot.cartridge;
    for (i32 i = 0; i < 2 * kPictureBytes; ++i) pictures_[i] = snapshot.pictures[i];
  }

  SCANLINE_HD SCANLINE_NOINLINE void run_frame(bool draw) {
    if (draw) {
      run(Pixels<>(pictures_));
    } else {
      run(NoPixels());
    }
  }

 private:
  SCANLINE_HD const u8* picture(u32 parity) const {
    return pictures_ + (parity ? kPictureBytes : 0);
  }

  template <class Sink>
  SCANLINE_HD void run(Sink sink) {
    MaskTia<Sink> tia(machine, properties_, sink);
    scanline::run_frame<FrameLoop, Cartridge>(machine, cartridge_, rom_, tia);
  }

  CartridgeState cartridge_;
  const Properties& properties_;
  RomImage rom_;
  u8* pictures_;
};

// A picture that is put aside, in the lane's memory.
struct LanePicture {
  u8* bytes = nullptr;
  SCANLINE_HD void keep(const u8* picture) {
    for (i32 i = 0; i < kPictureBytes; ++i) bytes[i] = picture[i];
  }
  SCANLINE_HD const u8* data() const { return bytes; }
};

// The environment that a lane steps.
template <class Cartridge>
class LaneEnvironment
    : public AleEnvironment<SeenConsole<LaneConsole<Cartridge>, LanePicture>, CounterRandom> {
  using Ale = AleEnvironment<SeenConsole<LaneConsole<Cartridge>, LanePicture>, CounterRandom>;

 public:
  SCANLINE_HD explicit LaneEnvironment(const LaneView& view)
      : Ale(view, view.game.row,
            AleSettings{static_cast<float>(view.game.rules.settings.sticky), 0}, view.lane.random,
            view.lane.ale) {
    this->console().recent_frames = view.lane.recent;
    this->console().held.bytes = view.lane.pictures + 2 * kPictureBytes;
  }

  SCANLINE_HD void store(Lane& lane) {
    this->console().store(lane);
    lane.recent = this->console().recent_frames;
    lane.ale = this->state();
    lane.random = this->random();
  }
};

}  // namespace scanline::gpu
