// A thread that prepares numbered items ahead of their use. Invariant: at most `ahead` items wait, and they come out in
// order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace isonorm::data {

// Internal: Prefetch without the type of its items.
class PrefetchThread {
 public:
  using Item = std::shared_ptr<void>;

  PrefetchThread(std::function<Item(int64_t)> make, int ahead);

  Item next();
  void seek(int64_t position);
  int64_t position() const;

 private:
  struct State;
  struct End {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, End> state_;
};

template <class T> class Prefetch {
 public:
  // Items are make(0), make(1), ...; the thread starts with the first next(). ahead = 0: no thread, next() calls make
  // itself. Throws if `ahead` is negative.
  Prefetch(std::function<T(int64_t)> make, int ahead)
      : thread_([make = std::move(make)](int64_t i) { return std::make_shared<T>(make(i)); }, ahead) {}

  // The next item. Rethrows an exception of make() for it; the next call tries the same item again. Throws (invalid) in
  // a child of fork() if the thread has started in the parent.
  T next() { return std::move(*std::static_pointer_cast<T>(thread_.next())); }
  // The next call of next() gives item `position`; waiting items are thrown away. Throws as next() in a child.
  void seek(int64_t position) { thread_.seek(position); }
  int64_t position() const { return thread_.position(); }  // of the next item

 private:
  PrefetchThread thread_;
};

}  // namespace isonorm::data
