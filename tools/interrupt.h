// What ends a program from outside, as a flag that it asks for between two steps: Ctrl-C (SIGINT), SIGTERM, a terminal
// that is closed (SIGHUP, unless nohup has it ignored), CPU time that is used up (SIGXCPU), and a reader of what it
// prints that is gone (SIGPIPE).
#pragma once

namespace isonorm::tools {

// From now on these set a flag. A second SIGINT, SIGTERM or SIGHUP ends the process at once.
void catch_interrupt();
// May be asked from any thread.
bool interrupted();

}  // namespace isonorm::tools
