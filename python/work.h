// Internal: long work for Python. It runs without the GIL, until it is done, Ctrl-C is pressed, or a Python callback
// raises.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "core/system/failures.h"

namespace isonorm::python {

class Work {
 public:
  // Runs f() without the GIL. f must call stopped() now and then, from the same thread, and may end by throwing
  // Interrupted. Then raises the exception that was raised there, including KeyboardInterrupt.
  template <class F> auto run(F&& f) {
    try {
      auto result = [&] {
        const nanobind::gil_scoped_release unlocked;
        return f();
      }();
      tell();
      return result;
    } catch (const Interrupted&) {
      tell();
      throw;
    }
  }

  // True if the work should stop: Ctrl-C was pressed, or `callback` raised. Calls callback() with the GIL held.
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
  // Raises the noted exception; the result of the work is then not needed. Counts a signal after the last call of
  // stopped(), too.
  void tell() {
    stopped();
    if (!raised_) return;
    nanobind::python_error raised = std::move(*raised_);
    throw raised;
  }

  std::optional<nanobind::python_error> raised_;
};

}  // namespace isonorm::python
