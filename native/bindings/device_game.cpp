// device_game.cpp -- games as buffers of a device, and the host grid, for Python.
//
// Checks arguments and turns refusals into Python errors. Lanes and records are bytes; their sizes
// are constants of the class, so that kernels can be compiled against them.
#include "../gpu/device_game.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "../gpu/host_grid.h"
#include "arrays.h"
#include "game_choice_from.h"

namespace scanline {
namespace {

template <class T>
nb::bytes bytes_of(const T* values, size_t num) {
  return nb::bytes(reinterpret_cast<const char*>(values), num * sizeof(T));
}
template <class T>
nb::bytes bytes_of(const std::vector<T>& values) {
  return bytes_of(values.data(), values.size());
}

// A lane that Python holds as an array of bytes.
gpu::Lane& lane_in(const Array<u8>& lane) { return *reinterpret_cast<gpu::Lane*>(lane.data()); }

class PyDeviceGame {
 public:
  PyDeviceGame(nb::tuple game, nb::dict settings)
      : game_(std::make_unique<gpu::DeviceGame>(game_choice_from(game), settings_from(settings))) {}

  std::string cartridge() { return cartridge_type_name(game_->type()); }
  nb::bytes record() { return bytes_of(&game_->record(), 1); }
  nb::bytes rom() { return bytes_of(game_->rom()); }
  nb::bytes starts() { return bytes_of(game_->starts()); }
  nb::bytes start_frames() { return bytes_of(game_->start_frames()); }
  nb::bytes firsts() { return bytes_of(game_->firsts()); }
  nb::bytes weights() { return bytes_of(game_->weights()); }
  u32 num_actions() { return game_->record().rules.num_actions; }
  nb::tuple frame_shape() {
    return nb::make_tuple(game_->record().resize.height, game_->record().resize.width);
  }

  // `key` are two words and an env id, as for a batch.
  void load(nb::handle lane, i64 seed, nb::handle key) {
    const nb::tuple words = tuple_of(key, 3, "key must be a tuple of two words and an env id");
    const EnvStream stream{{nb::cast<u32>(words[0]), nb::cast<u32>(words[1])},
                           nb::cast<u32>(words[2])};
    game_->load({static_cast<u32>(seed), stream}, lane_in(lane_from(lane)));
  }
  // Total, and since the game's reset.
  nb::tuple frame_numbers(nb::handle lane) {
    const AleState& state = lane_in(lane_from(lane)).ale;
    return nb::make_tuple(state.frame_number, state.episode_frame_number);
  }
  nb::bytes snapshot(nb::handle lane) {
    return bytes_of(game_->snapshot(lane_in(lane_from(lane))));
  }
  void restore(nb::handle lane, nb::bytes snapshot) {
    const std::string reason = game_->restore(reinterpret_cast<const u8*>(snapshot.data()),
                                              snapshot.size(), lane_in(lane_from(lane)));
    if (!reason.empty()) refuse("This snapshot cannot be restored because " + reason + ".");
  }

 private:
  static Array<u8> lane_from(nb::handle lane) {
    Array<u8> array(lane, "lane", {sizeof(gpu::Lane)});
    if (reinterpret_cast<std::uintptr_t>(array.data()) % alignof(gpu::Lane) != 0)
      refuse("a lane must begin at a multiple of 8 bytes.");
    return array;
  }

  std::unique_ptr<gpu::DeviceGame> game_;
};

CartridgeType type_named(const std::string& name) {
  for (u32 i = 0; is_supported(static_cast<CartridgeType>(i)); ++i) {
    if (name == cartridge_type_name(static_cast<CartridgeType>(i)))
      return static_cast<CartridgeType>(i);
  }
  refuse("there are no kernels for cartridge type " + name + ".");
}

// Buffers must be large enough for what the kernel touches; they are a test's own.
void run_on_host(const std::string& kernel, const std::string& cartridge, nb::list buffers,
                 const std::vector<u32>& scalars, const std::vector<u32>& order) {
  std::vector<Array<u8>> arrays;
  std::vector<u8*> addresses;
  for (nb::handle buffer : buffers) {
    arrays.emplace_back(buffer, "buffer");
    addresses.push_back(arrays.back().data());
  }
  const CartridgeType type = type_named(cartridge);
  std::string reason;
  {
    nb::gil_scoped_release release;
    reason = gpu::run_on_host(kernel, type, addresses, scalars, order);
  }
  if (!reason.empty()) refuse(reason + ".");
}

}  // namespace

void bind_device_game(nb::module_& m) {
  nb::class_<PyDeviceGame> game(m, "DeviceGame");
  game.def(nb::init<nb::tuple, nb::dict>(), nb::arg("game"), nb::arg("settings"))
      .def_prop_ro("cartridge", &PyDeviceGame::cartridge)
      .def_prop_ro("record", &PyDeviceGame::record)
      .def_prop_ro("rom", &PyDeviceGame::rom)
      .def_prop_ro("starts", &PyDeviceGame::starts)
      .def_prop_ro("start_frames", &PyDeviceGame::start_frames)
      .def_prop_ro("firsts", &PyDeviceGame::firsts)
      .def_prop_ro("weights", &PyDeviceGame::weights)
      .def_prop_ro("num_actions", &PyDeviceGame::num_actions)
      .def_prop_ro("frame_shape", &PyDeviceGame::frame_shape)
      .def("load", &PyDeviceGame::load, nb::arg("lane"), nb::arg("seed"), nb::arg("key"))
      .def("frame_numbers", &PyDeviceGame::frame_numbers, nb::arg("lane"))
      .def("snapshot", &PyDeviceGame::snapshot, nb::arg("lane"))
      .def("restore", &PyDeviceGame::restore, nb::arg("lane"), nb::arg("snapshot"));
  game.attr("LANE_BYTES") = sizeof(gpu::Lane);
  game.attr("GAME_BYTES") = sizeof(gpu::Game);
  game.attr("START_BYTES") = sizeof(gpu::Start);
  m.def("run_on_host", run_on_host, nb::arg("kernel"), nb::arg("cartridge"), nb::arg("buffers"),
        nb::arg("scalars"), nb::arg("order"));
}

}  // namespace scanline
