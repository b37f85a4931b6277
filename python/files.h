// Internal: the program's commands for files and proofs, as Python functions.
#pragma once

#include <nanobind/nanobind.h>

namespace isonorm::python {

// Adds convert(), verify() and prove(). python/isonorm/_files.py turns their results into objects.
void bind_files(nanobind::module_& m);

}  // namespace isonorm::python
