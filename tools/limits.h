// Limits under which the program cannot even begin.
#pragma once

namespace isonorm::tools {

// Until this is called a start that takes seconds of the processor's time ends with exit code 70: a library that gets
// no memory asks for it without end. Call it first in main().
void libraries_have_started();

}  // namespace isonorm::tools
