// Groups of ranks that compute together: one process alone, threads of a process (threads.h), or processes started by
// an MPI launcher (world.h). Every rank makes the same calls in the same order. If a call differs between ranks, all
// ranks throw an error that names the differing calls.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/tensor_map.h"

namespace isonorm::distributed {

class Transport;

// An error that every running rank knows of. Rank speaker() reports it for the others.
class Disagreement : public Error {
 public:
  Disagreement(const std::string& line, int speaker)
      : Error(ErrorKind::invalid, line, __FILE__, __LINE__), speaker_(speaker) {}
  int speaker() const { return speaker_; }

 private:
  int speaker_;
};

// Tensors are contiguous, of f64, f32, bf16 or i64, on any device. NCCL carries them if all tensors of a call are on
// GPUs, on all ranks, and each rank has its own GPU (ISONORM_NCCL=0: never). The ranks first agree on this through the
// host. Otherwise tensors travel through the host. The bits are the same. NCCL joins the GPUs of the first such call;
// tensors on other GPUs travel through the host.
//
// All calls throw Disagreement if a rank calls something else, or passes another size or dtype, and if a rank has not
// come within time_limit() seconds. They throw Error if a rank has aborted. Not synchronised: one thread of a rank at a
// time. A second thread may call background().
class Group {
 public:
  Group();  // a single rank: every call returns at once
  explicit Group(std::unique_ptr<Transport> transport);
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;
  ~Group();

  int rank() const { return rank_; }
  int size() const { return size_; }
  // "rank 1 on moon": with the name of the machine if the ranks are processes.
  std::string name_of(int rank) const;

  // Replaces each tensor by its sum over all ranks. All tensors have one dtype. Sums are added in the order of ranks,
  // in the accumulation type (f32 for bf16), and rounded once, so a sum has the same bits on every rank and in every
  // run. Each rank sends and receives 2 (size - 1) / size times the tensors' bytes.
  void all_reduce(const std::vector<Tensor>& tensors) { all_reduce(std::span(&tensors, 1)); }
  void all_reduce(const Tensor& x) { all_reduce(std::vector{x}); }
  // The same for several parts per rank (the same number on all), where each part holds tensors of the same sizes. The
  // tensors of the first part receive the sum, added in the order of ranks and then of parts, as if each part were a
  // rank. Each rank sends (parts + 1) (size - 1) / size times the bytes of a part.
  void all_reduce(std::span<const std::vector<Tensor>> parts);
  // x [size n, ...] -> [n, ...]: this rank's block of the sum over all ranks' x.
  Tensor reduce_scatter(const Tensor& x);
  // All ranks' x, concatenated in the order of ranks: x [n, ...] -> [size n, ...].
  Tensor all_gather(const Tensor& x);
  // Replaces each tensor by the root's.
  void broadcast(std::span<const Tensor> tensors, int root = 0);
  void broadcast(const Tensor& x, int root = 0) { broadcast({&x, 1}, root); }
  // True if `here` is true on any rank.
  bool any(bool here);
  // Returns when every rank has called it.
  void barrier();
  // Runs work() on rank 0, for example a save. The other ranks wait until it has ended, without a time limit. Then rank
  // 0 waits for them, up to time_limit() seconds. Throws on rank 0 if work() throws.
  void on_first(const std::function<void()>& work);

  // Throws Disagreement if a tensor has other bits on another rank. The message names the rank, its machine, `what` and
  // the tensor, and ends with `advice`.
  void check_same(const TensorMap& tensors, const char* what, const char* advice = "");
  // The same for a text. The message shows its first part that differs; parts end at a comma or a newline.
  void check_same(const std::string& words, const char* what);

  // The ranks that give this colour (from 0), in order of `key`, then of rank.
  Group split(int colour, int key = 0);

  // A group of the same ranks for a second thread of each rank. Each of the two groups has its own order of calls, so
  // the ranks need not interleave the calls of the two threads alike. The first call makes the group, and every rank
  // makes that call.
  Group& background();

  // Announces that this rank makes no more calls. Returns when all ranks have called it.
  void end();
  // Ends the other ranks. Ranks that are threads throw an error with the text `why`; ranks that are processes all exit
  // with `code`, this one too.
  void abort(const std::string& why, int code = 1) noexcept;

  // Bytes that this rank has sent so far, including background().
  int64_t bytes_sent() const { return bytes_sent_ + (background_ ? background_->bytes_sent_ : 0); }
  // Why GPU tensors travel through the host. Empty if NCCL carries them, and before the first call with GPU tensors.
  const std::string& why_by_host() const;

 private:
  enum class Call : int64_t { reduce, scatter, gather, broadcast, barrier, first, same, split, end };
  Device match(Call call, int64_t kind, int64_t count, Device device = kCpu, int64_t parts = 1, int64_t root = 0);
  Device linked(const std::vector<int>& devices);
  void make_link(Device device);
  void exchange(Device where, const void* send, void* receive, int64_t bytes, const char* what);
  void gather(Device where, const void* own, void* all, int64_t bytes, const char* what);

  std::shared_ptr<Transport> transport_;  // null: a single rank; shared because the link calls its look()
  int rank_ = 0, size_ = 1;
  int64_t calls_ = 0, bytes_sent_ = 0;
  struct Linked;
  std::shared_ptr<Linked> linked_;     // shared with background(): only one thread at a time sends GPU tensors
  std::unique_ptr<Group> background_;  // null: not made yet
};

// The number of calls that this thread has made to groups of several ranks.
int64_t calls_of_this_thread();

// How long a call waits for another rank, in seconds: ISONORM_TIMEOUT, else 600.
double time_limit();

}  // namespace isonorm::distributed
