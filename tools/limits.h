// Resource limits under which the program cannot start.
#pragma once

namespace isonorm::tools {

// Call it first in main(). Until then, a start that takes seconds of CPU time ends with exit code 70: a library that
// gets no memory asks for it forever.
void libraries_have_started();

}  // namespace isonorm::tools
