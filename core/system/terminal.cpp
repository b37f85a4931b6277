#include "core/system/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

#include "core/error.h"
#include "core/printed.h"

namespace isonorm {
namespace {

constexpr double kRewrite = 0.1;  // seconds between two versions of a live line
constexpr int kPlainLines = 20;   // lines per task if the output is no terminal

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Text that a terminal or pipe has not taken yet, by file.
struct Waiting {
  std::mutex mutex;
  std::map<std::FILE*, std::string> words;
};

Waiting& waiting() {
  static Waiting all;
  return all;
}

// Writes the waiting text of a file. Returns true if no text is left and the file has room for more.
//
// poll() tells whether there is room. O_NONBLOCK is not possible: it would apply to the shell, too, which shares the
// open file. A terminal with room takes at least 256 bytes in one piece. The driver splits its input at control
// characters ("\n" becomes two), so each of these is a piece by itself.
bool takes(std::FILE* file, std::string& words) {
  constexpr size_t most = 256;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
  pollfd room = {fileno(file), POLLOUT, 0};
  while (poll(&room, 1, 0) == 1) {
    if (words.empty()) return true;
    std::fflush(file);
    const auto end = words.begin() + static_cast<ptrdiff_t>(std::min(most, words.size()));
    const auto piece_end = std::find_if(words.begin() + 1, is_control(words[0]) ? words.begin() + 1 : end, is_control);
    const ssize_t taken = ::write(room.fd, words.data(), static_cast<size_t>(piece_end - words.begin()));
    if (taken < 0 && errno == EINTR) continue;
    // If nobody is there to read the output, it is dropped.
    words.erase(0, taken > 0 ? static_cast<size_t>(taken) : words.size());
  }
  return false;
}

bool is_same(std::FILE* a, std::FILE* b) {
  struct stat one {
  }, other{};
  return a == b || (fstat(fileno(a), &one) == 0 && fstat(fileno(b), &other) == 0 && one.st_dev == other.st_dev &&
                    one.st_ino == other.st_ino);
}

// Columns of a terminal; 0 for anything else.
size_t columns(std::FILE* file) {
  winsize size{};
  return ioctl(fileno(file), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

bool is_terminal(std::FILE* file) {
  const char* term = std::getenv("TERM");
  return isatty(fileno(file)) != 0 && !(term && std::string_view(term) == "dumb");
}

bool wants_color(std::FILE* file) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(file) && !(no_color && *no_color);
}

size_t line_width(std::FILE* file) {
  if (const size_t width = columns(file); width > 0) return width;
  const char* given = std::getenv("COLUMNS");
  size_t width = 0;
  return given && read_number(given, width) ? width : 0;
}

NobodyReads::NobodyReads() : Error(ErrorKind::io, "standard output: nobody reads it any longer", __FILE__, __LINE__) {}

namespace {
void check_printed(bool good) {
  if (!good && errno == EPIPE) throw NobodyReads();
  check_io(good, "standard output cannot be written: ", std::strerror(errno));
}
}  // namespace

void print(std::string_view s) {
  write_waiting_lines(stdout);
  check_printed(std::fwrite(s.data(), 1, s.size(), stdout) == s.size());
}

void flush_output() {
  write_waiting_lines(stdout);
  check_printed(std::fflush(stdout) == 0 && std::ferror(stdout) == 0);
}

void print_line(const std::string& line) { print(printable(line) + "\n"); }

void print_text(std::string_view result) { isatty(STDOUT_FILENO) ? print(printable_lines(result)) : print(result); }

// While it waits, other threads may write.
void write_waiting_lines(std::FILE* file) noexcept {
  Waiting& all = waiting();
  std::unique_lock lock(all.mutex);
  for (auto& [from, words] : all.words)
    while (!words.empty() && is_same(from, file) && !takes(from, words) && !words.empty()) {
      lock.unlock();
      pollfd room = {fileno(from), POLLOUT, 0};
      poll(&room, 1, -1);
      lock.lock();
    }
}

std::string duration_text(double seconds) {
  const long s = std::lround(std::min(std::max(0.0, seconds), 1e9));  // 0 for NaN
  if (s >= 3600) return printed("%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
  return printed("%d:%02d", s / 60, s % 60);
}

namespace {
std::string& waiting_for(std::FILE* file) {
  const std::lock_guard lock(waiting().mutex);
  return waiting().words[file];
}
}  // namespace

StatusLine::StatusLine(std::FILE* file, bool quiet)
    : file_(file), quiet_(quiet), live_(is_terminal(file)), waiting_(waiting_for(file)) {}

// Drops the waiting text of files other than stdout and stderr, which may be closed before the program ends.
StatusLine::~StatusLine() {
  clear();
  if (file_ == stdout || file_ == stderr) return;
  const std::lock_guard lock(waiting().mutex);
  waiting_.clear();
}

bool StatusLine::due(int step, int steps) {
  if (quiet_) return false;
  if (!live_) return step == 1 || step == steps || step % std::max(1, steps / kPlainLines) == 0;
  if (step != 1 && step != steps && now() - last_ < kRewrite) return false;
  last_ = now();
  return true;
}

void StatusLine::update(const std::string& line) {
  if (quiet_) return;
  if (const std::lock_guard lock(waiting().mutex); !takes(file_, waiting_)) return;
  if (!live_) return write(printable(line) + '\n');
  const size_t given = columns(file_), width = given > 0 ? given : 80;
  std::string shown = printable(line);  // without its last fields if the terminal is too narrow
  while (shown.size() >= width && shown.rfind("  ") != std::string::npos) shown.erase(shown.rfind("  "));
  shown_ = whole_characters(shown, width - 1);
  write(text('\r', shown_, "\x1b[K"));
}

void StatusLine::print(const std::string& line) {
  if (quiet_) return;
  const std::string below = shown_;
  clear();
  write(printable(line) + '\n' + below);
  shown_ = below;
}

void StatusLine::clear() {
  if (!shown_.empty()) write("\r\x1b[K");
  shown_.clear();
}

void StatusLine::keep() {
  if (!shown_.empty()) write("\n");
  shown_.clear();
}

void StatusLine::write(std::string_view words) {
  constexpr size_t most = size_t{64} << 10;
  const std::lock_guard lock(waiting().mutex);
  waiting_ += words;
  if (takes(file_, waiting_) || waiting_.size() <= most) return;
  const size_t line_end = waiting_.find('\n', waiting_.size() - most);
  waiting_.erase(0, line_end == waiting_.npos ? waiting_.size() : line_end + 1);
}

}  // namespace isonorm
