#include "core/tensor.h"

#include <algorithm>
#include <cstring>

#include "core/kernels/copy.h"
#include "core/pool.h"

namespace isonorm {

int64_t Tensor::size(int dim) const { return shape()[normalize_dim(dim, rank(), "size")]; }

Tensor empty(const Dims& shape, TensorOptions o, const char* op) {
  const int64_t count = numel(shape, op);
  auto storage = pool::make_shared<Storage>(checked_mul(count, size_of(o.dtype), op), o.device);
  return Tensor(
      pool::make_shared<TensorImpl>(std::move(storage), shape, contiguous_strides(shape), 0, count, o.dtype, true));
}

Tensor empty_like(const Tensor& like) { return empty(like.shape(), like.options()); }

int64_t tensor_bytes(const Tensor& x) {
  if (!x.defined()) return 0;
  int64_t elements = 1;
  for (int d = 0; d < x.rank(); ++d)
    if (x.strides()[d] != 0) elements *= x.shape()[d];
  return elements * size_of(x.dtype());
}

Tensor as_strided(const Tensor& base, const Dims& shape, const Dims& strides, int64_t offset) {
  const TensorImpl& b = base.impl();
  check(shape.rank == strides.rank, "as_strided: shape ", shape, " and strides ", strides, " differ in rank");
  const int64_t count = numel(shape);
  bool contiguous = true;
  int64_t expected = 1, lowest = offset, highest = offset;
  for (int i = shape.rank - 1; i >= 0; --i) {
    if (shape[i] != 1) contiguous &= strides[i] == expected;
    expected *= std::max<int64_t>(shape[i], 1);
    if (shape[i] == 0) continue;
    const int64_t reach = checked_mul(shape[i] - 1, strides[i], "as_strided");
    (reach < 0 ? lowest : highest) = checked_add(reach < 0 ? lowest : highest, reach, "as_strided");
  }
  if (count == 0)
    contiguous = true;
  else
    check(lowest >= 0 && highest < b.storage->bytes() / size_of(b.dtype), "as_strided: shape ", shape, ", strides ",
          strides, ", offset ", offset, " leave the storage of ", b.storage->bytes() / size_of(b.dtype), " elements");
  return Tensor(pool::make_shared<TensorImpl>(b.storage, shape, strides, offset, count, b.dtype, contiguous));
}

Tensor detach(const Tensor& x) {
  const TensorImpl& t = x.impl();
  return Tensor(pool::make_shared<TensorImpl>(t.storage, t.shape, t.strides, t.offset, t.numel, t.dtype, t.contiguous));
}

void copy_into(const Tensor& dst, const Tensor& src) {
  check(broadcast_shapes(dst.shape(), src.shape(), "copy_into") == dst.shape(), "copy_into: shape ", src.shape(),
        " does not broadcast to ", dst.shape());
  kernels::copy(dst, src);
}

void fill(const Tensor& dst, double value) { kernels::fill(dst, value); }

template <class T> Tensor from_span(std::span<const T> values, const Dims& shape) {
  Tensor out = empty(shape, {dtype_of<T>});
  check(static_cast<int64_t>(values.size()) == out.numel(), "from_span: ", values.size(), " values given for shape ",
        shape);
  if (!values.empty()) std::memcpy(out.mutable_data<T>(), values.data(), values.size() * sizeof(T));
  return out;
}

template <class T> std::vector<T> Tensor::to_vector() const {
  Tensor host = empty(shape(), {dtype_of<T>});
  kernels::copy(host, *this);
  const T* p = host.data<T>();
  return std::vector<T>(p, p + host.numel());
}

double Tensor::item() const {
  check(numel() == 1, "item: the tensor has shape ", shape(), ", expected one element");
  Tensor host = empty(shape(), {DType::f64});
  kernels::copy(host, *this);
  return *host.data<double>();
}

template Tensor from_span(std::span<const float>, const Dims&);
template Tensor from_span(std::span<const double>, const Dims&);
template Tensor from_span(std::span<const bf16>, const Dims&);
template Tensor from_span(std::span<const int64_t>, const Dims&);
template Tensor from_span(std::span<const uint8_t>, const Dims&);
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<bf16> Tensor::to_vector() const;
template std::vector<int64_t> Tensor::to_vector() const;
template std::vector<uint8_t> Tensor::to_vector() const;

}  // namespace isonorm
