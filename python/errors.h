// Internal: errors of the library as exceptions of Python with the same line: ValueError for bad input, OSError where the system
// refused, MemoryError.
#pragma once

namespace isonorm::python {

// From now on functions of the module raise them.
void translate_errors();

}  // namespace isonorm::python
