// Ends the program: every failure prints one line on stderr and has its own exit code, even if memory runs out, a
// library exits or an exception is not caught.
#pragma once

#include <string>

#include "core/system/failures.h"

namespace isonorm::tools {

// kUndecided: rounding could explain as much as a mistake would show (equivalence/judge/judgement.h).
enum ExitCode {
  kOk = 0,
  kDifferent = 1,
  kUsage = 2,
  kInvalid = 3,
  kIo = 4,
  kUndecided = 5,
  kDiverged = 6,      // weights, a loss or logits are NaN or infinite
  kNoResources = 70,  // no memory or no threads
  kInternal = 71,
  kInterrupted = 130
};

// Call it first in main(). Opens the descriptors 0 to 2 if they are closed, so that no file opened later gets output
// meant for a terminal. Installs end_clean_on_signals(). Makes a write fail if a file exceeds a limit of the system
// (ulimit -f). Afterwards std::terminate, and a library that calls exit(), end the program with a line and an exit
// code. (OpenBLAS calls exit() if it gets no memory.)
void guard_the_end();

// Prints "who: what" on standard error as a line of at most 2000 bytes, escaped by printable().
void tell(const std::string& who, const std::string& what);
// Does the same and returns the code.
int fail(const std::string& who, const std::string& what, int code);
// Does the same for the current exception: "who: rank what". If memory ran out, the line ends with `more`, and no
// memory is allocated unless the exception has a message. If it is NobodyReads, prints nothing and returns
// kInterrupted.
int fail(const std::string& who, const std::string& rank = "", const char* more = "") noexcept;

// main() must end with `return regular_end(code)`. Without this call the program's end is reported as an exit() called
// by a library.
int regular_end(int code);

}  // namespace isonorm::tools
