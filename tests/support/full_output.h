// A pipe and a terminal that are full: a write blocks until somebody reads.
#pragma once

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "core/error.h"

namespace isonorm::test {

struct FullOutput {
  int reader = -1, writer = -1;

  explicit FullOutput(bool terminal) {
    int ends[2];
    const bool made = terminal ? openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr) == 0 : pipe(ends) == 0;
    check_io(made, "there is no ", terminal ? "terminal" : "pipe");
    reader = ends[0], writer = ends[1];
    for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
    fill();
  }
  ~FullOutput() { close(reader), close(writer); }
  FullOutput(const FullOutput&) = delete;
  FullOutput& operator=(const FullOutput&) = delete;

  // The kernel keeps moving a terminal's bytes between buffers for a while, so there may be room again.
  void fill() {
    fcntl(writer, F_SETFL, O_WRONLY | O_NONBLOCK);
    for (int idle = 0; idle < 3; ++idle) {
      while (write(writer, "x", 1) == 1) idle = 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    fcntl(writer, F_SETFL, O_WRONLY);
  }

  // Reads all bytes until none has arrived for 0.1 s.
  std::string drain() {
    fcntl(reader, F_SETFL, O_RDONLY | O_NONBLOCK);
    std::string all;
    for (int idle = 0; idle < 5; ++idle) {
      char bytes[4096];
      for (ssize_t n; (n = read(reader, bytes, sizeof bytes)) > 0; idle = 0) all.append(bytes, static_cast<size_t>(n));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    fcntl(reader, F_SETFL, O_RDONLY);
    return all;
  }

  // Reads at most `bytes`.
  void take(size_t bytes) {
    std::string some(bytes, ' ');
    [[maybe_unused]] const ssize_t n = read(reader, some.data(), bytes);
  }
};

}  // namespace isonorm::test
