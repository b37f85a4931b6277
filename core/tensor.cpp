#include "core/tensor.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/kernels/copy.h"
#include "core/memory/bytes.h"
#include "core/memory/pool.h"
#include "core/tensor_map.h"
#include "core/view.h"

namespace isonorm {

int64_t Tensor::size(int dim) const { return shape().v[normalize_dim(dim, rank(), "size")]; }

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
    if (x.strides().v[d] != 0) elements *= x.shape().v[d];
  return elements * size_of(x.dtype());
}

namespace {

// The first and the last element of the storage that a view reaches. No size in `shape` is 0.
std::pair<int64_t, int64_t> extent(const Dims& shape, const Dims& strides, int64_t offset,
                                   const char* op = "as_strided") {
  int64_t lowest = offset, highest = offset;
  for (int i = 0; i < shape.rank; ++i) {
    const int64_t reach = checked_mul(shape.v[i] - 1, strides.v[i], op);
    (reach < 0 ? lowest : highest) = checked_add(reach < 0 ? lowest : highest, reach, op);
  }
  return {lowest, highest};
}

// True if the memory ranges of a and b overlap.
bool may_overlap(const Tensor& a, const Tensor& b) {
  if (a.impl().storage != b.impl().storage || a.numel() == 0 || b.numel() == 0) return false;
  const auto [a_first, a_last] = extent(a.shape(), a.strides(), a.impl().offset);
  const auto [b_first, b_last] = extent(b.shape(), b.strides(), b.impl().offset);
  return a_first <= b_last && b_first <= a_last;
}

// Returns true only if no two elements share a place: each stride must exceed the extent that the smaller strides span.
// True for every view of a contiguous tensor that is not stretched.
bool places_differ(const Tensor& x) {
  for (int i = 0; i < x.rank(); ++i) {
    if (x.shape().v[i] <= 1) continue;
    const int64_t step = std::abs(x.strides().v[i]);
    int64_t reach = 0;  // extent of the smaller strides, and of equal ones at lower dimensions
    for (int j = 0; j < x.rank(); ++j)
      if (const int64_t other = std::abs(x.strides().v[j]); other < step || (other == step && j < i))
        reach += other * (x.shape().v[j] - 1);
    if (step <= reach) return false;
  }
  return true;
}

}  // namespace

Tensor as_strided(const Tensor& base, const Dims& shape, const Dims& strides, int64_t offset) {
  const TensorImpl& b = base.impl();
  check(shape.rank == strides.rank, "as_strided: shape ", shape, " and strides ", strides, " differ in rank");
  const int64_t count = numel(shape);
  bool contiguous = true;
  int64_t expected = 1;
  for (int i = shape.rank - 1; count > 0 && i >= 0; --i) {
    if (shape.v[i] != 1) contiguous &= strides.v[i] == expected;
    expected *= shape.v[i];
  }
  if (count > 0) {
    const auto [lowest, highest] = extent(shape, strides, offset);
    check(lowest >= 0 && highest < b.storage->bytes() / size_of(b.dtype), "as_strided: shape ", shape, ", strides ",
          strides, ", offset ", offset, " leave the storage of ", b.storage->bytes() / size_of(b.dtype), " elements");
  }
  return Tensor(pool::make_shared<TensorImpl>(b.storage, shape, strides, offset, count, b.dtype, contiguous));
}

Tensor detach(const Tensor& x) {
  const TensorImpl& t = x.impl();
  return Tensor(pool::make_shared<TensorImpl>(t.storage, t.shape, t.strides, t.offset, t.numel, t.dtype, t.contiguous));
}

void copy_into(const Tensor& dst, const Tensor& src) {
  check(broadcast_shapes(dst.shape(), src.shape(), "copy_into") == dst.shape(), "copy_into: shape ", src.shape(),
        " does not broadcast to ", dst.shape());
  check(dst.numel() == 0 || places_differ(dst), "copy_into: elements of the destination share a place: shape ",
        dst.shape(), ", strides ", dst.strides());
  if (!may_overlap(dst, src)) return kernels::copy_between(dst, src);
  kernels::copy(dst, detached::clone(src));
}

void fill(const Tensor& dst, Scalar value) {
  check_fits(value, dst.dtype(), "fill");
  if (dst.dtype() == DType::i64 && std::abs(value) >= 0x1p53 && dst.numel() > 0)
    kernels::copy_between(dst, tensor(*value.integer()));
  else
    kernels::fill(dst, value);
}

Tensor detail::from_elements(const void* values, size_t count, DType dtype, const Dims& shape) {
  const Tensor out = empty(shape, {dtype});
  check(static_cast<int64_t>(count) == out.numel(), "from_span: ", count, " values given for shape ", shape);
  if (count > 0) std::memcpy(mutable_bytes_of(out), values, static_cast<size_t>(byte_size(out)));
  return out;
}

Tensor detail::over_memory(const void* data, DType dtype, const Dims& shape, const Dims& strides,
                           std::shared_ptr<const void> owner) {
  check(shape.rank == strides.rank, "from_blob: shape ", shape, " and strides ", strides, " differ in rank");
  const int64_t count = numel(shape, "from_blob"), size = size_of(dtype);
  const auto [lowest, highest] =
      count > 0 ? extent(shape, strides, 0, "from_blob") : std::pair<int64_t, int64_t>{0, -1};
  const int64_t elements = checked_add(checked_add(highest, 1, "from_blob"), -lowest, "from_blob");
  const int64_t bytes = checked_mul(elements, size, "from_blob");
  check(count == 0 || data != nullptr, "from_blob: the pointer is null, the shape ", shape);
  check(reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(size) == 0, "from_blob: the address of ", dtype,
        " elements is not a multiple of ", size);
  auto* const first = const_cast<std::byte*>(static_cast<const std::byte*>(data) + lowest * size);
  // Releases the owner here. Left to the deleter's destructor, it would live as long as a weak_ptr to the storage.
  const auto end = [owner = std::move(owner)](Storage* s) mutable { delete s, owner.reset(); };
  const std::shared_ptr<Storage> storage(new Storage(first, bytes, kCpu), end);
  const Tensor all(pool::make_shared<TensorImpl>(storage, Dims{elements}, Dims{1}, 0, elements, dtype, true));
  return as_strided(all, shape, strides, -lowest);
}

Tensor Tensor::on_host(DType dtype) const {
  if (device() == kCpu && is_contiguous() && this->dtype() == dtype) return *this;
  if (dtype == DType::i64 && is_floating(this->dtype())) {
    const Tensor values = on_host(DType::f64);
    const auto* v = values.data<double>();
    for (int64_t i = 0; i < values.numel(); ++i)
      check(v[i] >= -0x1p63 && v[i] < 0x1p63, "to_vector: ", v[i], " does not fit into i64");
  }
  Tensor host = empty(shape(), {dtype});
  kernels::copy_between(host, *this);
  return host;
}

void Tensor::check_one_element() const {
  check(numel() == 1, "item: the tensor has shape ", shape(), ", expected one element");
}

double Tensor::item() const {
  check_one_element();
  const double value = *on_host(DType::f64).data<double>();
  if (dtype() == DType::i64) {
    const int64_t exact = item<int64_t>();
    check(value < 0x1p63 && static_cast<int64_t>(value) == exact, "item: ", exact,
          " is no double; item<int64_t>() gives it");
  }
  return value;
}

void TensorMap::add(const std::string& name, const Tensor& tensor) {
  check(index_.emplace(name, entries_.size()).second, "tensor map: the name '", name, "' is there already");
  entries_.emplace_back(name, tensor);
}

TensorMap TensorMap::below(std::string_view prefix) const {
  TensorMap found;
  found.set_torch(is_torch_);
  for (const auto& [name, tensor] : entries_)
    if (name.starts_with(prefix)) found.add(name.substr(prefix.size()), tensor);
  return found;
}

const Tensor* TensorMap::find(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &entries_[at->second].second;
}

const Tensor& TensorMap::at(std::string_view name) const {
  const Tensor* t = find(name);
  check(t != nullptr, "tensor map: there is no tensor '", name, "'");
  return *t;
}

}  // namespace isonorm
