#include "distributed/transport.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/stopwatch.h"
#include "distributed/group.h"

namespace isonorm::distributed {
namespace {

// A handle of either library: a pointer in Open MPI, an int in MPICH, which never reads the other half.
using Handle = intptr_t;

constexpr int kUnknown = 1 << 30;

int number_in(const char* variable) {
  const char* said = std::getenv(variable);
  int number = 0;
  return said && read_number(said, number) ? number : 0;
}

// The number of processes according to an MPI launcher's variables; 0: there is no launcher. Open MPI and MPICH (and
// launchers with MPICH's interface) give this number; PMIx (srun --mpi=pmix) does not.
int said_size() {
  const int said = std::max(number_in("OMPI_COMM_WORLD_SIZE"), number_in("PMI_SIZE"));
  if (said > 0 || !std::getenv("PMIX_RANK")) return said;
  const int tasks = number_in("SLURM_STEP_NUM_TASKS");
  return tasks > 0 ? tasks : kUnknown;
}

// A variable that tells a process that its launcher has started others, too.
struct Sign {
  const char* variable;
  int alone;  // the largest value if the process is alone
  bool mpi;   // counts only without an MPI launcher: srun may have started a launcher that started one process
};
constexpr Sign kSigns[] = {
    {"WORLD_SIZE", 1, false},                                            // torchrun, accelerate, DeepSpeed, Kubeflow
    {"LOCAL_RANK", 0, false},        {"SLURM_STEP_NUM_TASKS", 1, true},  // srun
    {"SLURM_PROCID", 0, true},       {"OMPI_COMM_WORLD_RANK", 0, true},  // Open MPI
    {"PMI_RANK", 0, true},                                               // MPICH
    {"MPI_LOCALNRANKS", 1, true},    {"MPI_LOCALRANKID", 0, true},      {"MV2_COMM_WORLD_SIZE", 1, true},  // MVAPICH
    {"JSM_NAMESPACE_SIZE", 1, true},                                                                       // jsrun
    {"FLUX_TASK_RANK", 0, true},                                                                           // Flux
    {"PALS_RANKID", 0, true},                                                                              // Cray PALS
    {"ALPS_APP_PE", 0, true},                                                                              // aprun
};

// True if the library to load is Open MPI's. If both launchers' variables are set, the launcher that started more
// processes wins. PMIx without MPICH's variables means Open MPI.
bool by_open_mpi() {
  const int mpich = number_in("PMI_SIZE");
  return number_in("OMPI_COMM_WORLD_SIZE") >= std::max(2, mpich) || (mpich < 2 && std::getenv("PMIX_RANK"));
}

// MPI's functions and constants, as far as they are used (MPI 3.1; Open MPI 4.1: mpi.h; MPICH 4.0: mpi.h). Groups may
// call from several threads, but only one thread is in MPI at a time (MPI_THREAD_SERIALIZED).
class Library {
 public:
  // Loads and initializes the library at the first call. Throws if that fails.
  static const Library& get() {
    static const Library library;
    return library;
  }

  template <class... P, class... A> int operator()(int (*function)(P...), A... arguments) const {
    const std::lock_guard lock(one_thread_);
    return function(arguments...);
  }

  int (*init_thread)(int*, char***, int wanted, int* given);
  int (*query_thread)(int* given);
  int (*initialized)(int* flag);
  int (*finalize)();
  int (*abort)(Handle comm, int code);
  int (*comm_rank)(Handle comm, int* rank);
  int (*comm_size)(Handle comm, int* size);
  int (*comm_split)(Handle comm, int colour, int key, Handle* made);
  int (*isend)(const void* data, int count, Handle type, int to, int tag, Handle comm, Handle* request);
  int (*irecv)(void* data, int count, Handle type, int from, int tag, Handle comm, Handle* request);
  int (*test)(Handle* request, int* done, void* status);
  Handle world, byte;

 private:
  Library() {
    const bool open_mpi = by_open_mpi();
    const std::vector<const char*> names = open_mpi ? std::vector{"libmpi.so.40", "libmpi.so"}
                                                    : std::vector{"libmpich.so.12", "libmpi.so.12", "libmpich.so"};
    std::string tried;
    for (const char* name : names) {
      library_ = dlopen(name, RTLD_NOW | RTLD_GLOBAL);  // global: the components of Open MPI need its symbols
      if (library_) break;
      const char* why = dlerror();
      tried += text(tried.empty() ? "" : "; ", why ? why : name);
    }
    check_io(library_ != nullptr,
             "this process is one of several that MPI has started, and its library cannot be opened: ", tried);
    take(init_thread, "MPI_Init_thread"), take(query_thread, "MPI_Query_thread"), take(initialized, "MPI_Initialized");
    take(finalize, "MPI_Finalize");
    take(abort, "MPI_Abort"), take(comm_rank, "MPI_Comm_rank"), take(comm_size, "MPI_Comm_size");
    take(comm_split, "MPI_Comm_split"), take(isend, "MPI_Isend"), take(irecv, "MPI_Irecv"), take(test, "MPI_Test");
    world = open_mpi ? reinterpret_cast<Handle>(symbol("ompi_mpi_comm_world")) : 0x44000000;
    byte = open_mpi ? reinterpret_cast<Handle>(symbol("ompi_mpi_byte")) : 0x4c00010d;
    constexpr int kSerialized = 2;  // MPI_THREAD_SERIALIZED
    int there = 0, given = 0;
    initialized(&there);  // true if the program itself has initialised MPI
    check_io((there ? query_thread(&given) : init_thread(nullptr, nullptr, kSerialized, &given)) == 0,
             there ? "MPI_Query_thread has failed" : "MPI_Init_thread has failed");
    check_io(given >= kSerialized, "this MPI library supports calls from one thread only");
  }

  void* symbol(const char* name) const {
    void* at = dlsym(library_, name);
    check_io(at != nullptr, "the MPI library has no ", name);
    return at;
  }
  template <class F> void take(F& f, const char* name) { f = reinterpret_cast<F>(symbol(name)); }

  void* library_ = nullptr;
  mutable std::mutex one_thread_;
};

using HostName = std::array<char, 256>;

HostName host_name() {
  HostName name = {};
  gethostname(name.data(), name.size() - 1);
  return name;
}

class MpiTransport : public Transport {
 public:
  // A collective call: every rank of the communicator constructs one, and the ranks exchange their host names.
  explicit MpiTransport(Handle comm) : comm_(comm) {
    mpi_(mpi_.comm_rank, comm, &rank_), mpi_(mpi_.comm_size, comm, &size_);
    HostName own = host_name();
    hosts_.resize(static_cast<size_t>(size_));
    gather(&own, hosts_.data(), sizeof own, "the names of the machines");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host(int rank) const override { return hosts_[static_cast<size_t>(rank)].data(); }
  double limit() const override { return limit_; }
  void set_limit(double seconds) override { limit_ = seconds; }
  void look() const override {}  // nothing to do: MPI ends all processes if one ends with an error

  void exchange(const void* send, void* receive, size_t bytes, const char* what) override {
    move(static_cast<const char*>(send), bytes, static_cast<char*>(receive), bytes, what);
  }
  void gather(const void* own, void* all, size_t bytes, const char* what) override {
    move(static_cast<const char*>(own), 0, static_cast<char*>(all), bytes, what);
  }

  std::unique_ptr<Transport> split(int colour, int key) override {
    Handle made = 0;
    check_io(mpi_(mpi_.comm_split, comm_, colour, key, &made) == 0, "MPI_Comm_split has failed");
    return std::make_unique<MpiTransport>(made);
  }

  void abort(const std::string&, int code) noexcept override { mpi_.abort(mpi_.world, code); }  // waits for no thread

 private:
  struct Message {
    Handle request = 0;
    int with = 0;  // rank
  };

  // Sends `bytes` bytes at send + r * stride to each rank r, and receives the bytes from rank r at receive + r * bytes.
  // Starts with the next rank, so that not all ranks send to rank 0 first.
  void move(const char* send, size_t stride, char* receive, size_t bytes, const char* what) {
    constexpr size_t kMost = size_t{1} << 30;  // largest message in bytes: MPI counts in int
    const auto own = static_cast<size_t>(rank_);
    std::memcpy(receive + own * bytes, send + own * stride, bytes);
    waiting_.clear();
    for (int step = 1; step < size_; ++step) {
      const int to = (rank_ + step) % size_, from = (rank_ + size_ - step) % size_;
      for (size_t at = 0; at < bytes; at += kMost) {
        const int count = static_cast<int>(std::min(kMost, bytes - at));
        Message in{0, from}, out{0, to};
        const bool ok = mpi_(mpi_.irecv, receive + static_cast<size_t>(from) * bytes + at, count, mpi_.byte, from, 0,
                             comm_, &in.request) == 0 &&
                        mpi_(mpi_.isend, send + static_cast<size_t>(to) * stride + at, count, mpi_.byte, to, 0, comm_,
                             &out.request) == 0;
        check_io(ok, what, ": MPI refuses a message of ", count, " bytes with ranks ", from, " and ", to);
        waiting_.push_back(in), waiting_.push_back(out);
      }
    }
    wait(what);
  }

  // Waits until all messages have arrived. An idle rank yields its core, because other ranks may run on it.
  void wait(const char* what) {
    double waited = 0, seen = 0;  // a suspended process counts at most one second
    const Stopwatch watch;
    std::array<std::byte, 64> status;  // MPI_Status has at most 24 bytes
    for (int idle = 0; !waiting_.empty(); ++idle) {
      const size_t before = waiting_.size();
      std::erase_if(waiting_, [&](Message& m) {
        int done = 0;
        check_io(mpi_(mpi_.test, &m.request, &done, status.data()) == 0, what, ": a message with rank ", m.with,
                 " has failed");
        return done != 0;
      });
      if (waiting_.size() < before) idle = 0;
      if (idle > 100) std::this_thread::yield();
      if (idle > 2000) std::this_thread::sleep_for(std::chrono::microseconds(50));
      const double now = watch.seconds();
      waited += std::min(1., now - std::exchange(seen, now));
      if (waited > limit_ && !waiting_.empty()) give_up(what);
    }
  }

  [[noreturn]] void give_up(const char* what) const {
    std::vector<int> late;
    for (const Message& m : waiting_) late.push_back(m.with);
    std::ranges::sort(late);
    late.erase(std::unique(late.begin(), late.end()), late.end());
    int speaker = 0;
    while (std::ranges::count(late, speaker) > 0) ++speaker;
    throw Disagreement(late_text(what, late), speaker);
  }

  const Library& mpi_ = Library::get();
  const Handle comm_;
  double limit_ = time_limit();
  int rank_ = 0, size_ = 1;
  std::vector<HostName> hosts_;  // by rank
  std::vector<Message> waiting_;
};

}  // namespace

bool launched_by_mpi() { return said_size() > 1; }

void check_alone() {
  for (const auto& [variable, alone, mpi] : kSigns)
    check(number_in(variable) <= alone || (mpi && said_size() > 0), variable, " is ", number_in(variable),
          ": a launcher has started this process as one of several, and they would train separately; start them with "
          "mpirun -np N, or unset ",
          variable, " to train alone");
}

std::unique_ptr<Transport> mpi_world() {
  auto transport = std::make_unique<MpiTransport>(Library::get().world);
  const int said = said_size();
  check_io(transport->size() == said || said == kUnknown, "the launcher of MPI says that there are ", said,
           " processes, its library sees ", transport->size(), "; is it another MPI's launcher?");
  return transport;
}

void finish_mpi() noexcept { Library::get()(Library::get().finalize); }

}  // namespace isonorm::distributed
