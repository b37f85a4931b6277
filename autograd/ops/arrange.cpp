#include "autograd/ops/shape.h"

#include <algorithm>

#include "autograd/node.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/pointwise.h"
#include "core/kernels/copy.h"
#include "core/kernels/create.h"
#include "core/view.h"

namespace isonorm {

Tensor cat(const std::vector<Tensor>& parts, int dim) {
  check(!parts.empty(), "cat: no tensors given");
  const Tensor& first = parts.front();
  const int d = normalize_dim(dim, first.rank(), "cat");
  Dims shape = first.shape();
  shape[d] = 0;
  std::vector<int64_t> sizes;
  for (const Tensor& p : parts) {
    check_same_device("cat", first, p);
    check(p.dtype() == first.dtype(), "cat: dtypes ", first.dtype(), " and ", p.dtype(), " differ");
    Dims like = p.rank() == first.rank() ? p.shape() : Dims{};
    if (p.rank() == first.rank()) like[d] = first.shape()[d];
    check(like == first.shape(), "cat: shapes ", first.shape(), " and ", p.shape(), " differ outside of dimension ",
          dim);
    sizes.push_back(p.shape()[d]);
    shape[d] = checked_add(shape[d], p.shape()[d], "cat");
  }
  Tensor out = empty(shape, first.options());
  int64_t at = 0;
  for (const Tensor& p : parts) {
    kernels::copy(detached::narrow(out, d, at, p.shape()[d]), p);
    at += p.shape()[d];
  }
  if (!is_floating(first.dtype())) return out;
  if (auto* n = track("cat", {&out, 1}, parts))
    n->backward = differentiable([sizes, d](Flow& g) {
      const std::vector<Tensor> places = split(g.out(), sizes, d);
      for (size_t i = 0; i < places.size(); ++i) g.give(static_cast<int>(i), places[i]);
    });
  return out;
}

Tensor stack(const std::vector<Tensor>& parts, int dim) {
  check(!parts.empty(), "stack: no tensors given");
  check(parts.front().rank() < kMaxRank, "stack: shape ", parts.front().shape(), " already has the maximum rank of ",
        kMaxRank);
  const int d = normalize_dim(dim, parts.front().rank() + 1, "stack");
  std::vector<Tensor> wide;
  for (const Tensor& p : parts) {
    check_same_device("stack", parts.front(), p);
    check(p.dtype() == parts.front().dtype(), "stack: dtypes ", parts.front().dtype(), " and ", p.dtype(), " differ");
    check(p.shape() == parts.front().shape(), "stack: shapes ", parts.front().shape(), " and ", p.shape(), " differ");
    wide.push_back(unsqueeze(p, d));
  }
  return cat(wide, d);
}

Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first, Scalar value) {
  check(!sequences.empty(), "pad_sequence: no sequences given");
  int64_t longest = 0;
  for (const Tensor& s : sequences) {
    check(s.rank() > 0, "pad_sequence: a sequence has shape [], expected [length, ...]");
    longest = std::max(longest, s.size(0));
  }
  std::vector<Tensor> padded;
  for (const Tensor& s : sequences) {
    const Tensor& first = sequences.front();
    check_same_device("pad_sequence", first, s);
    check(s.dtype() == first.dtype() && part(s.shape(), 1, s.rank()) == part(first.shape(), 1, first.rank()),
          "pad_sequence: sequences ", first.dtype(), ' ', first.shape(), " and ", s.dtype(), ' ', s.shape(),
          " differ in dtype or after the first dimension");
    std::vector<std::pair<int64_t, int64_t>> amounts(s.rank());
    amounts[0].second = longest - s.size(0);
    padded.push_back(pad(s, amounts, value));
  }
  return stack(padded, batch_first ? 0 : 1);
}

Tensor flip(const Tensor& x, const std::vector<int>& dims) {
  Dims strides = x.strides();
  int64_t offset = x.impl().offset;
  bool flipped[kMaxRank] = {};
  for (int dim : dims) {
    const int d = normalize_dim(dim, x.rank(), "flip");
    check(!flipped[d], "flip: dimension ", dim, " is given twice");
    flipped[d] = true;
    offset += x.numel() ? (x.shape()[d] - 1) * x.strides()[d] : 0;
    strides[d] = -strides[d];
  }
  Tensor y = empty_like(x);
  kernels::copy(y, as_strided(x, x.shape(), strides, offset));
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track("flip", {&y}, {&x}))
    n->backward = differentiable([dims](Flow& g) { g.give(0, flip(g.out(), dims)); });
  return y;
}

namespace {
// y, which was computed from x, as a tensor of its own: copied if it shares x's storage.
Tensor apart(const Tensor& y, const Tensor& x) { return y.impl().storage == x.impl().storage ? flip(y, {}) : y; }
}  // namespace

Tensor roll(const Tensor& x, const std::vector<int64_t>& shifts, const std::vector<int>& dims) {
  check(shifts.size() == dims.size(), "roll: ", shifts.size(), " shifts for ", dims.size(), " dimensions");
  Tensor y = contiguous(x);
  for (size_t k = 0; k < dims.size(); ++k) {
    const int d = normalize_dim(dims[k], x.rank(), "roll");
    const int64_t n = x.shape()[d], last = n == 0 ? 0 : (shifts[k] % n + n) % n;  // this many come to the front
    y = cat({narrow(y, d, n - last, last), narrow(y, d, 0, n - last)}, d);
  }
  return apart(y, x);
}

namespace {
using Amounts = std::vector<std::pair<int64_t, int64_t>>;

// The dimension that the first pair pads.
int first_padded(const char* op, const Tensor& x, const Amounts& amounts) {
  check(amounts.size() <= static_cast<size_t>(x.rank()), op, ": ", amounts.size(), " pairs given for shape ",
        x.shape());
  return x.rank() - static_cast<int>(amounts.size());
}
}  // namespace

Tensor pad(const Tensor& source, const Amounts& amounts, Scalar value) {
  check_fits(value, source.dtype(), "pad");
  const int first = first_padded("pad", source, amounts);
  Tensor x = source;
  Dims shape = x.shape(), begin = shape;
  for (int i = first; i < x.rank(); ++i) {
    const int64_t size = x.shape()[i], before = amounts[i - first].first, after = amounts[i - first].second;
    const int64_t cut = std::max<int64_t>(0, -before), left = size - cut + std::min<int64_t>(0, after);
    check(left >= 0, "pad: amounts ", before, " and ", after, " cut off more than the ", size, " entries of dimension ",
          i);
    if (left < size) x = narrow(x, i, cut, left);
    begin[i] = std::max<int64_t>(0, before);
    shape[i] = checked_add(checked_add(left, begin[i], "pad"), std::max<int64_t>(0, after), "pad");
  }
  const auto inside = [first, begin, sizes = x.shape()](Tensor t) {
    for (int i = first; i < sizes.rank; ++i) t = narrow(t, i, begin[i], sizes[i]);
    return t;
  };
  Tensor y = empty(shape, x.options());
  fill(y, value);
  kernels::copy(inside(y), x);
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track("pad", {&y}, {&x}))
    n->backward = differentiable([inside](Flow& g) { g.give(0, inside(g.out())); });
  return y;
}

Tensor pad_reflect(const Tensor& x, const Amounts& amounts) {
  const int first = first_padded("pad_reflect", x, amounts);
  Tensor y = contiguous(x);
  for (int i = first; i < x.rank(); ++i) {
    const int64_t n = x.shape()[i], before = amounts[i - first].first, after = amounts[i - first].second;
    check(before >= 0 && after >= 0 && before < n && after < n, "pad_reflect: amounts ", before, " and ", after,
          " are outside of [0, ", n, "), dimension ", i, " of shape ", x.shape());
    y = cat({flip(narrow(y, i, 1, before), {i}), y, flip(narrow(y, i, n - 1 - after, after), {i})}, i);
  }
  return apart(y, x);
}

Tensor repeat(const Tensor& x, const std::vector<int64_t>& times) {
  check(times.size() >= static_cast<size_t>(x.rank()) && times.size() <= kMaxRank, "repeat: ", times.size(),
        " factors for shape ", x.shape(), ", expected ", x.rank(), " to ", kMaxRank);
  const int rank = static_cast<int>(times.size()), extra = rank - x.rank();
  Dims shape;
  for (int i = 0; i < rank; ++i) {
    check(times[i] >= 0, "repeat: factor ", times[i], " is negative");
    shape.push_back(i < extra ? 1 : x.shape()[i - extra]);
  }
  Tensor y = reshape(x, shape);
  // One dimension at a time, from the last: reshaped to [before, 1, rest] and expanded in the middle.
  for (int i = rank - 1; i >= 0; --i) {
    if (times[i] == 1) continue;
    const int64_t before = numel(part(shape, 0, i), "repeat"), rest = numel(part(shape, i, rank), "repeat");
    shape[i] = checked_mul(shape[i], times[i], "repeat");
    y = reshape(contiguous(expand(reshape(y, {before, 1, rest}), {before, times[i], rest})), shape);
  }
  return apart(y, x);
}

Tensor repeat_interleave(const Tensor& x, int64_t times, int dim) {
  check(times >= 0, "repeat_interleave: factor ", times, " is negative");
  const int d = normalize_dim(dim, x.rank(), "repeat_interleave");
  check(x.rank() < kMaxRank, "repeat_interleave: shape ", x.shape(), " has rank ", x.rank(), ", expected at most ",
        kMaxRank - 1);
  const Tensor each = unsqueeze(x, d + 1);
  Dims stretched = each.shape(), shape = x.shape();
  stretched[d + 1] = times;
  shape[d] = checked_mul(shape[d], times, "repeat_interleave");
  return apart(reshape(expand(each, stretched), shape), x);
}

namespace {
Tensor triangle(const char* name, const Tensor& x, int64_t diagonal, bool lower) {
  check(x.rank() >= 2, name, ": shape ", x.shape(), " has fewer than two dimensions");
  diagonal = std::clamp(diagonal, -x.size(-2), x.size(-1));
  Tensor y = empty_like(x);
  kernels::triangle.on(x.device(), y, detached::contiguous(x), diagonal, lower);
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track(name, {&y}, {&x}))
    n->backward =
        differentiable([name, diagonal, lower](Flow& g) { g.give(0, triangle(name, g.out(), diagonal, lower)); });
  return y;
}
}  // namespace

Tensor diag(const Tensor& x, int64_t diagonal) {
  check(x.rank() == 1 || x.rank() == 2, "diag: shape is ", x.shape(), ", expected a vector or a matrix");
  const int64_t right = std::max<int64_t>(diagonal, 0), down = std::max<int64_t>(-diagonal, 0);
  const bool is_vector = x.rank() == 1;
  const int64_t rows = is_vector ? checked_add(x.size(0), right + down, "diag") : x.size(0);
  const int64_t columns = is_vector ? rows : x.size(1),
                n = is_vector ? x.size(0) : std::min(rows - down, columns - right);
  check(n >= 0, "diag: a matrix ", x.shape(), " has no diagonal ", diagonal);
  const Tensor at = add(mul(arange(n, {DType::i64, x.device()}), static_cast<double>(columns + 1)),
                        static_cast<double>(down * columns + right));  // in row-major order
  if (!is_vector) return index_select(reshape(x, {rows * columns}), 0, at);
  return reshape(scatter(zeros({checked_mul(rows, columns, "diag")}, x.options()), 0, at, x), {rows, columns});
}

Tensor tril(const Tensor& x, int64_t diagonal) { return triangle("tril", x, diagonal, true); }
Tensor triu(const Tensor& x, int64_t diagonal) { return triangle("triu", x, diagonal, false); }

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes) {
  Dims grid;
  for (const Tensor& x : axes) {
    check_same_device("meshgrid", axes.front(), x);
    check(x.rank() == 1, "meshgrid: an axis has shape ", x.shape(), ", expected rank 1");
    grid.push_back(x.numel());
  }
  std::vector<Tensor> all;
  for (int i = 0; i < grid.rank; ++i) {
    Dims along = grid;
    for (int d = 0; d < grid.rank; ++d)
      if (d != i) along[d] = 1;
    all.push_back(expand(reshape(axes[i], along), grid));
  }
  return all;
}

Tensor patchify(const Tensor& images, int64_t patch) {
  check(images.rank() == 4, "patchify: images have shape ", images.shape(), ", expected [n, height, width, channels]");
  const int64_t n = images.size(0), h = images.size(1), w = images.size(2), c = images.size(3);
  check(patch > 0 && h % patch == 0 && w % patch == 0, "patchify: images of shape ", images.shape(),
        " do not divide into patches of ", patch);
  const Tensor grid = reshape(images, {n, h / patch, patch, w / patch, patch, c});
  const int64_t width = checked_mul(checked_mul(patch, patch, "patchify"), c, "patchify");
  return apart(reshape(permute(grid, {0, 1, 3, 2, 4, 5}), {n, checked_mul(h / patch, w / patch, "patchify"), width}),
               images);
}

}  // namespace isonorm
