// What ends a program from outside: Ctrl-C (SIGINT), SIGTERM, a terminal that is closed (SIGHUP, unless nohup has it ignored),
// CPU time that is used up (SIGXCPU), and a reader of what it prints that is gone (SIGPIPE).
#pragma once

namespace isonorm::tools {

// From now on these signals remove what is half written (io/unfinished.h) before they end the process. Signals that are ignored
// stay so.
void end_clean_on_signals();

// From now on they only set a flag, which the work asks for between two steps. A second SIGINT, SIGTERM or SIGHUP, at least
// 0.2 s after the first, ends the process at once, as above.
void catch_interrupt();
// May be asked from any thread.
bool interrupted();

}  // namespace isonorm::tools
