// module.cpp -- the Python module scanline._native: what each file of this folder binds.
#include <nanobind/nanobind.h>

namespace scanline {
void bind_observer(nanobind::module_& m);
}

NB_MODULE(_native, m) { scanline::bind_observer(m); }
