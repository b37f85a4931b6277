// Tensor: a handle to an n-dimensional array. Copying the handle gives the same tensor; views share storage. A tensor
// knows nothing of gradients beyond an opaque pointer to the graph node that made it (null: no gradient is tracked).
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/dims.h"
#include "core/dtype.h"
#include "core/memory/storage.h"

namespace isonorm {

namespace autograd {
struct Node;  // autograd/node.h
}

struct TensorImpl {
  std::shared_ptr<Storage> storage;
  Dims shape;
  Dims strides;    // in elements
  int64_t offset;  // of the first element, in elements
  int64_t numel;
  DType dtype;
  bool contiguous;  // row-major without gaps
  int output = 0;   // which output of `node` this is
  std::shared_ptr<autograd::Node> node;

  TensorImpl(std::shared_ptr<Storage> storage, const Dims& shape, const Dims& strides, int64_t offset, int64_t numel,
             DType dtype, bool contiguous)
      : storage(std::move(storage)),
        shape(shape),
        strides(strides),
        offset(offset),
        numel(numel),
        dtype(dtype),
        contiguous(contiguous) {}
};

struct TensorOptions {
  DType dtype = DType::f32;
  Device device = kCpu;
};

class Index;    // autograd/methods.h
class Indexed;  // autograd/methods.h

// Dimensions of a reduction, as a method takes them: none (all of them), 0, or {0, -1}.
struct DimList : std::vector<int> {
  DimList() = default;
  DimList(int dim) : std::vector<int>{dim} {}
  DimList(std::initializer_list<int> dims) : std::vector<int>(dims) {}
  DimList(std::vector<int> dims) : std::vector<int>(std::move(dims)) {}
};

class Tensor {
 public:
  Tensor() = default;  // undefined: defined() is false, everything else throws

  bool defined() const { return impl_ != nullptr; }
  const Dims& shape() const { return impl().shape; }
  const Dims& strides() const { return impl().strides; }
  int rank() const { return impl().shape.rank; }
  int64_t size(int dim) const;  // dim counts from the end where negative
  int64_t numel() const { return impl().numel; }
  DType dtype() const { return impl().dtype; }
  Device device() const { return impl().storage->device(); }
  TensorOptions options() const { return {dtype(), device()}; }
  bool is_contiguous() const { return impl().contiguous; }

  // Address of the first element. T must match dtype(). Elements lie at strides() from there.
  template <class T> const T* data() const { return static_cast<const T*>(address(dtype_of<T>)); }
  // As data(), for writing: raises the storage's version, so that a backward which needs the old values refuses to run.
  template <class T> T* mutable_data() const {
    impl().storage->bump_version();
    return static_cast<T*>(address(dtype_of<T>));
  }

  // The value of a tensor with one element, of any dtype and device. Throws where numel() != 1.
  double item() const;
  // All elements in row-major order, converted to T.
  template <class T> std::vector<T> to_vector() const;

  // Another spelling of the free functions of these names, which are the definition and say what is thrown
  // (autograd/ops/*.h): x.sum(0) is sum(x, {0}).
  Tensor sum(const DimList& dims = {}, bool keepdim = false) const;
  Tensor mean(const DimList& dims = {}, bool keepdim = false) const;
  Tensor amax(const DimList& dims = {}, bool keepdim = false) const;
  Tensor amin(const DimList& dims = {}, bool keepdim = false) const;
  Tensor var(const DimList& dims = {}, double correction = 1, bool keepdim = false) const;
  Tensor norm(const DimList& dims = {}, bool keepdim = false) const;
  Tensor argmax(int dim = -1, bool keepdim = false) const;
  Tensor argmin(int dim = -1, bool keepdim = false) const;
  Tensor prod(const DimList& dims = {}, bool keepdim = false) const;
  Tensor std(const DimList& dims = {}, double correction = 1, bool keepdim = false) const;
  Tensor median() const;
  Tensor cumsum(int dim) const;
  Tensor any(const DimList& dims = {}, bool keepdim = false) const;
  Tensor all(const DimList& dims = {}, bool keepdim = false) const;
  Tensor nonzero() const;
  Tensor isnan() const;
  Tensor isinf() const;
  Tensor isfinite() const;
  Tensor masked_fill(const Tensor& mask, double value) const;
  bool equal(const Tensor& other) const;
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
  Tensor softmax(int dim = -1) const;
  Tensor reshape(const Dims& shape) const;
  Tensor view(const Dims& shape) const;
  Tensor flatten(int first = 0, int last = -1) const;
  Tensor transpose(int a = -2, int b = -1) const;
  Tensor permute(const std::vector<int>& order) const;
  Tensor squeeze(int dim) const;
  Tensor unsqueeze(int dim) const;
  Tensor expand(const Dims& shape) const;
  Tensor contiguous() const;
  Tensor clone() const;
  Tensor detach() const;
  Tensor to(Device device) const;
  Tensor to(DType dtype) const;
  Tensor matmul(const Tensor& other) const;
  Tensor pow(double p) const;
  Tensor clamp(double lo, double hi) const;
  Tensor abs() const;
  Tensor exp() const;
  Tensor log() const;
  Tensor sqrt() const;
  Tensor square() const;
  Tensor relu() const;
  Tensor sigmoid() const;
  Tensor tanh() const;

  // The same for those of autograd/engine.h.
  Tensor require_grad(bool on = true) const;
  bool requires_grad() const;
  Tensor grad() const;
  void backward(const Tensor& cotangent = Tensor()) const;

  // x[i], x[mask], x[ids], x(0, Slice(1, 3), Ellipsis, None), to read and to assign to: see autograd/methods.h.
  Indexed operator[](const Index& index) const;
  template <class... More> Indexed operator()(const Index& first, const More&... more) const;

  [[gnu::always_inline]] TensorImpl& impl() const {
    check(impl_ != nullptr, "tensor: it is undefined (a default-constructed handle)");
    return *impl_;
  }
  const std::shared_ptr<TensorImpl>& handle() const { return impl_; }
  explicit Tensor(std::shared_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}

 private:
  void* address(DType as) const {
    const TensorImpl& t = impl();
    check(t.dtype == as, "data: the tensor holds ", t.dtype, ", asked for ", as);
    return static_cast<std::byte*>(t.storage->data()) + t.offset * size_of(as);
  }
  std::shared_ptr<TensorImpl> impl_;
};

// A new contiguous tensor with uninitialised elements. Throws on a negative size or where memory is out; `op` is who
// asks for it, named in the message.
Tensor empty(const Dims& shape, TensorOptions options = {}, const char* op = "empty");
// As empty(), of the same shape, dtype and device as `like` (contiguous whatever its strides).
Tensor empty_like(const Tensor& like);

// A tensor over the storage of `base`, without graph. Throws where an element would lie outside of the storage.
Tensor as_strided(const Tensor& base, const Dims& shape, const Dims& strides, int64_t offset);

// Throws "op: cuda:0 and cpu" where one of the others lies on another device than x. Undefined ones lie nowhere.
template <class... Others> void check_same_device(const char* op, const Tensor& x, const Others&... others) {
  const Device device = x.device();
  for (const Tensor* other : std::initializer_list<const Tensor*>{&others...})
    if (other->defined()) check(other->device() == device, op, ": ", device, " and ", other->device());
}

// The same data without graph: gradients do not flow through the result.
Tensor detach(const Tensor& x);

// A CPU tensor with a copy of `values` in row-major order. Throws where their number is not numel(shape).
template <class T> Tensor from_span(std::span<const T> values, const Dims& shape);
template <class T> Tensor from_vector(const std::vector<T>& values, const Dims& shape) {
  return from_span(std::span<const T>(values), shape);
}
namespace detail {
// What a list of T becomes: bool u8, other integers (uint8_t stays) i64.
template <class T> struct Listed { using type = T; };
template <std::integral T> struct Listed<T> { using type = int64_t; };
template <> struct Listed<bool> { using type = uint8_t; };
template <> struct Listed<uint8_t> { using type = uint8_t; };
template <class T> using listed_t = typename Listed<T>::type;

// Appends what nested lists hold; the first list of each level decides shape[level].
template <class V, class T>
void append_list(std::vector<V>& values, Dims& shape, int level, std::initializer_list<T> list) {
  const auto n = static_cast<int64_t>(list.size());
  if (shape.rank == level) shape.push_back(n);
  check(shape[level] == n, "tensor: lists of ", shape[level], " and of ", n, " entries beside each other");
  for (const T& entry : list)
    if constexpr (requires { entry.begin(); })
      append_list(values, shape, level + 1, entry);
    else
      values.push_back(static_cast<V>(entry));
}
template <class V, class T> Tensor from_lists(std::initializer_list<T> lists, int levels) {
  std::vector<V> values;
  Dims shape;
  append_list(values, shape, 0, lists);
  while (shape.rank < levels) shape.push_back(0);
  return from_vector(values, shape);
}
}  // namespace detail

// A CPU tensor from nested lists of up to three levels: tensor({{1., 2.}, {3., 4.}}) is f64 [2, 2], tensor({1.f}) f32
// [1], tensor({1, 2}) i64 [2], tensor({true}) u8 [1]. Throws where lists beside each other differ in length.
template <class T> Tensor tensor(std::initializer_list<T> values) {
  return detail::from_lists<detail::listed_t<T>>(values, 1);
}
template <class T> Tensor tensor(std::initializer_list<std::initializer_list<T>> rows) {
  return detail::from_lists<detail::listed_t<T>>(rows, 2);
}
template <class T> Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes) {
  return detail::from_lists<detail::listed_t<T>>(planes, 3);
}

// Writes the elements of `src`, broadcast and converted, over `dst` in place. Both may be views, also of one another:
// what is written is what `src` held before. They may lie on two devices. Neither takes part in a graph. Throws where `dst` is stretched, or
// otherwise has two elements in one place.
void copy_into(const Tensor& dst, const Tensor& src);
// Sets every element in place: rounded once to nearest even, truncated to an integer. Throws where an integer dtype
// does not hold that.
void fill(const Tensor& dst, double value);

}  // namespace isonorm
