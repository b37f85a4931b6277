// Indices of Tensor, and the results of indexing, which can be assigned to. They follow NumPy and PyTorch:
//
//   x[1], x[-1]                            view: entry 1, or the last entry, of dimension 0, which is dropped; an i64
//                                          tensor without dimensions, tensor(1), is such a number, too
//   x(0, Slice(1, 3), Ellipsis, None)      view: an index for each dimension; Ellipsis stands for dimensions without
//                                          an index, None makes a dimension of size 1
//   x[ids], x(Slice(), ids)                copy: ids (i64, 1 dimension or more) take the place of a dimension; negative
//                                          ids count from the end
//   x[mask]                                copy: mask (u8) takes the place of its rank's dimensions and chooses the
//                                          entries at which it is not 0; they form one dimension
//   x[mask] = 0, x(0, Slice(1, 3)) = y     assignment, broadcast and converted; of equal ids the last one counts
//
// Several tensors choose together, broadcast: x(rows, columns) has x[rows_i, columns_i] at place i. If other dimensions
// lie between the dimensions that the tensors index, the chosen entries become the first dimensions of the result.
// Tensors as indices are read on the host. Assignment through them writes the whole view that they choose from.
//
// Reading is differentiable. Throws, naming the index and the shape, if there are more indices than dimensions, an
// index is out of range, a tensor is neither i64 nor u8, a mask's shape differs from its dimensions, or a step is not
// positive. Assignment throws if it would have to be recorded (the tensor or the value takes a gradient and no NoGrad
// lives), and if the value does not broadcast to the indexed shape.
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

// Every step-th position of [begin, end), as slice(); None stands for the beginning and the end.
struct Slice {
  std::optional<int64_t> begin, end;
  int64_t step;
  explicit Slice(std::optional<int64_t> begin = None, std::optional<int64_t> end = None, int64_t step = 1)
      : begin(begin), end(end), step(step) {}
};

// One index of any kind.
class Index {
 public:
  // Throws where an unsigned number is beyond int64_t: v.size() - 1 of an empty v.
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

// The tensor that was read. Without a name it is a place to assign to: x[0] = y writes x. With a name it is a Tensor like
// any other: `auto h = x[0]; h = relu(h);` makes h another tensor and leaves x alone.
class Indexed : public Tensor {
 public:
  Indexed(const Tensor& x, const std::vector<Index>& indices);
  Indexed(const Indexed& other);
  ~Indexed();

  void operator=(const Tensor& value) &&;  // throws for floats where the dtype is an integer's
  void operator=(const Indexed& value) && { std::move(*this) = static_cast<const Tensor&>(value); }
  void operator=(Scalar value) &&;  // throws where an integer dtype does not hold it
  Indexed& operator=(const Tensor& value) &;
  Indexed& operator=(const Indexed& value) & { return *this = static_cast<const Tensor&>(value); }
  template <class Y> void operator+=(const Y& y) && { std::move(*this) = *this + y; }
  template <class Y> void operator-=(const Y& y) && { std::move(*this) = *this - y; }
  template <class Y> void operator*=(const Y& y) && { std::move(*this) = *this * y; }
  template <class Y> void operator/=(const Y& y) && { std::move(*this) = *this / y; }

 private:
  // Of a copy that tensors chose: the view they chose from, the same with their dimensions as one, which one that is,
  // and the positions there.
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
