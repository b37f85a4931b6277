#include "tests/emulated_gpu/libraries/nccl.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/libraries/nccl.h"
#include "tests/emulated_gpu/device_memory.h"
#include "tests/emulated_gpu/streams.h"

namespace isonorm::gpu {
namespace emulated::links {  // a named namespace, since the communicator has members of these types

enum class Kind { send, receive, gather };

struct Call {
  Kind kind;
  const void* from;
  void* to;
  size_t count;
  int peer;
};

// A rank's group, and its place in the rank's stream.
struct Launch {
  std::vector<Call> calls;
  Stream* stream = nullptr;
  uint64_t number = 0;
  bool done = false;

  // The sizes of the messages to or from a rank, in order.
  std::vector<size_t> sizes(Kind kind, int peer) const {
    std::vector<size_t> all;
    for (const Call& c : calls)
      if (c.kind == kind && c.peer == peer) all.push_back(c.count);
    return all;
  }
};

// All ranks with one id.
struct Clique {
  int size = 0;
  std::vector<nccl::Comm> comms;                               // null: the rank has not joined
  std::vector<std::vector<std::shared_ptr<Launch>>> launches;  // by rank
  nccl::Result broken = nccl::success;
};

}  // namespace emulated::links

using namespace emulated;
using namespace emulated::links;

struct nccl::Opaque {
  enum class State { used, finalized, ended };

  std::shared_ptr<Clique> clique;
  int rank = 0, device = 0;
  State state = State::used;
  std::shared_ptr<Launch> waiting = {};  // not yet in its stream
  int asked = 0;                         // number of queries since it waits
};

namespace {

using Guard = std::lock_guard<std::recursive_mutex>;
using nccl::Comm, nccl::Result;
using State = nccl::Opaque::State;

std::map<int64_t, std::shared_ptr<Clique>> cliques;
int64_t groups = 0, aborts = 0, ids = 0;

struct Group {
  int depth = 0;
  Comm comm = nullptr;
  std::shared_ptr<Launch> launch;
};
thread_local Group group;

void demand(bool condition, const char* function, const std::string& complaint) {
  if (!condition) throw Fault(std::string(function) + ": " + complaint);
}

bool all_came(const Clique& c) { return std::ranges::count(c.comms, nullptr) == 0; }

void move(void* to, const void* from, size_t bytes) {
  std::byte* const into = reach(to, bytes);
  const std::byte* const at = reach(from, bytes);
  demand(into && at, "nccl", "bytes that are not all of one block");
  std::memcpy(into, at, bytes);
}

// Checks the n-th groups of two ranks, when every rank has made its n-th group.
void check_pair(const Clique& c, size_t n, int a, int b) {
  const Launch &x = *c.launches[static_cast<size_t>(a)][n], &y = *c.launches[static_cast<size_t>(b)][n];
  const std::string who = "of ranks " + std::to_string(a) + " and " + std::to_string(b);
  demand(x.sizes(Kind::gather, -1) == y.sizes(Kind::gather, -1), "ncclAllGather", who + " are not the same");
  demand(x.sizes(Kind::send, b) == y.sizes(Kind::receive, a), "ncclSend", who + " do not fit each other");
}

void carry(Clique& c, size_t n) {
  const auto size = static_cast<size_t>(c.size);
  for (size_t r = 0; r < size; ++r) {
    std::map<int, int> sent;
    for (const Call& x : c.launches[r][n]->calls) {
      if (x.kind == Kind::gather)
        for (size_t q = 0; q < size; ++q)
          for (const Call& y : c.launches[q][n]->calls)
            if (y.kind == Kind::gather) move(static_cast<std::byte*>(y.to) + r * x.count, x.from, x.count);
      if (x.kind != Kind::send) continue;
      int skip = sent[x.peer]++;
      for (const Call& y : c.launches[static_cast<size_t>(x.peer)][n]->calls)
        if (y.kind == Kind::receive && y.peer == static_cast<int>(r) && skip-- == 0) move(y.to, x.from, x.count);
    }
  }
  for (auto& launches : c.launches) launches[n]->done = true;
  ++groups;
}

// Puts the group into its stream, which waits there until the streams of all ranks have reached their groups. If the
// communicator is ended, the stream continues.
void give(nccl::Opaque& own) {
  const auto clique = own.clique;
  const auto launch = std::exchange(own.waiting, nullptr);
  auto& launches = clique->launches[static_cast<size_t>(own.rank)];
  const size_t n = launches.size();
  launches.push_back(launch);
  const auto given = [=] { return std::ranges::all_of(clique->launches, [=](const auto& l) { return l.size() > n; }); };
  if (given())
    for (int a = 0; a < clique->size; ++a)
      for (int b = 0; b < clique->size; ++b) check_pair(*clique, n, a, b);
  Stream& stream = of(launch->stream);
  launch->number = stream.given + 1;
  enqueue(stream, {[=, &own] {
                     if (!launch->done && own.state != State::ended) carry(*clique, n);
                   },
                   nullptr,
                   [=, &own] {
                     if (launch->done || own.state == State::ended) return true;
                     if (!given()) return false;
                     return std::ranges::all_of(clique->comms, [=, &own](Comm c) {
                       const Launch& other = *clique->launches[static_cast<size_t>(c->rank)][n];
                       if (c == &own) return true;
                       Stream& s = of(other.stream);
                       drain(s, other.number - 1);
                       return c->state != State::ended && s.done + 1 >= other.number;
                     });
                   }});
}

Result get_version(int* version) {
  *version = 22809;
  return nccl::success;
}

Result get_unique_id(nccl::Id* id) {
  const Guard guard(lock());
  if (injected("ncclGetUniqueId")) return nccl::system_error;
  *id = {};
  ++ids;
  std::memcpy(id->bytes, &ids, sizeof ids);
  return nccl::success;
}

Result comm_init_rank_config(Comm* comm, int size, nccl::Id id, int rank, nccl::Config* config) {
  const Guard guard(lock());
  constexpr const char* name = "ncclCommInitRankConfig";
  if (injected(name)) return nccl::system_error;
  if (config->size != 24 || config->magic != 0xcafebeef || config->version != 21400) return nccl::invalid_argument;
  demand(config->blocking == 0, name, "a communicator that blocks waits without a limit");
  int64_t key = 0;
  std::memcpy(&key, id.bytes, sizeof key);
  demand(key > 0 && key <= ids, name, "an id that nobody has made");
  auto& clique = cliques[key];
  if (!clique) {
    clique = std::make_shared<Clique>();
    clique->size = size;
    clique->comms.resize(static_cast<size_t>(size)), clique->launches.resize(static_cast<size_t>(size));
  }
  demand(size == clique->size && rank >= 0 && rank < size && !clique->comms[static_cast<size_t>(rank)], name,
         "a rank or size that does not fit the others'");
  for (const Comm other : clique->comms)
    if (other && other->device == current_device()) clique->broken = nccl::invalid_usage;  // like the real library
  *comm = clique->comms[static_cast<size_t>(rank)] = new nccl::Opaque{clique, rank, current_device()};
  return nccl::in_progress;
}

// Checks that a communicator can be given work: its last work has gone to the stream.
void check_used(Comm comm, const char* name) {
  demand(comm->state == State::used, name, "the communicator was ended");
  demand(all_came(*comm->clique) && !comm->waiting, name, "the communicator is in progress");
  demand(current_device() == comm->device, name, "the current device is another one");
}

Result comm_get_async_error(Comm comm, Result* state) {
  const Guard guard(lock());
  constexpr const char* name = "ncclCommGetAsyncError";
  demand(comm->state != State::ended, name, "the communicator was ended");
  *state = nccl::success;
  Clique& clique = *comm->clique;
  if (injected(name)) clique.broken = nccl::remote_error;
  if (clique.broken) return *state = clique.broken, nccl::success;
  const bool open = comm->state == State::finalized &&
                    std::ranges::any_of(clique.comms, [](const Comm c) { return c->state == State::used; });
  if (!all_came(clique) || open) *state = nccl::in_progress;
  if (!comm->waiting) return nccl::success;
  if (comm->asked++ < 2 || nccl_settings().loses_groups)
    *state = nccl::in_progress;
  else
    give(*comm);
  return nccl::success;
}

Result comm_finalize(Comm comm) {
  const Guard guard(lock());
  check_used(comm, "ncclCommFinalize");
  comm->state = State::finalized;
  return nccl::in_progress;
}

Result comm_destroy(Comm comm) {
  const Guard guard(lock());
  demand(comm->state == State::finalized, "ncclCommDestroy", "the communicator was not finalized");
  comm->state = State::ended;
  return nccl::success;
}

Result comm_abort(Comm comm) {
  {
    const Guard guard(lock());
    demand(comm->state != State::ended, "ncclCommAbort", "the communicator was ended");
    comm->state = State::ended;
    comm->waiting = nullptr;
    ++aborts;
  }
  while (nccl_settings().abort_hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return nccl::success;
}

Result group_start() {
  const Guard guard(lock());
  if (injected("ncclGroupStart")) return nccl::internal_error;
  demand(group.depth++ == 0, "ncclGroupStart", "the last group was not closed");
  group.launch = std::make_shared<Launch>();
  return nccl::success;
}

Result group_end() {
  const Guard guard(lock());
  demand(group.depth-- == 1, "ncclGroupEnd", "no group was begun");
  const Group ended = std::exchange(group, {});
  if (injected("ncclGroupEnd")) return nccl::unhandled_cuda_error;
  if (!ended.comm) return nccl::success;
  ended.comm->waiting = ended.launch, ended.comm->asked = 0;
  return nccl::in_progress;
}

Result called(const char* name, const Call& call, nccl::Type type, Comm comm, cudaStream_t stream) {
  const Guard guard(lock());
  demand(group.depth == 1, name, "it is called outside of a group");
  check_used(comm, name);
  demand(!group.comm || group.comm == comm, name, "a group of two communicators");
  demand(type == nccl::int8, name, "a type that is not known here");
  demand(stream && of(stream).device == comm->device, name, "the stream is not one of the communicator's device");
  demand(!group.launch->stream || group.launch->stream == stream, name, "a group in two streams");
  check_argument(stream, name, call.from);
  check_argument(stream, name, call.to);
  if (injected(name)) return nccl::system_error;
  group.comm = comm, group.launch->stream = stream;
  group.launch->calls.push_back(call);
  return nccl::success;
}

Result send(const void* from, size_t count, nccl::Type type, int peer, Comm comm, cudaStream_t stream) {
  return called("ncclSend", {Kind::send, from, nullptr, count, peer}, type, comm, stream);
}
Result receive(void* to, size_t count, nccl::Type type, int peer, Comm comm, cudaStream_t stream) {
  return called("ncclRecv", {Kind::receive, nullptr, to, count, peer}, type, comm, stream);
}
Result all_gather(const void* from, void* to, size_t count, nccl::Type type, Comm comm, cudaStream_t stream) {
  return called("ncclAllGather", {Kind::gather, from, to, count, -1}, type, comm, stream);
}

const char* get_error_string(Result result) {
  return result == nccl::remote_error ? "remote process exited or there was a network error"
                                      : "an error of the stand-in";
}
const char* get_last_error(Comm) { return ""; }

}  // namespace

namespace emulated {

NcclSettings& nccl_settings() {
  static NcclSettings s;
  return s;
}
int64_t nccl_groups() {
  const Guard guard(lock());
  return groups;
}
int64_t nccl_aborts() {
  const Guard guard(lock());
  return aborts;
}

void* nccl_function(const char* name) {
  static const std::map<std::string, void*> all{
      {"ncclGetVersion", reinterpret_cast<void*>(&get_version)},
      {"ncclGetUniqueId", reinterpret_cast<void*>(&get_unique_id)},
      {"ncclCommInitRankConfig", reinterpret_cast<void*>(&comm_init_rank_config)},
      {"ncclCommGetAsyncError", reinterpret_cast<void*>(&comm_get_async_error)},
      {"ncclCommFinalize", reinterpret_cast<void*>(&comm_finalize)},
      {"ncclCommDestroy", reinterpret_cast<void*>(&comm_destroy)},
      {"ncclCommAbort", reinterpret_cast<void*>(&comm_abort)},
      {"ncclGroupStart", reinterpret_cast<void*>(&group_start)},
      {"ncclGroupEnd", reinterpret_cast<void*>(&group_end)},
      {"ncclSend", reinterpret_cast<void*>(&send)},
      {"ncclRecv", reinterpret_cast<void*>(&receive)},
      {"ncclAllGather", reinterpret_cast<void*>(&all_gather)},
      {"ncclGetErrorString", reinterpret_cast<void*>(&get_error_string)},
      {"ncclGetLastError", reinterpret_cast<void*>(&get_last_error)}};
  const auto at = all.find(name);
  return at == all.end() ? nullptr : at->second;
}

}  // namespace emulated
}  // namespace isonorm::gpu
