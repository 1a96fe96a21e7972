// module.cpp -- the Python module scanline._native: what each file of this folder binds.
#include <nanobind/nanobind.h>

#include "fingerprints.h"

namespace scanline {
void bind_observer(nanobind::module_& m);
void bind_batch(nanobind::module_& m);
void bind_console(nanobind::module_& m);
void bind_device_game(nanobind::module_& m);
void bind_convolutions(nanobind::module_& m);
void bind_layers(nanobind::module_& m);
void bind_learners(nanobind::module_& m);
}  // namespace scanline

NB_MODULE(_native, m) {
  nanobind::set_leak_warnings(false);  // caches keep some objects until the process ends
  m.attr("CORE_FINGERPRINT") = scanline::CORE_FINGERPRINT;
  m.attr("LAYERS_FINGERPRINT") = scanline::LAYERS_FINGERPRINT;
  scanline::bind_observer(m);
  scanline::bind_batch(m);
  scanline::bind_console(m);
  scanline::bind_convolutions(m);
  scanline::bind_device_game(m);
  scanline::bind_layers(m);
  scanline::bind_learners(m);
}
