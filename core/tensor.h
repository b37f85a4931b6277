// Tensor: a handle to an n-dimensional array. A copy of the handle is the same tensor; views share storage. A tensor
// knows of gradients only an opaque pointer to the graph node that made it (null: no gradient is tracked).
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
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
  int64_t offset;  // offset of the first element, in elements
  int64_t numel;
  DType dtype;
  bool contiguous;  // row-major without gaps
  int output = 0;   // number of this tensor among the outputs of `node`
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
struct TopK;    // autograd/ops/index.h

// Dimensions of a reduction, as methods take them: none (all dimensions), 0, or {0, -1}.
struct DimList : std::vector<int> {
  DimList() = default;
  DimList(int dim) : std::vector<int>{dim} {}
  DimList(std::initializer_list<int> dims) : std::vector<int>(dims) {}
  DimList(std::vector<int> dims) : std::vector<int>(std::move(dims)) {}
};

class Tensor {
 public:
  Tensor() = default;  // undefined: defined() is false, all other methods throw

  bool defined() const { return impl_ != nullptr; }
  const Dims& shape() const { return impl().shape; }
  const Dims& strides() const { return impl().strides; }
  int rank() const { return impl().shape.rank; }
  int64_t size(int dim) const;  // dim counts from the end if negative
  int64_t numel() const { return impl().numel; }
  DType dtype() const { return impl().dtype; }
  Device device() const { return impl().storage->device(); }
  TensorOptions options() const { return {dtype(), device()}; }
  bool is_contiguous() const { return impl().contiguous; }

  // Address of the first element; the others are at strides() from it. T must match dtype(): float, double, bf16,
  // int64_t or uint8_t.
  template <class T> const T* data() const { return static_cast<const T*>(address(dtype_of<T>)); }
  // Like data(), for writing. Raises the storage's version, so that a backward that needs the old values refuses to
  // run.
  template <class T> T* mutable_data() const {
    impl().storage->bump_version();
    return static_cast<T*>(address(dtype_of<T>));
  }

  // The value of a tensor with one element, of any dtype and device. Throws if numel() != 1, and for an integer that
  // double cannot represent: use item<int64_t>().
  double item() const;
  // The same as a T, converted like to_vector(): x.item<int64_t>() is exact.
  template <class T> T item() const {
    check_one_element();
    return to_vector<T>()[0];
  }
  // All elements in row-major order, converted to T, any type of number. Floating numbers are truncated to integers; in
  // bool, every number but 0 is true. Throws if T cannot hold an integer, and converting to an integer throws for NaN
  // and beyond int64_t.
  template <class T> std::vector<T> to_vector() const;

  // Methods for the free functions of the same names: x.sum(0) is sum(x, {0}). They are documented in autograd/ops/*.h.
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
  TopK median(int dim, bool keepdim = false) const;
  Tensor quantile(double q) const;
  Tensor quantile(double q, int dim, bool keepdim = false) const;
  Tensor max() const;  // amax()
  Tensor min() const;
  TopK max(int dim, bool keepdim = false) const;  // the values at argmax(dim), and their positions
  TopK min(int dim, bool keepdim = false) const;
  Tensor cumsum(int dim) const;
  Tensor any(const DimList& dims = {}, bool keepdim = false) const;
  Tensor all(const DimList& dims = {}, bool keepdim = false) const;
  Tensor nonzero() const;
  Tensor isnan() const;
  Tensor isinf() const;
  Tensor isfinite() const;
  Tensor masked_fill(const Tensor& mask, Scalar value) const;
  bool equal(const Tensor& other) const;
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
  Tensor logsumexp(const DimList& dims = {}, bool keepdim = false) const;
  TopK topk(int64_t k, int dim = -1) const;
  TopK sort(int dim = -1, bool descending = false) const;
  Tensor argsort(int dim = -1, bool descending = false) const;
  Tensor masked_select(const Tensor& mask) const;
  Tensor index_select(int dim, const Tensor& ids) const;
  Tensor gather(int dim, const Tensor& index) const;
  Tensor scatter(int dim, const Tensor& index, const Tensor& src) const;
  Tensor scatter_add(int dim, const Tensor& index, const Tensor& src) const;
  Tensor index_add(int dim, const Tensor& ids, const Tensor& src) const;
  Tensor softmax(int dim = -1) const;
  Tensor log_softmax(int dim = -1) const;
  Tensor reshape(const Dims& shape) const;
  Tensor view(const Dims& shape) const;
  Tensor flatten(int first = 0, int last = -1) const;
  Tensor transpose(int a = -2, int b = -1) const;
  Tensor t() const;  // transpose() of a matrix
  Tensor permute(const std::vector<int>& order) const;
  Tensor squeeze(int dim) const;
  Tensor unsqueeze(int dim) const;
  Tensor expand(const Dims& shape) const;
  Tensor expand_as(const Tensor& other) const;
  Tensor view_as(const Tensor& other) const;
  // Every step-th of the entries begin to end - 1 of dimension dim. Without begin: from the first entry; without end:
  // to the last.
  Tensor slice(int dim = 0, std::optional<int64_t> begin = {}, std::optional<int64_t> end = {}, int64_t step = 1) const;
  Tensor narrow(int dim, int64_t begin, int64_t length) const;
  Tensor select(int dim, int64_t index) const;
  std::vector<Tensor> split(const std::vector<int64_t>& sizes, int dim = 0) const;
  std::vector<Tensor> chunk(int64_t parts, int dim = 0) const;
  std::vector<Tensor> unbind(int dim = 0) const;
  Tensor unfold(int dim, int64_t size, int64_t step) const;
  Tensor flip(const std::vector<int>& dims) const;
  Tensor repeat(const std::vector<int64_t>& times) const;
  Tensor repeat_interleave(int64_t times, std::optional<int> dim = {}) const;  // without dim: of flatten()
  Tensor tril(int64_t diagonal = 0) const;
  Tensor triu(int64_t diagonal = 0) const;
  Tensor diag(int64_t diagonal = 0) const;
  Tensor contiguous() const;
  Tensor clone() const;
  Tensor detach() const;
  Tensor to(Device device) const;
  Tensor to(DType dtype) const;
  Tensor matmul(const Tensor& other) const;
  Tensor dot(const Tensor& other) const;
  Tensor pow(double p) const;
  Tensor pow(const Tensor& p) const;
  Tensor clamp(Scalar lo, Scalar hi) const;
  Tensor clamp_min(Scalar lo) const;
  Tensor clamp_max(Scalar hi) const;
  Tensor abs() const;
  Tensor exp() const;
  Tensor log() const;
  Tensor sqrt() const;
  Tensor square() const;
  Tensor relu() const;
  Tensor sigmoid() const;
  Tensor tanh() const;
  Tensor sign() const;
  Tensor floor() const;
  Tensor ceil() const;
  Tensor round() const;
  Tensor expm1() const;
  Tensor log2() const;
  Tensor log1p() const;
  Tensor rsqrt() const;
  Tensor reciprocal() const;
  Tensor sin() const;
  Tensor cos() const;
  Tensor erf() const;
  Tensor minimum(const Tensor& other) const;
  Tensor maximum(const Tensor& other) const;
  Tensor logical_not() const;

  // Methods for the functions of autograd/engine.h.
  Tensor require_grad(bool on = true) const;
  bool requires_grad() const;
  Tensor grad() const;
  void backward(const Tensor& cotangent = Tensor()) const;

  // x[i], x[mask], x[ids], x(0, Slice(1, 3), Ellipsis, None), for reading and for assignment: see autograd/methods.h.
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
  Tensor on_host(DType dtype) const;  // row-major, on the CPU
  void check_one_element() const;

  std::shared_ptr<TensorImpl> impl_;
};

// A new contiguous tensor with uninitialized elements. Throws if a size is negative or memory runs out. `op`: the name
// that the message begins with.
Tensor empty(const Dims& shape, TensorOptions options = {}, const char* op = "empty");
// empty() with the shape, dtype and device of `like`; contiguous whatever the strides of `like`.
Tensor empty_like(const Tensor& like);

// A tensor over the storage of `base`, without graph. strides and offset are in elements. offset counts from the start
// of the storage, not from the first element of `base`, whose offset is base.impl().offset. Throws if an element would
// be outside of the storage.
Tensor as_strided(const Tensor& base, const Dims& shape, const Dims& strides, int64_t offset);

// Throws "op: cuda:0 and cpu" if one of the others is on another device than x. Undefined tensors are skipped.
template <class... Others> void check_same_device(const char* op, const Tensor& x, const Others&... others) {
  const Device device = x.device();
  for (const Tensor* other : std::initializer_list<const Tensor*>{&others...})
    if (other->defined()) check(other->device() == device, op, ": ", device, " and ", other->device());
}

// The same data without graph: no gradient flows through the result.
Tensor detach(const Tensor& x);

namespace detail {

// A nested list: the type of its numbers and its number of levels. A number has 0 levels.
template <class T> struct Nested {
  static_assert(Element<T> || std::integral<T> || std::same_as<T, long double>,
                "a tensor is made of numbers: float, double, bf16, bool or an integer type, or lists of them");
  using number = T;
  static constexpr int levels = 0;
};
template <class T>
requires requires(const T& list) { list.begin(), list.end(), list.size(); }
struct Nested<T> {
  using number = typename Nested<typename T::value_type>::number;
  static constexpr int levels = 1 + Nested<typename T::value_type>::levels;
};

// `value` as an element. Throws if it is beyond int64_t.
template <class T> element_t<T> element(T value) {
  if constexpr (std::unsigned_integral<T> && sizeof(T) == 8)
    check(value <= static_cast<uint64_t>(INT64_MAX), "tensor: ", value, " is beyond the largest int64_t");
  return static_cast<element_t<T>>(value);
}

// Appends the numbers of nested lists. The first list of each level decides shape[level].
template <class V, class L> void append_list(std::vector<V>& values, Dims& shape, int level, const L& list) {
  const auto n = static_cast<int64_t>(list.size());
  if (shape.rank == level) shape.push_back(n);
  check(shape.v[level] == n, "tensor: lists of ", shape.v[level], " and of ", n, " entries beside each other");
  if constexpr (std::same_as<V, typename L::value_type>)
    values.insert(values.end(), list.begin(), list.end());
  else
    for (const auto& entry : list)
      if constexpr (Nested<typename L::value_type>::levels > 0)
        append_list(values, shape, level + 1, entry);
      else
        values.push_back(element<typename L::value_type>(entry));
}

// `value` as an integer of type T. Throws if T cannot hold it.
template <class T> T number(int64_t value) {
  const T n = static_cast<T>(value);
  check(static_cast<int64_t>(n) == value && (n < T{0}) == (value < 0), "to_vector: ", value, " does not fit ",
        std::is_signed_v<T> ? "a signed" : "an unsigned", " integer of ", 8 * sizeof(T), " bits");
  return n;
}

Tensor from_elements(const void* values, size_t count, DType dtype, const Dims& shape);
Tensor over_memory(const void* data, DType dtype, const Dims& shape, const Dims& strides,
                   std::shared_ptr<const void> owner);
template <class T>
Tensor blob(T* data, const Dims& shape, const Dims& strides, std::shared_ptr<const void> owner = nullptr) {
  static_assert(!std::is_const_v<T>,
                "from_blob: tensors can be written to, so the pointer must not be one to const; "
                "from_span copies");
  return over_memory(data, dtype_of<std::remove_const_t<T>>, shape, strides, std::move(owner));
}

}  // namespace detail

// A CPU tensor with a copy of `values` in row-major order. Elements keep their type; bool becomes u8, other integers
// i64, long double f64. Throws if the number of values is not numel(shape), or a number is beyond int64_t.
template <class T> Tensor from_span(std::span<const T> values, const Dims& shape) {
  static_assert(detail::Nested<T>::levels == 0,
                "from_span: the values are lists, not numbers; tensor(lists) takes these");
  if constexpr (Element<T>) {
    return detail::from_elements(values.data(), values.size(), dtype_of<T>, shape);
  } else {
    std::vector<element_t<T>> elements;
    elements.reserve(values.size());
    for (const T value : values) elements.push_back(detail::element(value));
    return from_span(std::span<const element_t<T>>(elements), shape);
  }
}
template <class T> Tensor from_vector(const std::vector<T>& values, const Dims& shape) {
  if constexpr (std::same_as<T, bool>)  // std::vector<bool> holds bits
    return from_vector(std::vector<uint8_t>(values.begin(), values.end()), shape);
  else
    return from_span(std::span<const T>(values), shape);
}

// A CPU tensor with a copy of nested lists and their shape. Lists are std::vector, std::array, std::span or braces (up
// to three levels). tensor({{1., 2.}, {3., 4.}}) is f64 [2, 2], tensor({1.f}) f32 [1], tensor({1, 2}) i64 [2],
// tensor({true}) u8 [1], tensor(std::vector<std::vector<float>>(2, {1, 2, 3})) f32 [2, 3]. Dtypes as in from_span().
// Throws if lists of the same level differ in length, or a number is beyond int64_t.
template <class L>
requires(detail::Nested<L>::levels > 0) Tensor tensor(const L& list) {
  std::vector<element_t<typename detail::Nested<L>::number>> values;
  Dims shape;
  detail::append_list(values, shape, 0, list);
  while (shape.rank < detail::Nested<L>::levels) shape.push_back(0);
  return from_vector(values, shape);
}
template <class T> Tensor tensor(std::initializer_list<T> values) { return tensor<std::initializer_list<T>>(values); }
template <class T> Tensor tensor(std::initializer_list<std::initializer_list<T>> rows) {
  return tensor<std::initializer_list<std::initializer_list<T>>>(rows);
}
template <class T> Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes) {
  return tensor<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>(planes);
}

// A CPU tensor of shape [] with one number: tensor(0.5) is f64, tensor(3) i64. Dtypes as in from_span().
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(T number) { return from_span(std::span<const T>(&number, 1), {}); }

// A CPU tensor over the caller's memory, without a copy; T is an element type. Element i, j, ... is data[i strides[0] +
// j strides[1] + ...]; without strides the elements are row-major. An image whose rows have `step` elements is
// from_blob(pixels, {height, width, 3}, {step, 3, 1}). Strides may be negative.
//
// Lifetime: without a deleter the memory must outlive the tensor, its views and the graphs that saved it. A deleter is
// called once, with `data`, after the tensor and all views and graphs are gone, or if from_blob() throws.
//
// If the caller writes through `data`, the tensor changes. Backward cannot detect such a write: do not write between a
// forward and its backward. Two tensors made by two calls over one memory do not know of each other; take views of a
// single tensor instead.
//
// Throws if shape and strides differ in rank, an address overflows int64, or `data` is null or not aligned to T.
template <class T> Tensor from_blob(T* data, const Dims& shape, const Dims& strides) {
  return detail::blob(data, shape, strides);
}
template <class T> Tensor from_blob(T* data, const Dims& shape) {
  return from_blob(data, shape, contiguous_strides(shape));
}
template <class T, std::invocable<T*> Deleter>
Tensor from_blob(T* data, const Dims& shape, const Dims& strides, Deleter deleter) {
  return detail::blob(data, shape, strides, std::shared_ptr<T>(data, std::move(deleter)));
}
template <class T, std::invocable<T*> Deleter> Tensor from_blob(T* data, const Dims& shape, Deleter deleter) {
  return from_blob(data, shape, contiguous_strides(shape), std::move(deleter));
}

template <class T> std::vector<T> Tensor::to_vector() const {
  static_assert(detail::Nested<T>::levels == 0, "to_vector: T is a list, not a number");
  if constexpr (Element<T>)
    if (dtype() == dtype_of<T>) {
      const Tensor host = on_host(dtype_of<T>);
      return std::vector<T>(host.data<T>(), host.data<T>() + host.numel());
    }
  using From =
      std::conditional_t<std::same_as<T, bool>, double, std::conditional_t<std::integral<T>, int64_t, element_t<T>>>;
  const Tensor host = on_host(dtype_of<From>);
  const From* elements = host.data<From>();
  std::vector<T> numbers(static_cast<size_t>(host.numel()));
  for (size_t i = 0; i < numbers.size(); ++i)
    if constexpr (std::same_as<T, bool>)
      numbers[i] = elements[i] != 0;
    else if constexpr (std::integral<T>)
      numbers[i] = detail::number<T>(elements[i]);
    else
      numbers[i] = static_cast<T>(elements[i]);
  return numbers;
}

// Copies `src` into `dst` in place, broadcast and converted to dst's shape and dtype. Both may be views, also of the
// same tensor: src is read as it was before. They may be on different devices. Autograd does not record the copy.
// Throws if src does not broadcast to dst's shape, and if two elements of dst share a place, as in a stretched view.
void copy_into(const Tensor& dst, const Tensor& src);
// Sets every element in place, rounded once to nearest even or truncated to an integer. Throws if an integer dtype
// cannot hold the value.
void fill(const Tensor& dst, Scalar value);

}  // namespace isonorm
