#include "tests/emulated_gpu/libraries/cudnn_descriptor.h"

#include <algorithm>
#include <string>

namespace isonorm::gpu::emulated {
namespace {

using Name = cudnnBackendAttributeName_t;

int64_t elements(const TensorInfo& t) { return t.size[0] * t.size[1] * t.size[2] * t.size[3]; }

// Reads a graph's operations. Throws a line that describes an error in the graph.
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
    // The attention backward that does not accumulate dq stores a matrix of scores.
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

}  // namespace

cudnnBackendAttributeType_t type_of(Name name) {
  static const std::map<cudnnBackendAttributeType_t, std::vector<Name>> names{
      {CUDNN_TYPE_DATA_TYPE,
       {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_ATTR_REDUCTION_COMP_TYPE,
        CUDNN_ATTR_POINTWISE_MATH_PREC}},
      {CUDNN_TYPE_POINTWISE_MODE, {CUDNN_ATTR_POINTWISE_MODE}},
      {CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, {CUDNN_ATTR_REDUCTION_OPERATOR}},
      {CUDNN_TYPE_HEUR_MODE, {CUDNN_ATTR_ENGINEHEUR_MODE}},
      {CUDNN_TYPE_HANDLE, {CUDNN_ATTR_DEVICEPROP_HANDLE}},
      {CUDNN_TYPE_CHAR, {CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION}},
      {CUDNN_TYPE_BOOLEAN, {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_ATTR_TENSOR_IS_BY_VALUE}},
      {CUDNN_TYPE_VOID_PTR, {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_ATTR_VARIANT_PACK_WORKSPACE}},
      {CUDNN_TYPE_INT64,
       {CUDNN_ATTR_POINTWISE_AXIS, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_ATTR_TENSOR_DIMENSIONS,
        CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
        CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE}}};
  for (const auto& [type, of_type] : names)
    if (std::find(of_type.begin(), of_type.end(), name) != of_type.end()) return type;
  return CUDNN_TYPE_BACKEND_DESCRIPTOR;
}
size_t size_of(cudnnBackendAttributeType_t type) {
  if (type == CUDNN_TYPE_BOOLEAN || type == CUDNN_TYPE_CHAR) return 1;
  return type == CUDNN_TYPE_HANDLE || type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_VOID_PTR ||
                 type == CUDNN_TYPE_BACKEND_DESCRIPTOR
             ? 8
             : 4;
}

std::shared_ptr<const Program> program_of(const Descriptor& graph) { return Reader().read(graph); }

}  // namespace isonorm::gpu::emulated
