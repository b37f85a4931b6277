#include "tests/support/placement.h"

#include <algorithm>
#include <cstring>

#include "tests/support/test_device.h"

namespace isonorm::test {
namespace {

// The dimension that gets stride 0; -1 if there is none.
int stretch_dim(const Dims& shape, Layout layout) {
  for (int d = 0; d < shape.rank - (layout == Layout::stretched_outer); ++d)
    if (shape[d] > 1) return d;
  return -1;
}

struct Position {
  Dims strides;
  int64_t offset = 0, storage = 0;  // in elements
};

Position position(const Dims& shape, Layout layout) {
  Position p;
  p.strides = shape;
  int64_t step = 1;
  const auto lay = [&](int d, int64_t gap) {
    p.strides[d] = step * gap;
    step *= std::max<int64_t>(1, shape[d]) * gap;
  };
  switch (layout) {
    case Layout::contiguous:
    case Layout::offset:
    case Layout::sliced:
      // Sliced: every second element of each dimension, from the second one.
      for (int d = shape.rank - 1; d >= 0; --d) lay(d, layout == Layout::sliced ? 2 : 1);
      p.storage = step;
      if (layout == Layout::sliced)
        for (int d = 0; d < shape.rank; ++d) p.offset += p.strides[d] / 2;
      if (layout != Layout::contiguous) p.offset += 3, p.storage += 6;
      break;
    case Layout::transposed:
      for (int d = 0; d < shape.rank; ++d) lay(d, 1);
      p.storage = step;
      break;
    case Layout::stretched:
    case Layout::stretched_outer: {
      const int flat = stretch_dim(shape, layout);
      for (int d = shape.rank - 1; d >= 0; --d) d == flat ? void(p.strides[d] = 0) : lay(d, 1);
      p.storage = step;
    }
  }
  return p;
}

}  // namespace

const char* name_of(Layout layout) {
  constexpr const char* names[] = {"contiguous", "offset",   "transposed",
                                   "sliced",     "stride 0", "stride 0 outside of rows"};
  return names[static_cast<size_t>(layout)];
}

DType dtype_for(const Array& a, DType real) {
  if (a.dtype) return *a.dtype;
  return a.kind == Kind::real ? real : a.kind == Kind::index ? DType::i64 : DType::u8;
}

Tensor place(const Array& a, DType real, Layout layout, Device device) {
  const Position p = position(a.shape, layout);
  const Tensor base = empty({p.storage}, {dtype_for(a, real)});
  std::memset(base.impl().storage->data(), 0xff, static_cast<size_t>(base.impl().storage->bytes()));
  const Tensor t = as_strided(base, a.shape, p.strides, p.offset);
  visit_all(t.dtype(), [&]<class T>() {
    T* to = t.mutable_data<T>();
    size_t i = 0;
    for_each_index(a.shape, [&](const Dims& index) {
      int64_t at = 0;
      for (int d = 0; d < index.rank; ++d) at += index[d] * p.strides[d];
      to[at] = static_cast<T>(static_cast<acc_t<T>>(a.v[i++]));
    });
  });
  if (device == kCpu) return t;
  const Tensor there = empty(base.shape(), {base.dtype(), device});
  copy_into(there, base);
  return as_strided(there, a.shape, p.strides, p.offset);
}
Tensor place(const Array& a, DType real, Layout layout) { return place(a, real, layout, test_device()); }

Array uniform_rows(Array a, Layout layout) {
  const int flat = stretch_dim(a.shape, layout);
  if (flat < 0) return a;
  const Array from = a;
  size_t i = 0;
  for_each_index(a.shape, [&](Dims index) {
    index[flat] = 0;
    a.v[i++] = from.at(index);
  });
  return a;
}

Array quantise(Array a, DType real) {
  const DType d = dtype_for(a, real);
  if (d == DType::f32)
    for (double& x : a.v) x = static_cast<float>(x);
  if (d == DType::bf16)
    for (double& x : a.v) x = bf16(static_cast<float>(x));
  return a;
}

std::vector<std::vector<std::byte>> bytes_of(const Tensors& tensors) {
  std::vector<std::vector<std::byte>> all;
  for (const Tensor& t : tensors) {
    const int64_t n = t.impl().storage->bytes() / size_of(t.dtype());
    all.push_back(std::move(elements_of({as_strided(t, {n}, {1}, 0)})[0]));
  }
  return all;
}

std::vector<std::vector<std::byte>> elements_of(const Tensors& tensors) {
  std::vector<std::vector<std::byte>> all;
  for (const Tensor& t : tensors) {
    std::vector<std::byte>& bytes = all.emplace_back(static_cast<size_t>(t.numel() * size_of(t.dtype())));
    visit_all(t.dtype(), [&]<class T>() {
      const std::vector<T> values = t.to_vector<T>();
      if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    });
  }
  return all;
}

}  // namespace isonorm::test
