#include "tests/emulated_gpu/libraries/cudnn.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "tests/emulated_gpu/libraries/cudnn_descriptor.h"
#include "tests/emulated_gpu/streams.h"

namespace isonorm::gpu {
namespace emulated {

struct CudnnHandle {
  int device;
  Stream* stream = nullptr;
};

namespace {

using Guard = std::lock_guard<std::recursive_mutex>;

thread_local std::string last_error;
cudnnStatus_t refused(cudnnStatus_t status, const std::string& why) {
  last_error = why;
  return status;
}

}  // namespace

void* cudnn_function(const char* name) {
  const auto entry = [](auto* f) { return reinterpret_cast<void*>(f); };
  static const std::map<std::string, void*> all{
      {"cudnnGetVersion", entry(&cudnnGetVersion)},
      {"cudnnCreate", entry(&cudnnCreate)},
      {"cudnnSetStream", entry(&cudnnSetStream)},
      {"cudnnGetLastErrorString", entry(&cudnnGetLastErrorString)},
      {"cudnnBackendCreateDescriptor", entry(&cudnnBackendCreateDescriptor)},
      {"cudnnBackendDestroyDescriptor", entry(&cudnnBackendDestroyDescriptor)},
      {"cudnnBackendSetAttribute", entry(&cudnnBackendSetAttribute)},
      {"cudnnBackendGetAttribute", entry(&cudnnBackendGetAttribute)},
      {"cudnnBackendFinalize", entry(&cudnnBackendFinalize)},
      {"cudnnBackendExecute", entry(&cudnnBackendExecute)}};
  const auto at = all.find(name);
  return at == all.end() ? nullptr : at->second;
}

}  // namespace emulated

using namespace emulated;

size_t cudnnGetVersion() { return 91900; }
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  const Guard guard(lock());
  if (injected(__func__)) return refused(CUDNN_STATUS_NOT_INITIALIZED, "no device");
  *handle = new CudnnHandle{current_device()};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (of(stream).device != handle->device) return refused(CUDNN_STATUS_BAD_PARAM, "a stream of another device");
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
void cudnnGetLastErrorString(char* message, size_t size) {
  if (size == 0) return;
  std::strncpy(message, last_error.c_str(), size - 1);
  message[size - 1] = 0;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* d) {
  *d = new Descriptor{.type = type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  delete static_cast<Descriptor*>(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  auto& d = *static_cast<Descriptor*>(to);
  if (d.finished) return refused(CUDNN_STATUS_NOT_SUPPORTED, "an attribute of a finished descriptor");
  if (type != type_of(name) || count < 1 || !values)
    return refused(CUDNN_STATUS_BAD_PARAM, "attribute " + std::to_string(name) + " of another type or of nothing");
  const auto* from = static_cast<const std::byte*>(values);
  d.values[name] = {count, {from, from + static_cast<size_t>(count) * size_of(type)}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t* count, void* values) {
  const auto& d = *static_cast<const Descriptor*>(from);
  if (!d.finished || type != type_of(name)) return refused(CUDNN_STATUS_BAD_PARAM, "an attribute of another type");
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    *count = 1;
    if (room < 1) return CUDNN_STATUS_SUCCESS;
    auto& config = *static_cast<Descriptor*>(*static_cast<void**>(values));
    config.program = d.program;
    config.finished = true;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name != CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE || room < 1)
    return refused(CUDNN_STATUS_NOT_SUPPORTED, "no such attribute");
  *count = 1;
  std::memcpy(values, &d.program->workspace, sizeof d.program->workspace);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t to) {
  const Guard guard(lock());
  auto& d = *static_cast<Descriptor*>(to);
  if (injected(__func__)) return refused(CUDNN_STATUS_NOT_SUPPORTED, "no such thing");
  if (d.type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
    if (d.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS).size() != 4 ||
        d.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES).size() != 4 || d.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) < 1)
      return refused(CUDNN_STATUS_BAD_PARAM, "a tensor without size, strides or alignment");
  } else if (d.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    try {
      d.program = program_of(d);
    } catch (const std::string& why) {
      return refused(CUDNN_STATUS_BAD_PARAM, why);
    }
  } else if (d.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR || d.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const bool plan = d.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
    const Descriptor* const of =
        d.other(plan ? CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG : CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    const Descriptor* const where =
        d.other(plan ? CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP : CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
    if (!of || !of->program || !where || !where->finished)
      return refused(CUDNN_STATUS_BAD_PARAM, "a plan without a graph or a device");
    d.program = of->program;
  }
  d.finished = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const Guard guard(lock());
  if (injected(__func__)) return refused(CUDNN_STATUS_EXECUTION_FAILED, "the kernel was not launched");
  const auto program = static_cast<const Descriptor*>(plan)->program;
  const auto& given = *static_cast<const Descriptor*>(pack);
  const auto ids = given.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = given.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto* const workspace = given.one<std::byte*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (ids.size() != pointers.size() || (program->workspace && !workspace))
    return refused(CUDNN_STATUS_BAD_PARAM, "tensors without addresses, or no workspace");
  std::vector<Values> places;
  for (const TensorInfo& t : program->tensors) {
    Values place{.info = &t};
    const auto at = std::find(ids.begin(), ids.end(), t.id);
    if (t.is_virtual) {
      const auto last = static_cast<size_t>((t.size[0] - 1) * t.stride[0] + (t.size[1] - 1) * t.stride[1] +
                                            (t.size[2] - 1) * t.stride[2] + (t.size[3] - 1) * t.stride[3]);
      place.own = std::make_shared<std::vector<double>>(last + 1, NAN);
    } else if (at == ids.end()) {
      return refused(CUDNN_STATUS_BAD_PARAM, "tensor " + std::to_string(t.id) + " is not given");
    } else {
      place.at = pointers[static_cast<size_t>(at - ids.begin())];
      if (t.by_value) {
        place.own = std::make_shared<std::vector<double>>(1, *static_cast<const float*>(place.at));
      } else {
        if (reinterpret_cast<uintptr_t>(place.at) % static_cast<uintptr_t>(t.alignment))
          return refused(CUDNN_STATUS_BAD_PARAM, "tensor " + std::to_string(t.id) + " is not aligned");
        check_argument(handle->stream, __func__, place.at);
      }
    }
    places.push_back(std::move(place));
  }
  enqueue(of(handle->stream), {[program, places, workspace] {
                                 if (program->workspace)
                                   std::memset(workspace, 0x5a, static_cast<size_t>(program->workspace));
                                 run(*program, places);
                               },
                               "cudnnBackendExecute"});
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace isonorm::gpu
