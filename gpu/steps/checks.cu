// check_ids, check_weights: errors go to the device's place for complaints (gpu/steps/complaints.h).
//
// look_at_ids: a thread for each id. atomicMin finds the smallest position of a wrong id, in any order of threads. The
// last block to finish (a counter; Harris, Mark, "threadFenceReduction", CUDA samples) writes the complaint and resets
// both words for the next check. Reads each id once.
//
// look_at_weights: one thread.
#include "gpu/launch.h"
#include "gpu/slots.h"
#include "gpu/steps/complaints.h"
#include "gpu/walk.cuh"

namespace isonorm::gpu {
namespace {

using kernels::Complaint;

// Called by one thread of a grid.
__device__ void complain(ComplaintPlace* place, const Complaint& c) {
  volatile int* full = &place->full;
  if (*full) return;
  place->complaint = c;
  __threadfence_system();
  *full = 1;
}

__global__ void __launch_bounds__(256)
    look_at_ids(ComplaintMemory memory, const int64_t* ids, int64_t n, bool also, int64_t allowed, Complaint c) {
  const int64_t e = element();
  if (e < n) {
    const int64_t id = ids[e];
    if ((id < 0 || id >= c.bound) && !(also && id == allowed))
      atomicMin(memory.first, static_cast<unsigned long long>(e));
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x > 0 || atomicAdd(memory.done, 1u) + 1 < gridDim.x) return;
  *memory.done = 0;
  const unsigned long long first = atomicExch(memory.first, ~0ull);
  if (first == ~0ull) return;
  c.element = static_cast<int64_t>(first);
  c.id = ids[first];
  complain(memory.place, c);
}

__global__ void look_at_weights(ComplaintPlace* place, const double* least, const double* total, const double* positive,
                                Complaint c) {
  if (threadIdx.x > 0) return;
  c.least = *least, c.total = *total, c.positive = *positive;
  const bool good = c.least >= 0 && c.total - c.total == 0;  // the latter: total is finite
  if (good && c.positive >= c.needed) return;
  c.kind = good ? Complaint::Kind::positive : Complaint::Kind::weights;
  complain(place, c);
}

}  // namespace

void check_ids(const Tensor& ids, const kernels::IdCheck& check) {
  if (ids.numel() == 0) return;
  const Stream& stream = stream_of(ids);
  Complaint c = about(check);
  c.path = interned(Scope::path());
  launch("check_ids", &look_at_ids, one_each(ids.numel()), stream, complaint_memory(stream), ids.data<int64_t>(),
         ids.numel(), check.allowed.has_value(), check.allowed.value_or(0), c);
  finish_check(stream);
}

void check_weights(const kernels::WeightCheck& check) {
  const Stream& stream = stream_of(check.least);
  Complaint c{};
  c.path = interned(Scope::path());
  c.needed = check.needed;
  launch("check_weights", &look_at_weights, blocks_of(1, 32), stream, complaint_memory(stream).place,
         check.least.data<double>(), check.total.data<double>(), check.positive.data<double>(), c);
  finish_check(stream);
}

}  // namespace isonorm::gpu
