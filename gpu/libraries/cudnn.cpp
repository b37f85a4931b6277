#include "gpu/libraries/cudnn.h"

#ifdef ISONORM_CUDNN

#include <algorithm>
#include <deque>
#include <type_traits>

#include "core/error.h"

namespace isonorm::gpu {
namespace {

using Op = GraphStep::Op;
using Handle = cudnnBackendDescriptor_t;

cudnnDataType_t type_of(GraphTensor::Type type) {
  switch (type) {
    case GraphTensor::Type::bf16:
      return CUDNN_DATA_BFLOAT16;
    case GraphTensor::Type::i32:
      return CUDNN_DATA_INT32;
    case GraphTensor::Type::boolean:
      return CUDNN_DATA_BOOLEAN;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

// The mode of an elementwise operation.
cudnnPointwiseMode_t mode_of(Op op) {
  switch (op) {
    case Op::multiply:
      return CUDNN_POINTWISE_MUL;
    case Op::add:
      return CUDNN_POINTWISE_ADD;
    case Op::subtract:
      return CUDNN_POINTWISE_SUB;
    case Op::divide:
      return CUDNN_POINTWISE_DIV;
    case Op::exp:
      return CUDNN_POINTWISE_EXP;
    case Op::log:
      return CUDNN_POINTWISE_LOG;
    case Op::row:
    case Op::column:
      return CUDNN_POINTWISE_GEN_INDEX;
    case Op::at_least:
      return CUDNN_POINTWISE_CMP_GE;
    case Op::select:
      return CUDNN_POINTWISE_BINARY_SELECT;
    default:
      return CUDNN_POINTWISE_IDENTITY;
  }
}

// void* is taken as an object of the library; plain pointers, which are void* too, need their type given.
template <class T> constexpr cudnnBackendAttributeType_t attribute_type() {
  if constexpr (std::is_same_v<T, int64_t>) return CUDNN_TYPE_INT64;
  if constexpr (std::is_same_v<T, bool>) return CUDNN_TYPE_BOOLEAN;
  if constexpr (std::is_same_v<T, char>) return CUDNN_TYPE_CHAR;
  if constexpr (std::is_same_v<T, cudnnHandle_t>) return CUDNN_TYPE_HANDLE;
  if constexpr (std::is_same_v<T, cudnnDataType_t>) return CUDNN_TYPE_DATA_TYPE;
  if constexpr (std::is_same_v<T, cudnnPointwiseMode_t>) return CUDNN_TYPE_POINTWISE_MODE;
  if constexpr (std::is_same_v<T, cudnnReduceTensorOp_t>) return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
  if constexpr (std::is_same_v<T, cudnnBackendHeurMode_t>) return CUDNN_TYPE_HEUR_MODE;
  if constexpr (std::is_same_v<T, Handle>) return CUDNN_TYPE_BACKEND_DESCRIPTOR;
}

void must(const CudnnFunctions& f, cudnnStatus_t status, const std::string& what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char said[512] = {};
  f.last_error(said, sizeof(said));
  check_io(false, "cuDNN: ", what, ": status ", static_cast<int>(status), ' ', said);
}

// An object of the library.
class Descriptor {
 public:
  Descriptor(const CudnnFunctions& f, cudnnBackendDescriptorType_t type) : f_(f) {
    must(f, f.create(type, &d_), text("descriptor ", static_cast<int>(type)));
  }
  ~Descriptor() { (void)f_.destroy(d_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  Handle handle() const { return d_; }

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<T> values,
                  cudnnBackendAttributeType_t type = attribute_type<std::remove_const_t<T>>()) {
    must(f_, f_.set(d_, name, type, std::ssize(values), values.data()), text("attribute ", static_cast<int>(name)));
    return *this;
  }
  template <class T> Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, std::span(&value, 1));
  }
  // Copies up to values.size() values; returns how many there are.
  template <class T> int64_t get(cudnnBackendAttributeName_t name, std::span<T> values) const {
    int64_t count = 0;
    must(f_,
         f_.get(d_, name, attribute_type<T>(), std::ssize(values), &count, values.empty() ? nullptr : values.data()),
         text("attribute ", static_cast<int>(name)));
    return count;
  }
  // True if the library accepts the attributes that were set.
  bool done() { return f_.finalize(d_) == CUDNN_STATUS_SUCCESS; }
  Handle done(const char* what) {
    must(f_, f_.finalize(d_), what);
    return d_;
  }

 private:
  const CudnnFunctions& f_;
  Handle d_ = nullptr;
};

using Descriptors = std::deque<Descriptor>;  // a deque: adding one does not move the others

int64_t id_of(size_t tensor) { return static_cast<int64_t>(tensor) + 1; }

// Describes a graph to the library.
class Description {
 public:
  Description(const CudnnFunctions& f, const Graph& graph, Descriptors& kept) : f_(f), kept_(kept) {
    for (size_t i = 0; i < graph.tensors.size(); ++i) tensors_.push_back(tensor(graph.tensors[i], i));
    for (const GraphStep& s : graph.steps) operations_.push_back(operation(s));
  }

  Handle graph() {
    return make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Handle>(operations_))
        .done("graph");
  }

 private:
  Descriptor& make(cudnnBackendDescriptorType_t type) { return kept_.emplace_back(f_, type); }

  Handle tensor(const GraphTensor& t, size_t number) {
    return make(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
        .set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(t.type))
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const int64_t>(t.size))
        .set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const int64_t>(t.stride))
        .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id_of(number))
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16})
        .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, t.place == GraphTensor::Place::nowhere)
        .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, t.place == GraphTensor::Place::number)
        .done("tensor");
  }

  Handle operation(const GraphStep& s) {
    switch (s.op) {
      case Op::product:
        return product(s);
      case Op::row_max:
      case Op::row_sum:
        return reduction(s);
      case Op::restride:
        return make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
            .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, at(s.x))
            .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, at(s.out))
            .done("reshape");
      default:
        return by_elements(s);
    }
  }
  Handle product(const GraphStep& s) {
    const Handle how =
        make(CUDNN_BACKEND_MATMUL_DESCRIPTOR).set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).done("matmul");
    return make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, at(s.x))
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, at(s.y))
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, at(s.out))
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how)
        .done("operation matmul");
  }
  Handle reduction(const GraphStep& s) {
    const Handle how =
        make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR)
            .set(CUDNN_ATTR_REDUCTION_OPERATOR, s.op == Op::row_max ? CUDNN_REDUCE_TENSOR_MAX : CUDNN_REDUCE_TENSOR_ADD)
            .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
            .done("reduction");
    return make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(s.x))
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(s.out))
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)
        .done("operation reduction");
  }
  Handle by_elements(const GraphStep& s) {
    const bool index = s.op == Op::row || s.op == Op::column;
    Descriptor& how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
                          .set(CUDNN_ATTR_POINTWISE_MODE, mode_of(s.op))
                          .set(CUDNN_ATTR_POINTWISE_MATH_PREC, index                  ? CUDNN_DATA_INT32
                                                               : s.op == Op::at_least ? CUDNN_DATA_BOOLEAN
                                                                                      : CUDNN_DATA_FLOAT);
    if (index) how.set(CUDNN_ATTR_POINTWISE_AXIS, int64_t{s.op == Op::row ? 2 : 3});
    const Handle kind = how.done("pointwise");
    Descriptor& d = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
                        .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind)
                        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(s.x))
                        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(s.out));
    if (s.y >= 0) d.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(s.y));
    if (s.z >= 0) d.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, at(s.z));
    return d.done("operation pointwise");
  }
  Handle at(int tensor) const { return tensors_[static_cast<size_t>(tensor)]; }

  const CudnnFunctions& f_;
  Descriptors& kept_;
  std::vector<Handle> tensors_, operations_;
};

bool uses(const Graph& graph, int tensor) {
  return std::any_of(graph.steps.begin(), graph.steps.end(), [&](const GraphStep& s) {
    return s.x == tensor || s.y == tensor || s.z == tensor || s.out == tensor;
  });
}

}  // namespace

CudnnFunctions CudnnFunctions::of(const Library& l) {
  CudnnFunctions f{};
  const auto get = [&](auto& to, const char* name) {
    to = l.function<std::remove_pointer_t<std::decay_t<decltype(to)>>>(name);
  };
  get(f.create_handle, "cudnnCreate");
  get(f.set_stream, "cudnnSetStream");
  get(f.last_error, "cudnnGetLastErrorString");
  get(f.create, "cudnnBackendCreateDescriptor");
  get(f.destroy, "cudnnBackendDestroyDescriptor");
  get(f.set, "cudnnBackendSetAttribute");
  get(f.get, "cudnnBackendGetAttribute");
  get(f.finalize, "cudnnBackendFinalize");
  get(f.execute, "cudnnBackendExecute");
  return f;
}

class Cudnn::Plan {
 public:
  Descriptors kept;  // objects that the plan refers to
  Handle handle = nullptr;
  int64_t workspace = 0;
  size_t given = 0;          // number of the caller's tensors
  std::vector<size_t> used;  // the caller's tensors that the steps use
  std::vector<int64_t> ids;  // their ids
};

Cudnn::Cudnn(const CudnnFunctions& functions) : f_(functions) {
  if (f_.create_handle(&handle_) != CUDNN_STATUS_SUCCESS) handle_ = nullptr;
}

template <class F> void Cudnn::propose(Plan& plan, const Graph& graph, const F& f) const {
  const auto make = [&](cudnnBackendDescriptorType_t type) -> Descriptor& { return plan.kept.emplace_back(f_, type); };
  const Handle whole = Description(f_, graph, plan.kept).graph();
  Descriptor& device = make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  if (handle_)
    device.set(CUDNN_ATTR_DEVICEPROP_HANDLE, handle_);
  else  // with the terminating 0
    device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span(described_.c_str(), described_.size() + 1));
  const Handle where = device.done("device");

  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    Descriptor& proposals = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
                                .set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole)
                                .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode)
                                .set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, where);
    if (!proposals.done()) continue;
    std::vector<Handle> configs(static_cast<size_t>(proposals.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, std::span<Handle>())));
    if (configs.empty()) continue;
    for (Handle& c : configs) c = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).handle();
    const int64_t count = proposals.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, std::span(configs));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      if (f(configs[i], where)) return;
  }
}

size_t Cudnn::proposed(const Graph& graph) const {
  Plan none;
  size_t count = 0;
  propose(none, graph, [&](Handle, Handle) { return ++count, false; });
  return count;
}

std::shared_ptr<const Cudnn::Plan> Cudnn::plan(const Graph& graph) const {
  const auto plan = std::make_shared<Plan>();
  propose(*plan, graph, [&](Handle config, Handle device) {
    Descriptor& d = plan->kept.emplace_back(f_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
                        .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config)
                        .set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    if (!d.done()) return false;
    plan->handle = d.handle();
    d.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, std::span(&plan->workspace, 1));
    return true;
  });
  if (!plan->handle) return nullptr;
  for (; graph.tensors[plan->given].place != GraphTensor::Place::nowhere; ++plan->given)
    if (uses(graph, static_cast<int>(plan->given))) plan->used.push_back(plan->given);
  for (size_t t : plan->used) plan->ids.push_back(id_of(t));
  return plan;
}

int64_t Cudnn::workspace(const Plan& plan) { return plan.workspace; }

void Cudnn::run(const Plan& plan, std::span<void* const> data, void* workspace, cudaStream_t stream) const {
  check(data.size() == plan.given, "cuDNN: ", data.size(), " tensors given, expected ", plan.given);
  std::vector<void*> used;
  for (size_t t : plan.used) used.push_back(data[t]);
  Descriptor pack(f_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const int64_t>(plan.ids))
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span(used), CUDNN_TYPE_VOID_PTR)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span(&workspace, 1), CUDNN_TYPE_VOID_PTR)
      .done("tensors of a call");
  must(f_, f_.set_stream(handle_, stream), "stream");
  must(f_, f_.execute(handle_, plan.handle, pack.handle()), "execution");
}

}  // namespace isonorm::gpu

#endif
