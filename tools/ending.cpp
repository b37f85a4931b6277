#include "tools/ending.h"

#include <fcntl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "core/error.h"
#include "core/system/terminal.h"
#include "io/unfinished.h"
#include "tools/interrupt.h"

namespace isonorm::tools {
namespace {

constexpr size_t kLongestMessage = 2000;  // bytes: room for a sentence and two paths

bool regular = false;

// Reports the current exception and returns its code. Throws std::bad_alloc if there is no memory for the message.
int explained(const std::string& who, const std::string& rank, const char* more) {
  const auto told = [&](const std::string& what, int code) { return fail(who, rank + what, code); };
  try {
    throw;
  } catch (const UsageError& e) {
    return told(text(e.what(), "; see ", who, " --help"), kUsage);
  } catch (const NobodyReads&) {
    return kInterrupted;  // the reader has left, like head(1): not a failure
  } catch (const Diverged& e) {
    return told(e.what(), kDiverged);
  } catch (const Error& e) {
    const ErrorKind kind = e.kind();
    if (kind == ErrorKind::memory) return told(text(e.what(), more), kNoResources);
    return told(e.what(), kind == ErrorKind::io ? kIo : kInvalid);
  } catch (const std::filesystem::filesystem_error& e) {
    return told(e.what(), kIo);
  } catch (const std::system_error& e) {  // a thread that cannot be made
    return told(text("the system refuses: ", e.what()), kNoResources);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    return told(text("internal error: ", e.what()), kInternal);
  }
}

[[noreturn]] void terminate() noexcept {
  io::Unfinished::remove_all();
  std::_Exit(std::current_exception() ? fail("isonorm") : kInternal);
}

void library_gave_up() {
  if (regular) return;
  io::Unfinished::remove_all();
  std::fputs("isonorm: a library ended the program for lack of memory or threads\n", stderr);
  std::_Exit(kNoResources);
}

}  // namespace

void guard_the_end() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor)
    if (fcntl(descriptor, F_GETFD) < 0) open("/", O_PATH);  // so that every read and write fails
  std::signal(SIGXFSZ, SIG_IGN);                            // a file that is too large makes the write fail
  std::set_terminate(terminate);
  end_clean_on_signals();
  std::atexit(library_gave_up);
}

// Avoids "isonorm explain: explain: the row ...": if the message begins with the command, it is named once.
void tell(const std::string& who, const std::string& what) {
  const std::string own = who.substr(who.rfind(' ') + 1) + ": ";
  const std::string line = printable(what.starts_with(own) ? what.substr(own.size()) : what, kLongestMessage);
  write_waiting_lines(stderr);
  std::fputs(text(who, ": ", line, '\n').c_str(), stderr);
}

int fail(const std::string& who, const std::string& what, int code) {
  tell(who, what);
  return code;
}

int fail(const std::string& who, const std::string& rank, const char* more) noexcept {
  try {
    return explained(who, rank, more);
  } catch (...) {
    write_waiting_lines(stderr);
    for (const char* part : {who.c_str(), ": out of memory", more, "\n"}) std::fputs(part, stderr);
    return kNoResources;
  }
}

int regular_end(int code) {
  regular = true;
  return code;
}

}  // namespace isonorm::tools
