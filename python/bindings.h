// Internal: the parts of the extension module isonorm._isonorm.
#pragma once

#include <nanobind/nanobind.h>

namespace isonorm::python {

void bind_tensor(nanobind::module_& m);      // the class Tensor and the function tensor()
void bind_comparison(nanobind::module_& m);  // Comparison, Points and train_together()
void bind_files(nanobind::module_& m);       // convert(), verify() and prove(), whose results are JSON

}  // namespace isonorm::python
