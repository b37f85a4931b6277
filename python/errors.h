// Internal: errors of the library as exceptions of Python with the same line: ValueError for bad input and options, OSError
// where the system refused, MemoryError, ArithmeticError where numbers are no longer finite.
#pragma once

namespace isonorm::python {

// From now on functions of the module raise them.
void translate_errors();

}  // namespace isonorm::python
