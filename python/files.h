// Internal: what the program isonorm does with files and proofs, as functions of Python.
#pragma once

#include <nanobind/nanobind.h>

namespace isonorm::python {

// Adds convert(), verify() and prove(), of which python/isonorm/_files.py makes objects.
void bind_files(nanobind::module_& m);

}  // namespace isonorm::python
