// Indexing of tensors, and assignment to the result, as in NumPy and PyTorch:
//
//   x[1], x[-1]                            view: entry 1, or the last entry, of dimension 0, which is dropped. An i64
//                                          tensor of rank 0, such as tensor(1), counts as a number.
//   x(0, Slice(1, 3), Ellipsis, None)      view: an index for each dimension; Ellipsis stands for dimensions without
//                                          an index, None makes a dimension of size 1
//   x[ids], x(Slice(), ids)                copy: ids (i64, 1 dimension or more) take the place of a dimension; negative
//                                          ids count from the end
//   x[mask]                                copy: the entries at which mask (u8) is not 0, as one dimension, in place
//                                          of the dimensions that the mask covers
//   x[mask] = 0, x(0, Slice(1, 3)) = y     assignment, broadcast and converted; of equal ids the last one counts
//
// Several index tensors are broadcast and choose together: x(rows, columns) has x[rows_i, columns_i] at position i. If
// other dimensions lie between the indexed dimensions, the chosen entries become the first dimensions of the result.
// Index tensors are read on the host. Assignment through them rewrites the whole view that they choose from.
//
// Reading is differentiable. Throws, naming the index and the shape, if there are more indices than dimensions, an
// index is out of range, an index tensor is neither i64 nor u8, a mask's shape differs from its dimensions, or a step
// is not positive. Assignment throws if it would have to be recorded (the tensor or the value takes a gradient and no
// NoGrad lives), or if the value does not broadcast to the indexed shape.
#pragma once

#include <concepts>
#include <optional>
#include <variant>

#include "autograd/ops/pointwise.h"
#include "core/tensor.h"

namespace isonorm {

inline constexpr std::nullopt_t None = std::nullopt;
inline constexpr struct EllipsisIndex {
} Ellipsis{};

// Every step-th position of [begin, end), like slice(); None: from the beginning, to the end.
struct Slice {
  std::optional<int64_t> begin, end;
  int64_t step;
  explicit Slice(std::optional<int64_t> begin = None, std::optional<int64_t> end = None, int64_t step = 1)
      : begin(begin), end(end), step(step) {}
};

// One index of any kind.
class Index {
 public:
  // Throws if an unsigned number exceeds int64_t, such as v.size() - 1 of an empty v.
  template <std::integral I>
  requires(!std::same_as<I, bool>) Index(I i) : Index(static_cast<int64_t>(i), i > 0) {}
  Index(Slice slice);
  Index(std::nullopt_t);
  Index(EllipsisIndex);
  Index(const Tensor& ids);
  Index(const Index& other);
  Index& operator=(const Index& other);
  ~Index();

  std::variant<int64_t, Slice, std::nullopt_t, EllipsisIndex, Tensor> value;

 private:
  Index(int64_t i, bool positive);
};

// The result of indexing. Without a name it is a place to assign to: x[0] = y writes x. With a name it is a Tensor like
// any other: `auto h = x[0]; h = relu(h);` makes h another tensor and leaves x alone.
class Indexed : public Tensor {
 public:
  Indexed(const Tensor& x, const std::vector<Index>& indices);
  Indexed(const Indexed& other);
  ~Indexed();

  void operator=(const Tensor& value) &&;  // throws if value is floating and this tensor is not
  void operator=(const Indexed& value) && { std::move(*this) = static_cast<const Tensor&>(value); }
  void operator=(Scalar value) &&;  // throws if an integer dtype cannot hold the value
  Indexed& operator=(const Tensor& value) &;
  Indexed& operator=(const Indexed& value) & { return *this = static_cast<const Tensor&>(value); }
  template <class Y> void operator+=(const Y& y) && { std::move(*this) = *this + y; }
  template <class Y> void operator-=(const Y& y) && { std::move(*this) = *this - y; }
  template <class Y> void operator*=(const Y& y) && { std::move(*this) = *this * y; }
  template <class Y> void operator/=(const Y& y) && { std::move(*this) = *this / y; }

 private:
  // A copy chosen by index tensors: the view they chose from, its shape with the indexed dimensions merged into
  // one, that dimension, and the positions along it.
  struct Choice {
    Tensor from;
    Dims merged;
    int dim;
    std::vector<int64_t> positions;
  };
  std::optional<Choice> choice_;
};

template <class... More> Indexed Tensor::operator()(const Index& first, const More&... more) const {
  return {*this, {first, Index(more)...}};
}

}  // namespace isonorm
