// The extension module isonorm._isonorm. Users see python/isonorm/__init__.py.
#include <nanobind/nanobind.h>

#include <filesystem>

#include "core/error.h"
#include "core/system/failures.h"
#include "python/bindings.h"

namespace isonorm::python {
namespace {

PyObject* exception_of(ErrorKind kind) {
  return kind == ErrorKind::io ? PyExc_OSError : kind == ErrorKind::memory ? PyExc_MemoryError : PyExc_ValueError;
}

// Raises the library's errors as Python exceptions with the same line: ValueError for bad input and options, OSError if
// the system refused, MemoryError, ArithmeticError if numbers are no longer finite.
void translate_errors() {
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& e) {
      PyErr_SetString(exception_of(e.kind()), e.what());
    } catch (const UsageError& e) {
      PyErr_SetString(PyExc_ValueError, e.what());
    } catch (const Diverged& e) {
      PyErr_SetString(PyExc_ArithmeticError, e.what());
    } catch (const std::filesystem::filesystem_error& e) {
      PyErr_SetString(PyExc_OSError, e.what());
    }
  });
}

}  // namespace
}  // namespace isonorm::python

NB_MODULE(_isonorm, m) {
  m.attr("__version__") = ISONORM_VERSION;
  isonorm::python::translate_errors();
  isonorm::python::bind_tensor(m);
  isonorm::python::bind_comparison(m);
  isonorm::python::bind_files(m);
}
