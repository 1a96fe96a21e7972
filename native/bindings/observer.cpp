// observer.cpp -- the observation pass for Python, so that tests can compare it with OpenCV and
// Pillow without an emulator.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "../env/observe.h"
#include "settings_from.h"

namespace scanline {

using Picture = nb::ndarray<const u8, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<u8, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const u8, nb::shape<256>, nb::c_contig, nb::device::cpu>;
using ColourTable = nb::ndarray<const u8, nb::shape<256, 3>, nb::c_contig, nb::device::cpu>;

class PyObserver {
 public:
  PyObserver(nb::dict settings, int source_height, Table grey, ColourTable rgb, bool portable)
      : height_(source_height),
        observer_(checked(settings, source_height), source_height, {grey.data(), rgb.data()}) {
    if (portable) observer_.use_portable();
  }

  void observe(Picture older, Picture newer, Bytes out) {
    check_picture(older);
    check_picture(newer);
    if (static_cast<int>(out.size()) != observer_.frame_bytes())
      refuse("out has " + std::to_string(out.size()) + " bytes but a frame has " +
             std::to_string(observer_.frame_bytes()) + ".");
    nb::gil_scoped_release release;
    observer_.observe(older.data(), newer.data(), out.data(), scratch_);
  }

 private:
  static EnvSettings checked(nb::dict given, int source_height) {
    const EnvSettings settings = settings_from(given);
    if (const char* reason = Observer::refusal(settings, source_height)) refuse(reason);
    return settings;
  }

  void check_picture(const Picture& picture) const {
    if (static_cast<int>(picture.shape(0)) != height_ || picture.shape(1) != kScreenWidth)
      refuse("a picture must have shape (" + std::to_string(height_) + ", 160).");
  }

  int height_;
  Observer observer_;
  Observer::Scratch scratch_;
};

void bind_observer(nb::module_& m) {
  nb::class_<PyObserver>(m, "Observer")
      .def(nb::init<nb::dict, int, Table, ColourTable, bool>(), nb::arg("settings"),
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
