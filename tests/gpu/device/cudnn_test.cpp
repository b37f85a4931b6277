// Calls to cuDNN. No device is needed: functions that replace the library's show which plan is taken and how it is run.
// If the library itself is present, it makes a plan of each graph for a device that is only described.
#include "gpu/libraries/cudnn.h"

#include "tests/support/catch.h"

#ifdef ISONORM_CUDNN

#include <dlfcn.h>

#include <cstring>
#include <set>
#include <vector>

#include "core/error.h"

using namespace isonorm;
using namespace isonorm::gpu;

namespace {

void* at(intptr_t address) { return reinterpret_cast<void*>(address); }

AttentionShape shape(int64_t queries, int64_t size, bool causal) {
  const int64_t heads = 12, width = heads * size;
  const AttentionShape::Strides packed{queries * 3 * width, size, 3 * width}, plain{queries * width, size, width};
  AttentionShape s{4, heads, queries, queries, size, causal, packed, packed, packed, plain};
  s.dout = plain;
  s.dq = s.dk = s.dv = packed;
  return s;
}

// A library that proposes two engines.
std::set<cudnnBackendDescriptor_t> alive;
std::vector<cudnnBackendDescriptor_t> configs;
cudnnBackendDescriptor_t planned = nullptr, executed = nullptr;
std::vector<int64_t> ids;
std::vector<void*> pointers;
void* workspace = nullptr;
std::vector<int64_t> said;  // modes of elementwise operations, and their axis if they have one
bool proposes = true;
std::set<cudnnBackendDescriptor_t> plans;
int unmade = 0;  // number of plans, from the next on, that cannot be made

template <class T> void keep(std::vector<T>& to, int64_t n, const void* values) {
  to.assign(static_cast<const T*>(values), static_cast<const T*>(values) + n);
}
template <class T> T first(const void* values) {
  T v;
  std::memcpy(&v, values, sizeof(T));
  return v;
}

cudnnStatus_t create_handle(cudnnHandle_t* h) {
  *h = reinterpret_cast<cudnnHandle_t>(at(1));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t set_stream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }
void last_error(char* message, size_t size) { std::strncpy(message, "no such thing", size); }
cudnnStatus_t create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* d) {
  static intptr_t next = 0x1000;
  *d = at(next += 16);
  alive.insert(*d);
  if (type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) configs.push_back(*d);
  if (type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) plans.insert(*d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t destroy(cudnnBackendDescriptor_t d) {
  CHECK(alive.erase(d) == 1);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t,
                  int64_t count, const void* values) {
  CHECK(alive.contains(d));
  if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) planned = first<cudnnBackendDescriptor_t>(values);
  if (name == CUDNN_ATTR_POINTWISE_MODE) said.push_back(first<cudnnPointwiseMode_t>(values));
  if (name == CUDNN_ATTR_POINTWISE_AXIS) said.push_back(first<int64_t>(values));
  if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) keep(ids, count, values);
  if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) keep(pointers, count, values);
  if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) workspace = first<void*>(values);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t get(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t, int64_t,
                  int64_t* count, void* values) {
  CHECK(alive.contains(d));
  *count = 0;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) *count = proposes ? 2 : 0;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    *count = 1;
    const int64_t bytes = 640;
    std::memcpy(values, &bytes, sizeof(bytes));
  }
  return CUDNN_STATUS_SUCCESS;
}
bool refuses = false;
cudnnStatus_t finalize(cudnnBackendDescriptor_t d) {
  return plans.contains(d) && unmade-- > 0 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t execute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t) {
  executed = plan;
  return refuses ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

const CudnnFunctions kRecorded{&create_handle, &set_stream, &last_error, &create, &destroy,
                               &set,           &get,        &finalize,   &execute};

}  // namespace

TEST_CASE("of the plans that cuDNN proposes the first that can be made is taken") {
  const Cudnn library(kRecorded);
  const Graph graph = attention_backward_graph(shape(64, 64, true), true);
  configs.clear();
  REQUIRE(library.plan(graph));
  CHECK(planned == configs.at(0));
  configs.clear();
  unmade = 1;
  REQUIRE(library.plan(graph));
  CHECK(planned == configs.at(1));
  proposes = false;
  CHECK(!library.plan(graph));
  proposes = true;
  CHECK(alive.empty());
}

TEST_CASE("operations by elements are those of the graph") {
  const Cudnn library(kRecorded);
  said.clear();
  library.proposed(attention_forward_graph(shape(64, 64, true)));
  CHECK(said == std::vector<int64_t>{CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_GEN_INDEX, 2, CUDNN_POINTWISE_GEN_INDEX, 3,
                                     CUDNN_POINTWISE_CMP_GE, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_POINTWISE_SUB,
                                     CUDNN_POINTWISE_EXP, CUDNN_POINTWISE_LOG, CUDNN_POINTWISE_ADD,
                                     CUDNN_POINTWISE_DIV});
}

TEST_CASE("a plan is run with the tensors that its graph uses") {
  const Cudnn library(kRecorded);
  const auto plan = library.plan(attention_forward_graph(shape(64, 64, false)));
  REQUIRE(plan);
  CHECK(Cudnn::workspace(*plan) == 640);
  std::vector<void*> data;
  for (int i = 0; i < static_cast<int>(ForwardTensor::count); ++i) data.push_back(at(0x100 * (i + 1)));
  library.run(*plan, data, at(0x9000), nullptr);
  // q, k, v, out, lse, scale; `lowest` is for a causal mask only
  CHECK(ids == std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  CHECK(pointers == std::vector<void*>(data.begin(), data.end() - 1));
  CHECK(workspace == at(0x9000));
  refuses = true;
  CHECK_THROWS_WITH(
      library.run(*plan, data, nullptr, nullptr),
      text("cuDNN: execution: status ", static_cast<int>(CUDNN_STATUS_EXECUTION_FAILED), " no such thing"));
  refuses = false;
  data.pop_back();
  CHECK_THROWS_WITH(library.run(*plan, data, nullptr, nullptr), "cuDNN: 6 tensors given, expected 7");
}

#ifndef ISONORM_GPU_EMULATED

TEST_CASE("cuDNN knows each graph of attention") {
  // It needs the functions of a driver; the toolkit's library for linking has them.
  if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) && !dlopen(ISONORM_CUDA_STUB, RTLD_NOW | RTLD_GLOBAL)) {
    WARN(dlerror());
    return;
  }
  WARN(line_of(cudnn().facts()));
  if (!cudnn()) return;
  const char* const h100 =  // as cuDNN writes it, with the additional entries that 9.28 asks for
      R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], )"
      R"("regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32, )"
      R"("maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, )"
      R"("reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, )"
      R"("maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "memoryBusWidth": 5120, )"
      R"("oversizedSharedMemoryPerBlock": 0, "pciDeviceId": 0, "isTccDriver": 0, )"
      R"("supportCoopLaunch": 1, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, )"
      R"("l2CacheSize": 52428800, "deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900, )"
      R"("driverVer": 13000, "cudaDeviceId": 0, "totalGlobalMem": 85017493504, "smVersion": 900, )"
      R"("GPUProfile": 0, "runtimeVer": 13010, "cudartVer": 13010, "cudnnVersion": 91900, )"
      R"("schemaVersion": 1, "targetSMcount": 132, "deviceId": 0})";
  const Cudnn library(CudnnFunctions::of(cudnn()), h100);
  REQUIRE(library.usable());
  for (const auto& [length, size] : {std::pair<int64_t, int64_t>{1024, 64}, {197, 64}, {256, 128}})
    for (const bool causal : {false, true}) {
      INFO(length << " rows of " << size << ", causal " << causal);
      const AttentionShape s = shape(length, size, causal);
      CHECK(library.proposed(attention_forward_graph(s)) > 0);
      CHECK(library.proposed(attention_backward_graph(s, false)) > 0);
      CHECK(library.proposed(attention_backward_graph(s, true)) > 0);
    }
}

#endif

#endif
