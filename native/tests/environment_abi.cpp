// environment_abi.cpp -- AleEnvironment behind a C interface, for comparisons with ALE.
//
// Built by tests/conformance/environment_library.py as a shared library; no part of the product.
// Arguments are trusted: the Python side passes ROMs, actions and modes that exist.
#include <cstring>
#include <optional>
#include <vector>

#include "../core/console.h"
#include "../core/console_fast.h"
#include "../core/tia_masks.h"
#include "../env/ale_environment.h"
#include "../env/owned_rom.h"
#include "../env/seen_console.h"
#include "../games/table.h"

#ifndef SCANLINE_TEST_CONSOLE
#define SCANLINE_TEST_CONSOLE Console
#endif

using namespace scanline;

namespace {

using MaskConsole = BasicConsole<PlainLoop, MaskTia>;

struct Handle {
  using Environment = AleEnvironment<SeenConsole<SCANLINE_TEST_CONSOLE>>;

  OwnedRom rom;
  Environment env;
  std::optional<Environment::Snapshot> snapshot;

  Handle(const u8* data, u32 size, u32 game, u32 seed, const AleSettings& settings)
      : rom(std::vector<u8>(data, data + size)),
        env(rom.image(), games::row_of(static_cast<games::GameId>(game)), settings,
            MersenneTwister(seed)) {}
};

Handle& of(void* handle) { return *static_cast<Handle*>(handle); }

}  // namespace

extern "C" {

struct Results {
  i32 lives, game_over, truncated, frame_number, episode_frame_number, mode_failed;
};

// Null if the cartridge cannot run.
void* environment_create(const u8* data, u32 size, u32 game, u32 seed, float sticky, i32 limit) {
  if (!is_supported(identify_rom(data, size).type)) return nullptr;
  return new Handle(data, size, game, seed, {sticky, limit});
}
void environment_destroy(void* handle) { delete &of(handle); }
void environment_reset(void* handle, i32 seen) { of(handle).env.reset(seen != 0); }
i32 environment_act(void* handle, u32 a, u32 b, float strength_a, float strength_b, i32 seen) {
  return of(handle).env.act(a, b, strength_a, strength_b, seen != 0);
}
void environment_set_mode(void* handle, u32 mode) { of(handle).env.set_mode(mode); }
void environment_set_difficulty(void* handle, u32 value) { of(handle).env.set_difficulty(value); }
void environment_show_pictures(void* handle) { of(handle).env.show_pictures(); }
void environment_save(void* handle) {
  of(handle).snapshot = of(handle).env.blank_snapshot();
  of(handle).env.save(*of(handle).snapshot);
}
void environment_restore(void* handle) { of(handle).env.restore(*of(handle).snapshot); }

void environment_results(void* handle, Results* results) {
  const auto& env = of(handle).env;
  *results = {env.lives(),
              env.game_over(),
              env.truncated(),
              env.frame_number(),
              env.episode_frame_number(),
              env.mode_failed()};
}
void environment_ram(void* handle, u8* ram) { std::memcpy(ram, of(handle).env.ram(), 128); }
i32 environment_screen_height(void* handle) { return of(handle).env.screen_height(); }
void environment_screen(void* handle, u8* pixels) {
  const auto& env = of(handle).env;
  std::memcpy(pixels, env.screen(), static_cast<size_t>(env.screen_height()) * 160);
}
void environment_previous_screen(void* handle, u8* pixels) {
  const auto& env = of(handle).env;
  std::memcpy(pixels, env.previous_screen(), static_cast<size_t>(env.screen_height()) * 160);
}

}  // extern "C"
