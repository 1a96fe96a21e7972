// console.cpp -- one console with ALE's environment around it, for Python.
//
// Checks arguments and returns copies of memory and pictures. A frame is drawn at once if the
// picture of the frame before it was asked for, else only when its own is.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <vector>

#include "../env/ale_snapshot.h"
#include "../env/game_environment.h"
#include "../games/table.h"
#include "screens.h"
#include "settings_from.h"

namespace scanline {
namespace {

// Neither score nor end, all actions: for ROMs that no row describes.
const games::GameRow& row_without_game() {
  static constexpr games::GameRow kRow{};
  return kRow;
}

class PyConsole {
 public:
  using Ale = AleEnvironment<SeenConsole<FastConsole>, MersenneTwister>;

  // `game` is a row of the game table, or -1; `mode` and `difficulty` may be -1.
  PyConsole(nb::bytes rom, int game, i64 seed, double sticky, int mode, int difficulty)
      : rom_(bytes_of(rom)), row_(row_for(game)) {
    if (!rom_.can_run()) refuse(rom_.refusal());
    const AleSettings settings{static_cast<float>(sticky), 0};
    check_choice(mode, difficulty);
    ale_ = std::make_unique<Ale>(rom_.image(), row_, settings,
                                 MersenneTwister(static_cast<u32>(seed)));
    palette_ = std::make_unique<Palette>(ale_->properties().pal);
    if (mode >= 0) ale_->set_mode(static_cast<u32>(mode));
    if (difficulty >= 0) ale_->set_difficulty(static_cast<u32>(difficulty));
  }

  void reset() { ale_->reset(); }

  int act(int action, int action_b, double strength, double strength_b) {
    check_action("action", action);
    check_action("action_b", action_b);
    check_strength("strength", strength);
    check_strength("strength_b", strength_b);
    const bool seen = watched_;
    watched_ = false;
    return ale_->act(static_cast<u32>(action), static_cast<u32>(action_b),
                     static_cast<float>(strength), static_cast<float>(strength_b), seen);
  }

  Screens ram() {
    Screens out = fresh_array({128});
    std::memcpy(out.data(), ale_->ram(), 128);
    return out;
  }
  Screens screen() {
    Screens out = fresh_array({height(), 160});
    std::memcpy(out.data(), picture(), out.size());
    return out;
  }
  Screens screen_gray() {
    Screens out = fresh_array({height(), 160});
    const u8* indices = picture();
    for (size_t i = 0; i < out.size(); ++i) out.data()[i] = palette_->grey[indices[i]];
    return out;
  }
  Screens screen_rgb() { return coloured(*palette_, picture(), {height(), 160}); }

  int lives() const { return ale_->lives(); }
  bool game_over() const { return ale_->game_over(); }
  int frame_number() const { return ale_->frame_number(); }
  int episode_frame_number() const { return ale_->episode_frame_number(); }
  std::vector<u32> minimal_actions() const { return members(row_.minimal_actions); }
  std::vector<u32> legal_actions() const { return members(games::kAllActions); }
  std::vector<u32> modes() const {
    std::vector<u32> all;
    for (u32 i = 0; i < games::num_modes(row_); ++i) all.push_back(games::mode_at(row_, i));
    return all;
  }
  std::vector<u32> difficulties() const { return members(row_.difficulties); }

  nb::bytes snapshot() {
    const std::vector<u8> bytes = snapshot_of(*ale_, rom_.image());
    return nb::bytes(bytes.data(), bytes.size());
  }
  void restore(nb::bytes bytes) {
    const std::string reason = scanline::restore(
        *ale_, rom_.image(), reinterpret_cast<const u8*>(bytes.data()), bytes.size());
    if (!reason.empty()) refuse("This snapshot cannot be restored because " + reason + ".");
  }

 private:
  static std::vector<u8> bytes_of(nb::bytes rom) {
    const u8* data = reinterpret_cast<const u8*>(rom.data());
    return std::vector<u8>(data, data + rom.size());
  }

  static const games::GameRow& row_for(int game) {
    if (game < -1 || game >= static_cast<int>(games::kNumGames)) refuse("there is no such game.");
    return game < 0 ? row_without_game() : games::row_of(static_cast<games::GameId>(game));
  }

  static void check_action(const char* name, int action) {
    if (action < 0 || action >= static_cast<int>(games::kNumActions))
      refuse(std::string(name) + "=" + std::to_string(action) +
             " must be one of ALE's actions 0 to 17.");
  }

  static void check_strength(const char* name, double strength) {
    if (!(strength >= 0.0 && strength <= 1.0))
      refuse(std::string(name) + "=" + std::to_string(strength) + " must lie in 0 to 1.");
  }

  void check_choice(int mode, int difficulty) const {
    if (mode >= 0 && !games::has_mode(row_, static_cast<u32>(mode)))
      refuse("mode=" + std::to_string(mode) + " is none of this game; see `modes`.");
    if (difficulty >= 0 && !games::has_difficulty(row_, static_cast<u32>(difficulty)))
      refuse("difficulty=" + std::to_string(difficulty) + " is none of this game; see " +
             "`difficulties`.");
  }

  static std::vector<u32> members(u32 set) {
    std::vector<u32> all;
    for (u32 i = 0; i < 32; ++i) {
      if (set >> i & 1) all.push_back(i);
    }
    return all;
  }

  size_t height() const { return static_cast<size_t>(ale_->screen_height()); }
  const u8* picture() {
    watched_ = true;
    ale_->show_pictures(1);
    return ale_->screen();
  }

  OwnedRom rom_;
  const games::GameRow& row_;
  std::unique_ptr<Ale> ale_;
  std::unique_ptr<Palette> palette_;
  bool watched_ = true;  // the newest picture was asked for
};

}  // namespace

void bind_console(nb::module_& m) {
  nb::class_<PyConsole>(m, "Console")
      .def(nb::init<nb::bytes, int, i64, double, int, int>(), nb::arg("rom"), nb::arg("game"),
           nb::arg("seed"), nb::arg("repeat_action_probability"), nb::arg("mode"),
           nb::arg("difficulty"))
      .def("reset", &PyConsole::reset)
      .def("act", &PyConsole::act, nb::arg("action"), nb::arg("action_b") = 0,
           nb::arg("strength") = 1.0, nb::arg("strength_b") = 1.0)
      .def("ram", &PyConsole::ram)
      .def("screen", &PyConsole::screen)
      .def("screen_gray", &PyConsole::screen_gray)
      .def("screen_rgb", &PyConsole::screen_rgb)
      .def("snapshot", &PyConsole::snapshot)
      .def("restore", &PyConsole::restore, nb::arg("snapshot"))
      .def_prop_ro("lives", &PyConsole::lives)
      .def_prop_ro("game_over", &PyConsole::game_over)
      .def_prop_ro("frame_number", &PyConsole::frame_number)
      .def_prop_ro("episode_frame_number", &PyConsole::episode_frame_number)
      .def_prop_ro("minimal_actions", &PyConsole::minimal_actions)
      .def_prop_ro("legal_actions", &PyConsole::legal_actions)
      .def_prop_ro("modes", &PyConsole::modes)
      .def_prop_ro("difficulties", &PyConsole::difficulties);
}

}  // namespace scanline
