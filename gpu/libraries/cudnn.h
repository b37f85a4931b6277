// cuDNN, opened at run time, as a machine that computes graphs. If its headers were missing at build time, or are older
// than 9.8, this file declares nothing.
#pragma once

#include "gpu/libraries/attention_graph.h"

#ifdef ISONORM_CUDNN

#ifdef ISONORM_GPU_EMULATED
#include "tests/emulated_gpu/libraries/cudnn.h"
#else
#include <cudnn.h>
#endif

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "gpu/dynamic.h"

namespace isonorm::gpu {

// The library's functions that are used.
struct CudnnFunctions {
  decltype(cudnnCreate)* create_handle;
  decltype(cudnnSetStream)* set_stream;
  decltype(cudnnGetLastErrorString)* last_error;
  decltype(cudnnBackendCreateDescriptor)* create;
  decltype(cudnnBackendDestroyDescriptor)* destroy;
  decltype(cudnnBackendSetAttribute)* set;
  decltype(cudnnBackendGetAttribute)* get;
  decltype(cudnnBackendFinalize)* finalize;
  decltype(cudnnBackendExecute)* execute;

  static CudnnFunctions of(const Library& library);
};

class Cudnn {
 public:
  // The calling thread's current device.
  explicit Cudnn(const CudnnFunctions& functions);
  // A device that cuDNN's JSON describes; it need not exist.
  Cudnn(const CudnnFunctions& functions, std::string device) : f_(functions), described_(std::move(device)) {}
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  // True if there is a device.
  bool usable() const { return handle_ || !described_.empty(); }

  class Plan;
  // The first of the library's proposals that can be made into a plan; null if there is none. Whether its sums have a
  // fixed order depends only on the graph: no engine of attention carries the note NONDETERMINISTIC, not even engines
  // that add up dq in any order.
  std::shared_ptr<const Plan> plan(const Graph& graph) const;
  // The number of proposals; tells without a device whether the library knows the graph.
  size_t proposed(const Graph& graph) const;
  static int64_t workspace(const Plan& plan);  // bytes
  // data: the caller's tensors in the order of the graph. Single numbers are on the host, other tensors and `workspace`
  // on the device. Throws "cuDNN: <what>: <the library's message>".
  void run(const Plan& plan, std::span<void* const> data, void* workspace, cudaStream_t stream) const;

 private:
  // Calls f with each proposal in turn, until it returns true.
  template <class F> void propose(Plan& plan, const Graph& graph, const F& f) const;

  CudnnFunctions f_;
  cudnnHandle_t handle_ = nullptr;
  std::string described_;
};

}  // namespace isonorm::gpu

#endif
