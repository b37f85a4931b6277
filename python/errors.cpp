#include "python/errors.h"

#include <nanobind/nanobind.h>

#include <filesystem>

#include "core/error.h"
#include "core/system/failures.h"

namespace isonorm::python {
namespace {

PyObject* exception_of(ErrorKind kind) {
  return kind == ErrorKind::io ? PyExc_OSError : kind == ErrorKind::memory ? PyExc_MemoryError : PyExc_ValueError;
}

}  // namespace

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

}  // namespace isonorm::python
