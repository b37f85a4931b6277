// How the program ends: every failure is one line on stderr and an exit code of its own, also where memory is
// out, a library gives up or an exception has nowhere to go.
#pragma once

#include <stdexcept>
#include <string>

namespace isonorm::tools {

// kUndecided: there was too little to see for either verdict (equivalence/lockstep/result.h).
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

// What is wrong with a command line beyond what the parser sees.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Weights, a loss or logits that are NaN or infinite.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Call it first in main(). Descriptors 0 to 2 that are closed are taken, so that no file which is opened later gets
// what is meant for a terminal. Signals end the process as end_clean_on_signals() says. A file that grows beyond a limit of the system (ulimit -f) is an error of its write. From
// then on std::terminate, and a library that calls exit(), end the program with a line and an exit code: OpenBLAS does
// that where it gets no memory.
void guard_the_end();

// Prints "who: what" on standard error as a line of at most 2000 bytes, as printable() shows it.
void tell(const std::string& who, const std::string& what);
// The same, and returns the code.
int fail(const std::string& who, const std::string& what, int code);
// The same for the exception that is being handled. Takes no memory where that is what ran out.
int fail(const std::string& who) noexcept;

// Ends work that asked whether to stop.
struct Interrupted {};

// What main() returns: without it an end counts as a library's.
int regular_end(int code);

}  // namespace isonorm::tools
