// observer.cpp -- the observation pass for Python, so that tests can compare it with OpenCV and
// Pillow without an emulator.
#include <nanobind/nanobind.h>

#include "../env/observe.h"
#include "arrays.h"
#include "settings_from.h"

namespace scanline {

class PyObserver {
 public:
  PyObserver(nb::dict settings, int source_height, nb::handle grey, nb::handle rgb, bool portable)
      : height_(source_height),
        observer_(checked(settings, source_height), source_height,
                  {Array<const u8>(grey, "grey", {256}).data(),
                   Array<const u8>(rgb, "rgb", {256, 3}).data()}) {
    if (portable) observer_.use_portable();
  }

  void observe(nb::handle older, nb::handle newer, nb::handle out) {
    const std::vector<size_t> shape{static_cast<size_t>(height_), kScreenWidth};
    const Array<const u8> first(older, "older", shape), second(newer, "newer", shape);
    const Array<u8> target(out, "out");
    if (target.size() != static_cast<size_t>(observer_.frame_bytes()))
      refuse("out has " + std::to_string(target.size()) + " bytes but a frame has " +
             std::to_string(observer_.frame_bytes()) + ".");
    static thread_local Observer::Scratch scratch;
    nb::gil_scoped_release release;
    observer_.observe(first.data(), second.data(), target.data(), scratch);
  }

 private:
  static EnvSettings checked(nb::dict given, int source_height) {
    const EnvSettings settings = settings_from(given);
    if (const char* reason = Observer::refusal(settings, source_height)) refuse(reason);
    return settings;
  }

  int height_;
  Observer observer_;
};

void bind_observer(nb::module_& m) {
  nb::class_<PyObserver>(m, "Observer")
      .def(nb::init<nb::dict, int, nb::handle, nb::handle, bool>(), nb::arg("settings"),
           nb::arg("source_height"), nb::arg("grey"), nb::arg("rgb"), nb::arg("portable") = false)
      .def("observe", &PyObserver::observe, nb::arg("older"), nb::arg("newer"), nb::arg("out"));
  m.def("setting_fields", [] {
    nb::list names;
    for (const SettingField& field : setting_fields()) names.append(field.name);
    return names;
  });
  m.def("setting_choices", [] {
    nb::dict all;
    for (const ChoiceNames& choices : kChoiceNames) {
      nb::list names;
      for (int i = 0; i < 8 && choices.names[i] != nullptr; ++i) names.append(choices.names[i]);
      all[choices.field] = names;
    }
    return all;
  });
  m.def("has_avx2", &has_avx2);
}

}  // namespace scanline
