// How the program ends: every failure is one line on stderr and an exit code of its own, also if memory is out, a library
// gives up or an exception is not caught.
#pragma once

#include <string>

#include "core/system/failures.h"

namespace isonorm::tools {

// kUndecided: there was too little to see for either verdict (equivalence/judge/judgement.h).
enum ExitCode {
  kOk = 0,
  kNotEquivalent = 1,
  kUsage = 2,
  kInvalid = 3,
  kIo = 4,
  kUndecided = 5,
  kDiverged = 6,      // weights, a loss or logits are NaN or infinite
  kNoResources = 70,  // no memory or no threads
  kInternal = 71,
  kInterrupted = 130
};

// Call it first in main(). It takes the descriptors 0 to 2 that are closed, so that no file which is opened later receives
// output for a terminal. Signals end the process as end_clean_on_signals() says. If a file grows beyond a limit of the system
// (ulimit -f), its write fails. From then on std::terminate and a library that calls exit() end the program with a line and an
// exit code. (OpenBLAS calls exit() if it gets no memory.)
void guard_the_end();

// Prints "who: what" on standard error as a line of at most 2000 bytes, as printable() shows it.
void tell(const std::string& who, const std::string& what);
// The same, and returns the code.
int fail(const std::string& who, const std::string& what, int code);
// The same for the exception that is being handled, "who: rank what". If memory ran out, the line ends with `more`, and an
// exception that does not say so itself is told without an allocation. NobodyReads prints nothing and returns kInterrupted.
int fail(const std::string& who, const std::string& rank = "", const char* more = "") noexcept;

// main() returns regular_end(code). Any other end counts as an exit() in a library.
int regular_end(int code);

}  // namespace isonorm::tools
