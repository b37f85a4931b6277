// Signals that end a program: Ctrl-C (SIGINT), SIGTERM, a closed terminal (SIGHUP, unless nohup ignores it), a limit of CPU
// time (SIGXCPU), a reader of standard output that is gone (SIGPIPE), and the notices that batch systems send before they end a
// job or let another one take its place (SIGUSR1 by Slurm's --signal=USR1 and Grid Engine, SIGUSR2 by LSF).
#pragma once

namespace isonorm::tools {

// From now on these signals remove unfinished files (io/unfinished.h) before they end the process. Ignored signals stay
// ignored.
void end_clean_on_signals();

// From now on these signals only set a flag, which the work reads between two steps. A second SIGINT, SIGTERM or SIGHUP, at least
// 0.2 s after the first, ends the process at once, as above. After the other signals the work has the time that the sender gives it.
void catch_interrupt();
// May be asked from any thread.
bool interrupted();

}  // namespace isonorm::tools
