// Signals that end a program: Ctrl-C (SIGINT), SIGTERM, a closed terminal (SIGHUP, unless nohup ignores it), a limit of
// CPU time (SIGXCPU), and a closed pipe of standard output (SIGPIPE). Batch systems send notices before they end a job
// or let another job take its place: SIGUSR1 (Slurm's --signal=USR1, Grid Engine) or SIGUSR2 (LSF).
#pragma once

namespace isonorm::tools {

// From now on these signals remove unfinished files (io/unfinished.h) before they end the process. Ignored signals stay
// ignored. SIGPIPE does not end the process: the write to the closed pipe fails, and print() throws NobodyReads
// (core/system/terminal.h).
void end_clean_on_signals();

// From now on these signals only set a flag, which the work checks between steps. A second SIGINT, SIGTERM or SIGHUP,
// at least 0.2 s after the first, ends the process at once, as above. After other signals the work may take as long as
// the sender allows.
void catch_interrupt();
// Thread-safe.
bool interrupted();

}  // namespace isonorm::tools
