// Internal: raises the library's errors as Python exceptions with the same line: ValueError for bad input and options,
// OSError if the system refused, MemoryError, ArithmeticError if numbers are no longer finite.
#pragma once

namespace isonorm::python {

// Installs the translation for all functions of the module.
void translate_errors();

}  // namespace isonorm::python
