// Output for people: colours, and one line that is rewritten while work continues. Pipes and files get no escape
// sequences.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "core/system/foreign_text.h"

namespace isonorm {

// True for a terminal that understands escape sequences (TERM is not "dumb").
bool is_terminal(std::FILE* file);
// True for such a terminal if NO_COLOR is unset or empty (https://no-color.org).
bool wants_color(std::FILE* file);

// The width for lines of text: a terminal's width, otherwise COLUMNS of the environment if it is a number >= 1,
// otherwise 0, no limit. A table in a file or pipe is therefore not cut.
size_t line_width(std::FILE* file);

// The reader of the pipe at standard output has closed it.
struct NobodyReads : Error {
  NobodyReads();
};

// Writes to standard output. Its buffer is flushed when it is full or flush_output() is called. Both throw NobodyReads,
// or Error (io) if writing fails for another reason.
void print(std::string_view s);
void flush_output();
// print() for one line: as printable() shows it, with a newline.
void print_line(const std::string& line);

// print() for a result. A file or pipe gets every byte; a terminal gets its lines as printable() shows them.
void print_text(std::string_view result);

// Writes the lines of status lines (below) that wait for the terminal or pipe of `file`, and blocks until it has taken
// them. All functions above that print or flush call it for standard output. Call it before you print in another way.
// Thread-safe.
void write_waiting_lines(std::FILE* file) noexcept;

// "1:23", "2:03:04".
std::string duration_text(double seconds);

// Shows the progress of a long task. A terminal gets one line, rewritten at most ten times a second. A file or pipe
// gets a plain line now and then.
//
// It never blocks. If a terminal takes no output (Ctrl-S, a connection that hangs) or a pipe is full, live lines are
// dropped. Permanent lines are kept, at most the last 64 KiB, and written when the terminal takes output again. A
// result or a message that waits for the same terminal comes after them: see write_waiting_lines(). Lines for stdout or
// stderr are also kept after the status line's end, until the program ends.
class StatusLine {
 public:
  explicit StatusLine(std::FILE* file, bool quiet = false);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // True if update() would show something for this step: ask before composing a line. Steps count from 1; the last is
  // always shown.
  bool due(int step, int steps);
  void update(const std::string& line);  // two spaces separate fields; fields that do not fit are left out
  // A line that stays, unless `quiet`. On a terminal it appears above the live line.
  void print(const std::string& line);
  // Removes the live line, before something else is printed.
  void clear();
  // Leaves the live line as it is; the next one begins below it.
  void keep();

 private:
  void write(std::string_view words);  // keeps output in waiting_ until the terminal takes it

  std::FILE* file_;
  bool quiet_, live_;
  std::string& waiting_;  // not yet taken by the terminal or pipe
  std::string shown_;     // the live line; empty if there is none
  double last_ = -1;      // seconds
};

}  // namespace isonorm
