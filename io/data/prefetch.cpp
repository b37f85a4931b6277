#include "io/data/prefetch.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "core/formulas/philox.h"
#include "core/memory/upload.h"
#include "core/random.h"
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

namespace {

constexpr uint64_t kDraws = 0x10ade5;  // separates these draws from samplers and sets with the same seed

}  // namespace

// A batch on its way to a device.
struct Arrivals::Travelling {
  Batch batch;
  std::vector<std::unique_ptr<Upload>> uploads;

  Travelling(Batch made, Device device) : batch(std::move(made)) {
    for (Tensor* x : batch.tensors) uploads.push_back(upload(*x, device));
  }
  Batch arrived() && {
    for (size_t i = 0; i < uploads.size(); ++i) *batch.tensors[i] = uploads[i]->take();
    return std::move(batch);
  }
};

struct Arrivals::Coming : Prefetch<Travelling> {
  using Prefetch::Prefetch;
};

Arrivals::Arrivals(std::function<Batch(int64_t)> make, uint64_t seed, int ahead, Device device)
    : make_([make = std::move(make), seed](int64_t step) {
        const DrawsFrom draws({philox(seed, static_cast<uint64_t>(step), kDraws).wide(0), 0});
        return make(step);
      }),
      device_(device),
      coming_(std::make_unique<Coming>([make = make_, device](int64_t step) { return Travelling(make(step), device); },
                                       ahead)) {}
Arrivals::~Arrivals() = default;

Arrivals::Batch Arrivals::batch(int64_t step) const { return Travelling(make_(step), device_).arrived(); }
Arrivals::Batch Arrivals::next() { return coming_->next().arrived(); }
void Arrivals::seek(int64_t step) { coming_->seek(step); }
int64_t Arrivals::step() const { return coming_->position(); }

}  // namespace isonorm::data
