#include "equivalence/verify/reference.h"

#include <cmath>
#include <limits>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/canonical.h"
#include "equivalence/convert/pieces.h"
#include "equivalence/coordinates/pairs.h"
#include "equivalence/verify/stream_reader.h"
#include "io/npz.h"
#include "io/safetensors.h"

namespace isonorm::equivalence {
namespace {

using nn::Role;

// What an output should be, and what its rounding is relative to: [rows, m], the sum of the absolute terms of each
// entry. A sum of `length` terms in any order is off by more than lambda sqrt(length) roundings of that with a
// probability of at most 2 exp(-lambda^2 / 2) (Higham & Mary, 2019); lambda is 2, as for the entries of a conversion.
struct Expected {
  Tensor value, size;
  int sums = 0, roundings = 0;  // that an entry goes through; the second of single numbers
  int64_t length = 1;

  // Of the program that computed in `dtype`, and of this one in f64. Sums of bf16 are held in f32.
  double bound(DType dtype) const {
    const double of_sums = 2 * sums * std::sqrt(static_cast<double>(length));
    const auto off = [&](DType single, DType sum) {
      return (roundings * epsilon(single) + of_sums * epsilon(sum)) / 2;  // a rounding is half an epsilon
    };
    return off(dtype, dtype == DType::bf16 ? DType::f32 : dtype) + off(DType::f64, DType::f64);
  }
};

// [.., n] in f64 as [rows, n].
Tensor rows_of(const std::string& name, const Tensor& x, int64_t n) {
  check(x.rank() >= 1 && x.size(-1) == n && x.numel() > 0, "reference: '", name, "' has shape ", x.shape(),
        ", expected rows of ", n);
  const Tensor rows = reshape(cast(x, DType::f64), {x.numel() / n, n});
  check(std::isfinite(largest_entry(rows)), "reference: '", name, "' holds NaN or infinity");
  return rows;
}

// The absolute terms that a normalised row is made of, gain and bias included. LayerNorm takes a mean off, in which
// all that a row has is rounded.
Tensor normalised_size(const TensorMap& state, const Layout& layout, const NormPlace& norm, const Tensor& x) {
  Tensor size;
  if (layout.form == nn::StreamForm::layer_norm)
    size = (abs(x) + mean(abs(x), {1}, true)) / sqrt(mean(square(x - mean(x, {1}, true)), {1}, true) + norm.eps);
  else
    size = abs(normalised(state, layout, {.name = norm.name, .eps = norm.eps}, x));
  if (!norm.weight.empty()) size = size * abs(widened(state, norm.weight));
  return norm.bias.empty() ? size : size + abs(widened(state, norm.bias));
}

class Check {
 public:
  Check(const training::LazyState& file, const Layout& layout, const TensorMap& reference)
      : file_(file), layout_(layout), reference_(reference) {
    check(!reference.empty(), "reference: it holds nothing, expected NAME.input and NAME.output of readers or writers");
    for (const auto& [name, tensor] : reference) {
      const size_t dot = name.rfind('.');
      const std::string of = name.substr(0, dot), end = dot == std::string::npos ? "" : name.substr(dot);
      check(end == ".input" || end == ".output", "reference: '", name,
            "' is called neither NAME.input nor NAME.output");
      const std::string partner = of + (end == ".input" ? ".output" : ".input");
      check(reference.find(partner), "reference: '", name, "' has no '", partner, "' beside it");
      open_.insert(of);
    }
    for (const Place& p : layout.places)
      if (p.role == Role::writer) biases_.insert(bias_of(p));
  }

  ReferenceFindings run() {
    std::vector<Unit> held;
    for (const Unit& u : units_of(file_.outline, layout_, 1))
      if (count(u)) held.push_back(u);
    check(open_.empty(), "reference: '", open_.empty() ? "" : *open_.begin(),
          "' is no reader's or writer's weight by the description");
    for (const Unit& u : held) hold(u);
    return findings_;
  }

 private:
  // The name of the writer that is the bias of this one; empty where there is none.
  std::string bias_of(const Place& p) const {
    const std::string bias = bias_beside(p.name);
    for (const Place& q : layout_.places)
      if (q.name == bias && q.role == Role::writer) return bias;
    return {};
  }

  bool is_named(const std::string& name) const { return reference_.find(name + ".input") != nullptr; }

  // Whether the reference has something of it.
  bool count(const Unit& u) {
    bool any = false;
    const auto add = [&](const std::string& name, int64_t& all, int64_t& held) {
      const bool named = open_.erase(name) > 0;
      ++all, held += named, any = any || named;
    };
    const Place& first = u.layout.places.front();
    if (first.role == Role::reader) add(first.name, findings_.readers, findings_.readers_held);
    if (first.role == Role::writer && !biases_.contains(first.name))
      add(first.name, findings_.writers, findings_.writers_held);
    for (const TiedHead& t : u.layout.tied) add(t.weight, findings_.readers, findings_.readers_held);
    return any;
  }

  void hold(const Unit& u) {
    TensorMap state;
    for (const std::string& name : u.names) state.add(name, file_.read(name));
    const Place& first = u.layout.places.front();
    if (first.role == Role::writer && is_named(first.name)) compare(first.name, written(state, first));
    for (const StreamReader& r : readers_of(state, u.layout))
      if (is_named(r.name)) compare(r.name, read(state, u.layout, r));
  }

  Expected read(const TensorMap& state, const Layout& layout, const StreamReader& r) const {
    const std::string input = r.name + ".input";
    const Tensor x = rows_of(input, floating(input), layout.stored_width());
    const Tensor size = normalised_size(state, layout, norm_of(layout, r), x);
    // Sums: mean, variance, product. Rounded: x - mean, the root, times it, gain, bias, the weight, b, the output.
    return {seen(state, layout, r, x), linear(size, abs(r.weight), r.bias.defined() ? abs(r.bias) : Tensor()), 3, 8,
            x.size(1)};
  }

  Expected written(const TensorMap& state, const Place& p) const {
    const std::string input = p.name + ".input";
    const Tensor& x = reference_.at(input);
    const Tensor rows = by_rows(state.at(p.name), p.dim);  // [in, stored width]
    if (!is_floating(x.dtype())) {
      const Scope scope(input);
      const Tensor ids = flatten(cast(x, DType::i64));
      const Tensor value = cast(index_select(rows, 0, ids), DType::f64);
      return {value, abs(value), 0, 2};  // the weight, the output
    }
    const Tensor w = transpose(cast(rows, DType::f64), 0, 1), in = rows_of(input, x, rows.size(0));
    Tensor bias;
    if (const std::string name = bias_of(p); !name.empty()) bias = flatten(cast(file_.read(name), DType::f64));
    // Rounded: the weight, b, the output.
    return {linear(in, w, bias), linear(abs(in), abs(w), bias.defined() ? abs(bias) : Tensor()), 1, 3, rows.size(0)};
  }

  const Tensor& floating(const std::string& name) const {
    const Tensor& t = reference_.at(name);
    check(is_floating(t.dtype()), "reference: '", name, "' has dtype ", t.dtype(), ", expected a floating one");
    return t;
  }

  void compare(const std::string& name, const Expected& expected) {
    const std::string input = name + ".input", output = name + ".output";
    const Tensor &x = reference_.at(input), &y = floating(output);
    check(!is_floating(x.dtype()) || x.dtype() == y.dtype(), "reference: '", input, "' has dtype ", x.dtype(), ", '",
          output, "' ", y.dtype(), ": expected the one in which the program computed");
    const Tensor rows = rows_of(output, y, expected.value.size(1));
    check(rows.shape() == expected.value.shape(), "reference: '", output, "' has ", rows.size(0), " rows, '", input,
          "' ", expected.value.size(0));
    const double scale = largest_entry(rows), bound = expected.bound(y.dtype());
    const std::vector<double> off = abs(rows - expected.value).to_vector<double>(),
                              size = expected.size.to_vector<double>();
    for (size_t i = 0; i < off.size(); ++i) {
      if (off[i] == 0) continue;
      double share = off[i] / (bound * size[i]);
      if (std::isnan(share)) share = std::numeric_limits<double>::infinity();
      if (share > findings_.share || findings_.tensor.empty()) {
        findings_.tensor = name, findings_.share = share;
        findings_.deviation = off[i] / scale, findings_.bound = bound * size[i] / scale;
      }
    }
  }

  const training::LazyState& file_;
  const Layout& layout_;
  const TensorMap& reference_;
  std::set<std::string> open_;    // names in the reference that nothing took yet
  std::set<std::string> biases_;  // of writers
  ReferenceFindings findings_;
};

}  // namespace

TensorMap load_reference(const std::string& path) {
  const Bytes file = open_bytes(path);
  return is_zip(file) ? load_npz(file) : load_safetensors(file);
}

ReferenceFindings check_reference(const training::LazyState& file, const Layout& layout, const TensorMap& reference) {
  NoGrad no_grad;
  return Check(file, layout, reference).run();
}

}  // namespace isonorm::equivalence
