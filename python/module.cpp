// The extension module isonorm._isonorm. Users see python/isonorm/__init__.py.
#include <nanobind/nanobind.h>

#include "python/errors.h"
#include "python/files.h"
#include "python/outside.h"
#include "python/tensor.h"

NB_MODULE(_isonorm, m) {
  m.attr("__version__") = ISONORM_VERSION;
  isonorm::python::translate_errors();
  isonorm::python::bind_tensor(m);
  isonorm::python::bind_comparison(m);
  isonorm::python::bind_files(m);
}
