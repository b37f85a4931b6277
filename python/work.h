// Internal: long work for Python: without its lock, until it is done, Ctrl-C is pressed, or a callback of Python raises.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "tools/ending.h"

namespace isonorm::python {

class Work {
 public:
  // Runs f() without the lock; `stop`, which f asks from the same thread now and then, is stopped(). Then raises what was raised
  // there, KeyboardInterrupt too. f may end by throwing Interrupted.
  template <class F> auto run(F&& f) {
    try {
      auto result = [&] {
        const nanobind::gil_scoped_release unlocked;
        return f();
      }();
      tell();
      return result;
    } catch (const tools::Interrupted&) {
      tell();
      throw;
    }
  }

  // Whether to stop: Ctrl-C was pressed, or `callback` raised. callback(): with the lock.
  template <class F> bool stopped(F&& callback) {
    const nanobind::gil_scoped_acquire lock;
    try {
      if (!raised_) callback();
      if (!raised_ && PyErr_CheckSignals() != 0) throw nanobind::python_error();
    } catch (nanobind::python_error& e) {
      raised_.emplace(std::move(e));
    }
    return raised_.has_value();
  }
  bool stopped() {
    return stopped([] {});
  }

 private:
  // What is left of the work is of no interest then. A signal that came after the last question counts, too.
  void tell() {
    stopped();
    if (!raised_) return;
    nanobind::python_error raised = std::move(*raised_);
    throw raised;
  }

  std::optional<nanobind::python_error> raised_;
};

}  // namespace isonorm::python
