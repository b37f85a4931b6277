#include "gpu/emulated/libraries/cudnn.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "core/dtype.h"
#include "gpu/emulated/streams.h"

namespace isonorm::gpu {
namespace emulated {

struct CudnnHandle {
  int device;
  Stream* stream = nullptr;
};

namespace {

using Guard = std::lock_guard<std::recursive_mutex>;
using Index = std::array<int64_t, 4>;
using Name = cudnnBackendAttributeName_t;

thread_local std::string last_error;
cudnnStatus_t refused(cudnnStatus_t status, const std::string& why) {
  last_error = why;
  return status;
}

struct TensorInfo {
  Index size, stride;
  cudnnDataType_t type;
  int64_t id, alignment;
  bool is_virtual, by_value;
};
struct Step {
  cudnnBackendDescriptorType_t kind;
  int mode = 0;  // of an operation by elements or a reduction
  int64_t axis = 0;
  int x = -1, y = -1, b = -1, t = -1;  // tensors by their number
};
struct Program {
  std::vector<TensorInfo> tensors;
  std::vector<Step> steps;
  int64_t workspace = 0;  // bytes
};

struct Descriptor {
  struct Value {
    int64_t count;
    std::vector<std::byte> bytes;
  };
  cudnnBackendDescriptorType_t type;
  bool finished = false;
  std::map<int, Value> values = {};
  std::shared_ptr<const Program> program = nullptr;  // of a graph, what is proposed for it, and a plan

  template <class T> std::vector<T> all(Name name) const {
    const auto at = values.find(name);
    if (at == values.end()) return {};
    std::vector<T> v(static_cast<size_t>(at->second.count));
    std::memcpy(v.data(), at->second.bytes.data(), at->second.bytes.size());
    return v;
  }
  template <class T> T one(Name name, T otherwise = {}) const {
    const auto v = all<T>(name);
    return v.empty() ? otherwise : v[0];
  }
  Descriptor* other(Name name) const { return static_cast<Descriptor*>(one<void*>(name)); }
};

cudnnBackendAttributeType_t type_of(Name name) {
  switch (name) {
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
    case CUDNN_ATTR_MATMUL_COMP_TYPE:
    case CUDNN_ATTR_REDUCTION_COMP_TYPE:
    case CUDNN_ATTR_POINTWISE_MATH_PREC:
      return CUDNN_TYPE_DATA_TYPE;
    case CUDNN_ATTR_POINTWISE_MODE:
      return CUDNN_TYPE_POINTWISE_MODE;
    case CUDNN_ATTR_REDUCTION_OPERATOR:
      return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
    case CUDNN_ATTR_ENGINEHEUR_MODE:
      return CUDNN_TYPE_HEUR_MODE;
    case CUDNN_ATTR_DEVICEPROP_HANDLE:
      return CUDNN_TYPE_HANDLE;
    case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION:
      return CUDNN_TYPE_CHAR;
    case CUDNN_ATTR_TENSOR_IS_VIRTUAL:
    case CUDNN_ATTR_TENSOR_IS_BY_VALUE:
      return CUDNN_TYPE_BOOLEAN;
    case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS:
    case CUDNN_ATTR_VARIANT_PACK_WORKSPACE:
      return CUDNN_TYPE_VOID_PTR;
    case CUDNN_ATTR_POINTWISE_AXIS:
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
    case CUDNN_ATTR_TENSOR_STRIDES:
    case CUDNN_ATTR_TENSOR_UNIQUE_ID:
    case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return CUDNN_TYPE_INT64;
    default:
      return CUDNN_TYPE_BACKEND_DESCRIPTOR;
  }
}
size_t size_of(cudnnBackendAttributeType_t type) {
  if (type == CUDNN_TYPE_BOOLEAN || type == CUDNN_TYPE_CHAR) return 1;
  return type == CUDNN_TYPE_HANDLE || type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_VOID_PTR ||
                 type == CUDNN_TYPE_BACKEND_DESCRIPTOR
             ? 8
             : 4;
}

int64_t elements(const TensorInfo& t) { return t.size[0] * t.size[1] * t.size[2] * t.size[3]; }

// Reads a graph's operations; throws a line of what is wrong with it.
class Reader {
 public:
  std::shared_ptr<const Program> read(const Descriptor& graph) {
    const auto operations = graph.all<void*>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    if (operations.empty()) throw std::string("a graph without operations");
    int products = 0;
    bool copies = false;
    for (void* p : operations) {
      const Step s = step(*static_cast<const Descriptor*>(p));
      p_->steps.push_back(s);
      products += s.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
      copies |= s.kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR && s.mode == CUDNN_POINTWISE_IDENTITY;
    }
    // The backward of attention that does not add up dq keeps a matrix of scores.
    if (products == 5 && !copies) p_->workspace = 2 * elements(p_->tensors[static_cast<size_t>(p_->steps[0].y)]);
    return p_;
  }

 private:
  Step step(const Descriptor& d) {
    if (!d.finished) throw std::string("an operation that is not finished");
    Step s{.kind = d.type};
    switch (d.type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        s.x = read(d, CUDNN_ATTR_OPERATION_MATMUL_ADESC), s.b = read(d, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
        s.y = made(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
        break;
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        s.mode =
            d.other(CUDNN_ATTR_OPERATION_REDUCTION_DESC)->one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
        s.x = read(d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
        s.y = made(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
        break;
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        s.x = read(d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
        s.y = made(d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
        break;
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
        const Descriptor& how = *d.other(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
        s.mode = how.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
        s.axis = how.one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
        s.x = read(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
        if (d.other(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)) s.b = read(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
        if (d.other(CUDNN_ATTR_OPERATION_POINTWISE_TDESC)) s.t = read(d, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
        s.y = made(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
        break;
      }
      default:
        throw std::string("an operation of an unknown kind");
    }
    return s;
  }
  int read(const Descriptor& d, Name name) {
    const int n = number(d, name);
    const TensorInfo& t = p_->tensors[static_cast<size_t>(n)];
    if (t.is_virtual && !done_[n]) throw std::string("a virtual tensor is read before it is made");
    return n;
  }
  int made(const Descriptor& d, Name name) {
    const int n = number(d, name);
    if (done_[n]) throw std::string("a tensor is made twice");
    done_[n] = true;
    return n;
  }
  int number(const Descriptor& d, Name name) {
    const Descriptor* const t = d.other(name);
    if (!t || !t->finished) throw std::string("an operation without one of its tensors");
    if (const auto at = numbers_.find(t); at != numbers_.end()) return at->second;
    const auto size = t->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
               stride = t->all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    TensorInfo info{};
    std::copy_n(size.begin(), 4, info.size.begin());
    std::copy_n(stride.begin(), 4, info.stride.begin());
    info.type = t->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    info.id = t->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    info.alignment = t->one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    info.is_virtual = t->one<uint8_t>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    info.by_value = t->one<uint8_t>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    p_->tensors.push_back(info);
    return numbers_[t] = static_cast<int>(p_->tensors.size()) - 1;
  }

  std::shared_ptr<Program> p_ = std::make_shared<Program>();
  std::map<const Descriptor*, int> numbers_;
  std::map<int, bool> done_;
};

// A tensor while a plan runs: in memory of the device, or in numbers of its own.
struct Values {
  const TensorInfo* info;
  void* at = nullptr;
  std::shared_ptr<std::vector<double>> own = nullptr;

  size_t offset(const Index& i) const {
    int64_t sum = 0;  // a dimension of one element is read again
    for (size_t d = 0; d < 4; ++d) sum += info->size[d] == 1 ? 0 : i[d] * info->stride[d];
    return static_cast<size_t>(sum);
  }
  double get(const Index& i) const {
    const size_t k = offset(i);
    if (own) return own->at(k);
    if (info->type == CUDNN_DATA_BFLOAT16) return static_cast<float>(static_cast<const bf16*>(at)[k]);
    return static_cast<const float*>(at)[k];
  }
  void put(const Index& i, double v) const {
    const size_t k = offset(i);
    const bool half = info->type == CUDNN_DATA_BFLOAT16;
    if (!own)
      half ? void(static_cast<bf16*>(at)[k] = bf16(static_cast<float>(v)))
           : void(static_cast<float*>(at)[k] = static_cast<float>(v));
    else
      own->at(k) = half ? static_cast<float>(bf16(static_cast<float>(v))) : static_cast<float>(v);
  }
};

template <class F> void for_each(const Index& size, F f) {
  for (int64_t a = 0; a < size[0]; ++a)
    for (int64_t b = 0; b < size[1]; ++b)
      for (int64_t c = 0; c < size[2]; ++c)
        for (int64_t d = 0; d < size[3]; ++d) f(Index{a, b, c, d});
}

double by_element(int mode, int64_t axis, const Index& i, double x, double b, double t) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b;
    case CUDNN_POINTWISE_GEN_INDEX:
      return static_cast<double>(i[static_cast<size_t>(axis)]);
    case CUDNN_POINTWISE_BINARY_SELECT:
      return t != 0 ? x : b;
    default:
      return x;
  }
}

void run(const Program& program, std::vector<Values> places) {
  for (const Step& s : program.steps) {
    const auto place = [&](int n) -> Values& { return places[static_cast<size_t>(n)]; };
    Values& y = place(s.y);
    const Values& x = place(s.x);
    if (s.kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      y.at = x.at, y.own = x.own;
      continue;
    }
    const int64_t depth = x.info->size[3];
    for_each(y.info->size, [&](const Index& i) {
      double v = 0;
      if (s.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
        for (int64_t k = 0; k < depth; ++k) v += x.get({i[0], i[1], i[2], k}) * place(s.b).get({i[0], i[1], k, i[3]});
      } else if (s.kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
        const bool most = s.mode == CUDNN_REDUCE_TENSOR_MAX;
        v = most ? -HUGE_VAL : 0;
        for (int64_t k = 0; k < depth; ++k) {
          const double e = x.get({i[0], i[1], i[2], k});
          v = most ? std::max(v, e) : v + e;
        }
      } else {
        v = by_element(s.mode, s.axis, i, x.get(i), s.b < 0 ? 0 : place(s.b).get(i), s.t < 0 ? 0 : place(s.t).get(i));
      }
      y.put(i, v);
    });
  }
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
      d.program = Reader().read(d);
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
