#include "io/data/prefetch.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "core/system/home_process.h"
#include "core/system/start_thread.h"

namespace isonorm::data {

struct PrefetchThread::State {
  struct Result {
    Item item;
    std::exception_ptr error;
  };

  std::function<Item(int64_t)> make;
  const int ahead;
  int64_t position = 0;
  std::mutex mutex = {};
  std::condition_variable changed = {};
  std::deque<Result> ready = {};
  bool stopping = false;
  std::thread thread = {};
  HomeProcess home = {};  // the process that has the thread

  Item next() {
    if (ahead == 0) {
      Item item = make(position);
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
    return std::move(result.item);
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

void PrefetchThread::End::operator()(State* state) const {
  if (state->thread.joinable() && state->home.is_elsewhere()) return;  // leaks the state
  state->stop();
  delete state;
}

PrefetchThread::PrefetchThread(std::function<Item(int64_t)> make, int ahead)
    : state_(new State{.make = std::move(make), .ahead = ahead}) {
  check(ahead >= 0, "prefetch: ", ahead, " items ahead, expected at least 0");
}

PrefetchThread::Item PrefetchThread::next() { return state_->next(); }
void PrefetchThread::seek(int64_t position) {
  state_->stop();
  state_->position = position;
}
int64_t PrefetchThread::position() const { return state_->position; }

}  // namespace isonorm::data
