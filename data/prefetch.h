// A thread that prepares numbered items ahead of their use. Invariant: at most `ahead` items wait, and they come out in
// order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.h"

namespace isonorm::data {

template <class T> class Prefetch {
 public:
  // Items are make(0), make(1), ...; the thread starts with the first next(). ahead = 0: no thread, next() calls make
  // itself.
  Prefetch(std::function<T(int64_t)> make, int ahead) : make_(std::move(make)), ahead_(ahead) {
    check(ahead >= 0, "prefetch: ", ahead, " items ahead, expected at least 0");
  }
  ~Prefetch() { stop(); }
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // The next item. Rethrows what make() threw for it; the call after that tries the same item again.
  T next() {
    if (ahead_ == 0) {
      T item = make_(position_);
      ++position_;
      return item;
    }
    if (!thread_.joinable()) thread_ = std::thread([this, from = position_] { run(from); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty(); });
    Result result = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    if (result.error) {
      stop();
      std::rethrow_exception(result.error);
    }
    ++position_;
    return std::move(*result.item);
  }

  // next() goes on with item `position`; what waits is thrown away.
  void seek(int64_t position) {
    stop();
    position_ = position;
  }
  int64_t position() const { return position_; }  // of the item that next() gives

 private:
  struct Result {
    std::optional<T> item;
    std::exception_ptr error;
  };

  void run(int64_t item) {
    for (;; ++item) {
      Result result;
      try {
        result.item = make_(item);
      } catch (...) {
        result.error = std::current_exception();
      }
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || static_cast<int>(ready_.size()) < ahead_; });
      if (stopping_) return;
      const bool failed = result.error != nullptr;
      ready_.push_back(std::move(result));
      lock.unlock();
      changed_.notify_all();
      if (failed) return;
    }
  }

  void stop() {
    if (thread_.joinable()) {
      {
        std::lock_guard lock(mutex_);
        stopping_ = true;
      }
      changed_.notify_all();
      thread_.join();
    }
    stopping_ = false;
    ready_.clear();
  }

  std::function<T(int64_t)> make_;
  int ahead_;
  int64_t position_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Result> ready_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace isonorm::data
