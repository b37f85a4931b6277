// The progress line: it never blocks on a terminal or a pipe. Its speed.
#include "core/system/terminal.h"

#include <termios.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "core/system/stopwatch.h"
#include "tests/support/catch.h"
#include "tests/support/child.h"
#include "tests/support/full_output.h"

using namespace isonorm;
using test::FullOutput;

namespace {

// Runs body() in its own process and returns true if it ends. The limit of 300 s allows for very busy machines.
template <class F> bool comes_to_its_end(F body) {
  return test::status_of_child([&] {
           alarm(300);
           setenv("TERM", "xterm", 1);
           body();
         }) == 0;
}

// Calls every output function of a status line.
void show_all(StatusLine& line, const std::string& name) {
  line.update(name + " is the live line, with some text that makes it longer");
  line.print(name + " stays");
  line.update(name + " is live again");
  line.keep();
  line.clear();
}

}  // namespace

TEST_CASE("a status line does not wait for a terminal or a pipe that takes no output; lines that stay come later") {
  for (const bool terminal : {true, false}) {
    CAPTURE(terminal);
    CHECK(comes_to_its_end([&] {
      FullOutput output(terminal);
      StatusLine line(fdopen(output.writer, "w"));
      for (int i = 0; i < 3; ++i) show_all(line, "early");
      output.drain();
      line.update("late");
      const std::string shown = output.drain();
      if (shown.find("early stays") == shown.npos || shown.find("late") == shown.npos) _exit(1);
      if (shown.find("early is") != shown.npos) _exit(2);
    }));
  }
}

TEST_CASE("a status line does not wait for a terminal that is stopped by Ctrl-S") {
  CHECK(comes_to_its_end([] {
    FullOutput output(true);
    output.drain();
    StatusLine line(fdopen(output.writer, "w"));
    line.update("before");
    if (output.drain().find("before") == std::string::npos) _exit(1);
    tcflow(output.writer, TCOOFF);
    show_all(line, "meanwhile");
    if (!output.drain().empty()) _exit(2);
    tcflow(output.writer, TCOON);
    line.update("after");
    if (output.drain().find("meanwhile stays\r\n") == std::string::npos) _exit(3);
  }));
}

TEST_CASE("a status line does not wait for a terminal that has room for a part of the line") {
  CHECK(comes_to_its_end([] {
    for (size_t room = 1; room < 1200; room += room < 20 ? 1 : 37) {
      FullOutput output(true);
      StatusLine line(fdopen(output.writer, "w"));
      output.take(room);
      for (int i = 0; i < 30; ++i) line.print(std::string(70 + static_cast<size_t>(i) * 10, 'a'));
    }
  }));
}

TEST_CASE("lines that wait for a terminal come before a result on the same terminal, which waits, too") {
  for (const bool ended : {false, true}) {
    CAPTURE(ended);
    CHECK(comes_to_its_end([&] {
      FullOutput output(true);
      output.drain();
      dup2(output.writer, STDOUT_FILENO), dup2(output.writer, STDERR_FILENO);
      tcflow(output.writer, TCOOFF);
      std::optional<StatusLine> line(std::in_place, stderr);
      for (const char* name : {"first", "second", "third"}) show_all(*line, name);
      if (ended) line.reset();
      if (!output.drain().empty()) _exit(1);
      std::thread starter([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        tcflow(output.writer, TCOON);
      });
      print_line("the result");
      flush_output();
      starter.join();
      const std::string shown = output.drain();
      size_t at = 0;
      for (const char* words : {"first stays\r\n", "second stays\r\n", "third stays\r\n", "the result\r\n"}) {
        at = shown.find(words, at);
        if (at == shown.npos) _exit(2);
      }
    }));
  }
}

TEST_CASE("a result does not wait for lines on another terminal; a message there writes them first") {
  CHECK(comes_to_its_end([] {
    FullOutput output(true), result(false);
    output.drain(), result.drain();
    dup2(result.writer, STDOUT_FILENO), dup2(output.writer, STDERR_FILENO);
    tcflow(output.writer, TCOOFF);
    show_all(*std::make_unique<StatusLine>(stderr), "early");
    print_line("the result");
    flush_output();
    if (!result.drain().ends_with("the result\n")) _exit(1);  // after Catch's own output
    if (!output.drain().empty()) _exit(2);
    tcflow(output.writer, TCOON);
    write_waiting_lines(stderr);
    if (output.drain().find("early stays\r\n") == std::string::npos) _exit(3);
  }));
}

TEST_CASE("a status line keeps the last 64 KiB of the lines that stay") {
  CHECK(comes_to_its_end([] {
    FullOutput output(false);
    StatusLine line(fdopen(output.writer, "w"));
    const std::string rest(90, '.');
    for (int i = 0; i < 2000; ++i) line.print(text("line ", i, ' ', rest));
    output.drain();
    std::string shown;
    for (int i = 0; i < 3; ++i) line.print("end"), shown += output.drain();  // the pipe holds 64 KiB, too
    if (!shown.starts_with("line ") || shown.find("line 1999 ") == shown.npos || !shown.ends_with("end\nend\nend\n"))
      _exit(1);
    if (shown.find("line 1000 ") != shown.npos || shown.size() > (64 << 10) + 12) _exit(2);
  }));
}

TEST_CASE("a moving rate: the speed of the last half minute, on a clock of the test's own") {
  MovingRate rate(0, 100);  // a task that was continued after step 100
  CHECK(rate.per_second() == 0);
  double now = 0, steps = 100;
  const auto run = [&](int count, double seconds) {
    for (int i = 0; i < count; ++i) rate.add(now += seconds, steps += 1);
  };
  run(1000, 0.125);
  CHECK(rate.per_second() == 8);
  CHECK(rate.seconds_left(steps + 80) == 10);

  now += 3600;  // stopped by SIGSTOP for an hour; the mean over all steps would be 0.3 a second
  run(1, 0.125);
  run(2, 0.125);
  CHECK(rate.per_second() == 8);

  run(100, 0.5);  // slower, for 50 s: the earlier speed is forgotten
  CHECK(rate.per_second() == 2);
  run(5, 100);  // steps of more than half a minute: only the last one counts
  CHECK(rate.per_second() == 0.01);
}
