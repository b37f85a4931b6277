#include "distributed/world.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/system/parallel.h"
#include "core/system/start_thread.h"
#include "distributed/transport.h"

namespace isonorm::distributed {
namespace threads {  // named, not anonymous: Ranks::State has members of these types

// Why the ranks must end; shared by all groups of one Ranks.
struct Ending {
  std::mutex mutex;
  std::condition_variable changed;
  std::string why;  // empty: they go on
  std::exception_ptr first;
  int rank = -1;  // the rank that threw `first`

  void end(int from, const std::string& reason) {
    const std::lock_guard lock(mutex);
    if (!first && std::current_exception()) first = std::current_exception(), rank = from;
    if (why.empty()) why = text("rank ", from, " ended: ", reason);
    changed.notify_all();
  }
};

// The meeting point of the threads of a group.
struct Place {
  Place(int size, std::shared_ptr<Ending> ending) : ending(std::move(ending)), given(static_cast<size_t>(size)) {}
  const std::shared_ptr<Ending> ending;
  std::vector<const void*> given;                          // each rank's pointer in the current call
  std::vector<int> came = std::vector<int>(given.size());  // how often each rank has called wait()
};

class ThreadTransport : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Place> place, int rank, double limit)
      : place_(std::move(place)), rank_(rank), limit_(limit) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(place_->given.size()); }
  std::string host(int) const override { return ""; }
  double limit() const override { return limit_; }
  void set_limit(double seconds) override { limit_ = seconds; }
  void look() const override {
    const std::lock_guard lock(place_->ending->mutex);
    check(place_->ending->why.empty(), place_->ending->why);
  }

  void exchange(const void* send, void* receive, size_t bytes, const char* what) override {
    copied(send, receive, bytes, static_cast<size_t>(rank_) * bytes, what);
  }
  void gather(const void* own, void* all, size_t bytes, const char* what) override { copied(own, all, bytes, 0, what); }

  std::unique_ptr<Transport> split(int colour, int key) override {
    struct Wish {
      int colour, key, rank;
    };
    const Wish own{colour, key, rank_};
    std::vector<Wish> all(place_->given.size());
    gather(&own, all.data(), sizeof own, "split");
    std::erase_if(all, [&](const Wish& w) { return w.colour != colour; });
    std::ranges::stable_sort(all, {}, &Wish::key);
    const auto at = std::ranges::find(all, rank_, &Wish::rank) - all.begin();
    // The first rank of a colour makes the Place and keeps it until the others have copied the pointer.
    std::shared_ptr<Place> made;
    if (at == 0) made = std::make_shared<Place>(static_cast<int>(all.size()), place_->ending);
    const std::shared_ptr<Place>* const handed = &made;
    std::vector<const std::shared_ptr<Place>*> places(place_->given.size());
    gather(&handed, places.data(), sizeof handed, "split");
    std::shared_ptr<Place> place = *places[static_cast<size_t>(all[0].rank)];
    wait("split");
    return std::make_unique<ThreadTransport>(std::move(place), static_cast<int>(at), limit_);
  }

  void abort(const std::string& why, int) noexcept override { place_->ending->end(rank_, why); }

 private:
  // Copies `bytes` bytes at `offset` of each rank's `own` to `into`, in the order of ranks.
  void copied(const void* own, void* into, size_t bytes, size_t offset, const char* what) {
    place_->given[static_cast<size_t>(rank_)] = own;
    wait(what);
    for (size_t r = 0; r < place_->given.size(); ++r)
      std::memcpy(static_cast<char*>(into) + r * bytes, static_cast<const char*>(place_->given[r]) + offset, bytes);
    wait(what);
  }

  // Returns when all ranks have called it.
  void wait(const char* what) {
    std::unique_lock lock(place_->ending->mutex);
    std::vector<int>& came = place_->came;
    const int now = ++came[static_cast<size_t>(rank_)];
    const auto late = [&](int times) { return times < now; };
    place_->ending->changed.notify_all();
    // Waits in slices of at most 1 s, so that a suspension of the process counts as one slice.
    bool in_time = false;
    for (double waited = 0; waited < limit_ && !in_time;) {
      const double slice = std::min(1., limit_ - waited);
      in_time = place_->ending->changed.wait_for(lock, std::chrono::duration<double>(slice), [&] {
        return !place_->ending->why.empty() || std::ranges::none_of(came, late);
      });
      waited += slice;
    }
    if (!in_time) {
      std::vector<int> missing;
      for (size_t r = 0; r < came.size(); ++r)
        if (late(came[r])) missing.push_back(static_cast<int>(r));
      place_->ending->why = late_text(what, missing);
      place_->ending->changed.notify_all();
      throw Disagreement(place_->ending->why, rank_);
    }
    check(place_->ending->why.empty(), place_->ending->why);
  }

  const std::shared_ptr<Place> place_;
  const int rank_;
  double limit_;
};

}  // namespace threads

using namespace threads;

// `job` counts the calls of run(). Each thread runs each job once.
struct Ranks::State {
  explicit State(int n) : place(std::make_shared<Place>(n, ending)), groups(static_cast<size_t>(n)) {}

  std::shared_ptr<Ending> ending = std::make_shared<Ending>();
  std::shared_ptr<Place> place;
  std::vector<Group> groups;
  std::vector<std::thread> threads;
  HomeProcess home;
  const std::function<void(Group&)>* f = nullptr;  // null: the threads must end
  int job = 0, running = 0;
  std::condition_variable told, done;

  void work(int rank) {
    set_num_threads(1);
    Group& group = groups[static_cast<size_t>(rank)];
    for (int next = 1;; ++next) {
      {
        std::unique_lock lock(ending->mutex);
        told.wait(lock, [&] { return job == next; });
        if (!f) break;
      }
      try {
        (*f)(group);
        group.end();
      } catch (const std::exception& e) {
        ending->end(rank, e.what());
      } catch (...) {
        ending->end(rank, "an exception");
      }
      const std::lock_guard lock(ending->mutex);
      if (--running == 0) done.notify_all();
    }
    group = Group();  // all ranks destroy a link together
  }

  void finish() {
    tell(nullptr);
    for (std::thread& t : threads) t.join();
  }

  // Starts a job on all threads.
  void tell(const std::function<void(Group&)>* what) {
    const std::lock_guard lock(ending->mutex);
    check(running == 0 || !what, "ranks: run() is called while they run");
    f = what, running = static_cast<int>(groups.size()), ++job;
    told.notify_all();
  }
};

Ranks::Ranks(int n, double limit) {
  check(n >= 1 && n <= kMostRanks, "ranks: ", n, " ranks asked for, expected 1 to ", kMostRanks);
  state_ = std::make_unique<State>(n);
  for (int rank = 0; rank < n; ++rank)
    state_->groups[static_cast<size_t>(rank)] = Group(std::make_unique<ThreadTransport>(state_->place, rank, limit));
  try {
    for (int rank = 0; rank < n; ++rank)
      state_->threads.push_back(start_thread([state = state_.get(), rank] { state->work(rank); }));
  } catch (...) {  // threads that were started must not outlive the state that they wait on
    state_->finish();
    throw;
  }
}

Ranks::~Ranks() {
  if (state_->home.is_elsewhere())
    state_.release();  // a child of fork() has no threads to join: leaks the state
  else
    state_->finish();
}

int Ranks::size() const { return static_cast<int>(state_->groups.size()); }
Group& Ranks::group(int rank) { return state_->groups[normalize_index(rank, size(), "ranks")]; }

void Ranks::run(const std::function<void(Group&)>& f) {
  state_->home.check_here("ranks");
  state_->tell(&f);
  Ending& ending = *state_->ending;
  std::unique_lock lock(ending.mutex);
  state_->done.wait(lock, [&] { return state_->running == 0; });
  if (!ending.first) return;
  const int rank = ending.rank;
  try {
    std::rethrow_exception(ending.first);
  } catch (const Disagreement&) {
    throw;
  } catch (const Error& e) {
    throw Error(e.kind(), text("rank ", rank, ": ", e.what()), e.file(), e.line());
  } catch (const std::exception& e) {
    check(false, "rank ", rank, ": ", e.what());
  }
}

}  // namespace isonorm::distributed
