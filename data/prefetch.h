// A thread that prepares numbered items ahead of their use. Invariant: at most `ahead` items wait, and they come out in
// order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/system/home_process.h"
#include "core/system/start_thread.h"

namespace isonorm::data {

template <class T> class Prefetch {
 public:
  // Items are make(0), make(1), ...; the thread starts with the first next(). ahead = 0: no thread, next() calls make
  // itself.
  Prefetch(std::function<T(int64_t)> make, int ahead) : state_(new State{.make = std::move(make), .ahead = ahead}) {
    check(ahead >= 0, "prefetch: ", ahead, " items ahead, expected at least 0");
  }

  // The next item. Rethrows what make() threw for it; the call after that tries the same item again. Throws (invalid) in a child of fork()
  // if the thread has started in the parent.
  T next() { return state_->next(); }
  // The next call of next() gives item `position`; waiting items are thrown away. Throws as next() in a child.
  void seek(int64_t position) { state_->seek(position); }
  int64_t position() const { return state_->position; }  // of the item that next() gives

 private:
  struct Result {
    std::optional<T> item;
    std::exception_ptr error;
  };

  struct State {
    std::function<T(int64_t)> make;
    const int ahead;
    int64_t position = 0;
    std::mutex mutex = {};
    std::condition_variable changed = {};
    std::deque<Result> ready = {};
    bool stopping = false;
    std::thread thread = {};
    HomeProcess home = {};  // of the thread

    T next() {
      if (ahead == 0) {
        T item = make(position);
        ++position;
        return item;
      }
      start();
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !ready.empty(); });
      Result result = std::move(ready.front());
      ready.pop_front();
      lock.unlock();
      changed.notify_all();
      if (result.error) {
        stop();
        std::rethrow_exception(result.error);
      }
      ++position;
      return std::move(*result.item);
    }

    void seek(int64_t to) {
      stop();
      position = to;
    }

    void start() {
      if (thread.joinable()) return home.check_here("prefetch");
      home = HomeProcess();
      thread = start_thread([this, from = position] { run(from); });
    }

    void run(int64_t item) {
      for (;; ++item) {
        Result result;
        try {
          result.item = make(item);
        } catch (...) {
          result.error = std::current_exception();
        }
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stopping || static_cast<int>(ready.size()) < ahead; });
        if (stopping) return;
        const bool failed = result.error != nullptr;
        ready.push_back(std::move(result));
        lock.unlock();
        changed.notify_all();
        if (failed) return;
      }
    }

    void stop() {
      if (thread.joinable()) {
        home.check_here("prefetch");
        {
          std::lock_guard lock(mutex);
          stopping = true;
        }
        changed.notify_all();
        thread.join();
      }
      stopping = false;
      ready.clear();
    }
  };

  struct End {
    void operator()(State* state) const {
      if (state->thread.joinable() && state->home.is_elsewhere()) return;  // it leaks
      state->stop();
      delete state;
    }
  };
  std::unique_ptr<State, End> state_;
};

}  // namespace isonorm::data
