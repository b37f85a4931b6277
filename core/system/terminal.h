// What goes to a person: colours, and one line that is rewritten while work goes on. Into a pipe or file no escape is
// written.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "core/system/foreign_text.h"

namespace isonorm {

// A terminal that understands escapes (TERM is not "dumb").
bool is_terminal(std::FILE* file);
// Such a terminal, and NO_COLOR is not set to anything (https://no-color.org).
bool wants_color(std::FILE* file);

// How wide a line of text may be: a terminal's width; elsewhere COLUMNS of the environment, where it is a number from 1
// on; else 0, no limit. So a table in a file or pipe is as wide as it is.
size_t line_width(std::FILE* file);

// Nobody reads standard output any longer: the reader of its pipe has closed it.
struct NobodyReads : Error {
  NobodyReads();
};

// Writes to standard output, whose buffer is flushed when it is full or flush_output() is called. Throws NobodyReads, or Error (io)
// if writing fails for another reason.
void print(std::string_view s);
void flush_output();
// The same for a line as printable() shows it, and a newline.
void print_line(const std::string& line);

// The same for a result. A file or pipe gets every byte; a terminal gets its lines as printable() shows them.
void print_text(std::string_view result);

// Writes the lines of status lines (below) that wait for the terminal or pipe of `file`, and waits until it has taken
// them. All functions above that print or flush call it for standard output. Call it before you print otherwise.
// Thread-safe.
void write_waiting_lines(std::FILE* file) noexcept;

// "1:23", "2:03:04".
std::string duration_text(double seconds);

// Shows the progress of a long task. A terminal gets one line, rewritten at most ten times a second. A file or pipe
// gets a plain line now and then.
//
// It never waits. If a terminal takes no output (Ctrl-S, a connection that hangs) or a pipe is full, live lines are
// dropped. Permanent lines are kept, at most the last 64 KiB, and written when the terminal takes output again. A result
// or a message that waits for the same terminal comes after them: see write_waiting_lines(). Lines for stdout or stderr
// are also kept after the status line's end, until the program ends.
class StatusLine {
 public:
  explicit StatusLine(std::FILE* file, bool quiet = false);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Whether update() would show something for this step: ask before composing a line. Steps count from 1; the last is
  // always shown.
  bool due(int step, int steps);
  void update(const std::string& line);  // fields are separated by two spaces; those that do not fit are left out
  // A line that stays, unless it is quiet; on a terminal it appears above the live line.
  void print(const std::string& line);
  // Takes the live line away, before something else is printed.
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
