// cuDNN, opened at run time, as a machine that computes graphs. Where its headers were not there when this was built, or
// are older than 9.8, nothing of it is declared.
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

// What is used of the library.
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
  // For the calling thread's current device.
  explicit Cudnn(const CudnnFunctions& functions);
  // For a device that cuDNN's JSON describes and that need not be there.
  Cudnn(const CudnnFunctions& functions, std::string device) : f_(functions), described_(std::move(device)) {}
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  // Whether there is a device.
  bool usable() const { return handle_ || !described_.empty(); }

  class Plan;
  // The first that can be made of those that the library proposes; none where there is none. Whether its sums have one
  // order follows from the graph alone: no engine of attention carries the note NONDETERMINISTIC, not even those that
  // add up dq as they come.
  std::shared_ptr<const Plan> plan(const Graph& graph) const;
  // How many it proposes: whether it knows the graph can be asked without a device.
  size_t proposed(const Graph& graph) const;
  static int64_t workspace(const Plan& plan);  // bytes
  // data: the caller's tensors in the order of the graph, a number on the host, the others and `workspace` on the
  // device. Throws "cuDNN: <what>: <what the library says>".
  void run(const Plan& plan, std::span<void* const> data, void* workspace, cudaStream_t stream) const;

 private:
  // Gives f each of them in turn, until it returns true.
  template <class F> void propose(Plan& plan, const Graph& graph, const F& f) const;

  CudnnFunctions f_;
  cudnnHandle_t handle_ = nullptr;
  std::string described_;
};

}  // namespace isonorm::gpu

#endif
