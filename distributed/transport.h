// Internal: transport of bytes between ranks. All ranks make the same calls in the same order.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/system/foreign_text.h"

namespace isonorm::distributed {

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The name of the rank's machine; empty if the ranks are threads.
  virtual std::string host(int rank) const = 0;
  // Seconds that a call waits for another rank.
  virtual double limit() const = 0;
  virtual void set_limit(double seconds) = 0;

  // Sends block j of `send`, `bytes` bytes, to rank j. `receive` gets one block from every rank, in their order. Throws
  // if a rank has ended or has not come within the time limit; the message names it. The transport cannot be used after
  // that.
  virtual void exchange(const void* send, void* receive, size_t bytes, const char* what) = 0;
  // All-gather: sends the `bytes` bytes at `own` to every rank; `all` is in the order of ranks. Throws as exchange().
  virtual void gather(const void* own, void* all, size_t bytes, const char* what) = 0;
  // Throws if another rank is known to have ended; for callers that wait for a rank by other means.
  virtual void look() const = 0;
  // A transport among the ranks with this colour, ordered by `key` and then by rank. Every rank calls it.
  virtual std::unique_ptr<Transport> split(int colour, int key) = 0;
  // Ends the other ranks: their calls throw an error with the text `why`, or their processes exit with `code`.
  virtual void abort(const std::string& why, int code) noexcept = 0;

  // "rank 1 on moon".
  std::string name_of(int rank) const {
    const std::string machine = host(rank);
    return text("rank ", rank, machine.empty() ? "" : text(" on ", printable(machine, 80)));
  }
  std::string late_text(const char* what, const std::vector<int>& ranks) const {
    ShortList list;
    for (int r : ranks) list.add(name_of(r));
    return text(what, ": ", list, ranks.size() == 1 ? " has" : " have", " not come within ", limit(), " s");
  }
};

// The ranks that an MPI launcher started, using that launcher's MPI library.

// True if an MPI launcher started this process together with others, according to environment variables.
bool launched_by_mpi();

// Throws if the environment says that this process was started together with others, but MPI has not started it so.
// Then another launcher has started it (torchrun, srun), or some of an MPI launcher's variables were lost. The message
// names the variable.
void check_alone();

// All ranks of the launcher. Loads its library: libmpi.so.40 of Open MPI 4 and 5, or libmpich.so.12 or libmpi.so.12 of
// MPICH 3 and 4 and of libraries with the same ABI. Throws if none can be loaded.
std::unique_ptr<Transport> mpi_world();

// Finalises MPI, a collective call. MPI cannot be used afterwards.
void finish_mpi() noexcept;

}  // namespace isonorm::distributed
