#include "equivalence/verify/reader_check.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/pieces.h"
#include "equivalence/convert/state.h"
#include "equivalence/judge/pairs.h"
#include "streams/map.h"

namespace isonorm::equivalence {
namespace {

using streams::Plan;

constexpr uint64_t kSeed = 2305;  // for the readers' outputs; the norms and each writer use the next seeds
constexpr int kSliceBits = 20;    // bits of a generator's offset: each slice has its own numbers
constexpr int64_t kSamples = 3;   // combinations of a writer's slices, and of a reader's outputs
constexpr TensorOptions kF64{DType::f64};

uint64_t begin_of(const Piece& p) { return static_cast<uint64_t>(p.slices.begin) << kSliceBits; }

// Random signs, -1 and 1.
Tensor signs(int64_t n, Generator& generator) { return 2 * randint(0, 2, {n}, kCpu, generator).to(DType::f64) + -1.0; }

// The relative change that a control makes to the numbers of a tensor.
double step(const Piece& piece, const Piece& partner, const std::string& name) {
  const Tensor* other = partner.state.find(name);
  const double own = epsilon(piece.format(name));
  return other && is_floating(other->dtype()) ? std::max(own, epsilon(partner.format(name))) : own;
}

// Random combinations of n slices, then the same with the slices' signs changed for each control.
Tensor combinations(int64_t n, Generator& generator) {
  const Tensor factors = randn({kSamples, n}, kF64, generator);
  std::vector<Tensor> all = {factors};
  for (uint64_t i = 0; i < kControls; ++i) all.push_back(factors * signs(n, generator));
  return cat(all, 0);
}

// The named tensors of a piece in f64. moves: each number is moved by itself, as in a control. Empty names are skipped.
TensorMap taken(const Piece& piece, const Piece& partner, std::initializer_list<const std::string*> names, bool moves,
                Generator& generator) {
  TensorMap all;
  for (const std::string* name : names) {
    if (name->empty()) continue;
    const Tensor x = widened(piece.state, *name);
    all.add(*name, moves ? x * (1 + step(piece, partner, *name) * reshape(signs(x.numel(), generator), x.shape())) : x);
  }
  return all;
}

// Combinations of the rows of a table that go through a norm, unmoved and moved: [kSamples, d].
template <class Copies>
Copies combined_behind_norm(const Tensor& factors, const Piece& piece, const Piece& partner, const Plan::Writer& table,
                            Generator& generator) {
  const Plan::Norm& norm = piece.plan.norms[table.norm];
  Copies copies;
  for (size_t i = 0; i < copies.size(); ++i) {
    const TensorMap own = taken(piece, partner, {&table.name, &norm.weight, &norm.bias}, i > 0, generator);
    copies[i] = matmul(narrow(factors, 0, 0, kSamples),
                       behind_norm(own, piece.plan, table, by_rows(own.at(table.name), table.dim)));
  }
  return copies;
}

// Rows with a mean, for a stream that is recentred once, in the coordinates of the form.
Tensor entering(const streams::Plan& plan, uint64_t seed) {
  Generator generator{seed, 0};
  const Tensor rows = randn({kSamples, plan.width}, kF64, generator) + randn({kSamples, 1}, kF64, generator);
  return row_of(plan.form).writer(plan.width)(rows, 1);
}

// Combinations of slices x [n, d], unmoved and moved: [kSamples, d].
template <class Copies> Copies combined(const Tensor& factors, const Tensor& x, double step, Generator& generator) {
  const Tensor all = matmul(factors, x);
  Copies copies;
  copies[0] = narrow(all, 0, 0, kSamples);
  for (size_t i = 1; i < copies.size(); ++i)
    copies[i] =
        copies[0] + narrow(all, 0, static_cast<int64_t>(i) * kSamples, kSamples) * signs(x.size(1), generator) * step;
  return copies;
}

}  // namespace

ReaderCheck::ReaderCheck(const streams::Plan& a, const streams::Plan& b) {
  for (const Plan::Writer& w : a.writers)
    if (b.writer(w.name)) writers_.push_back(w.name);
  check(a.recentred == b.recentred, "stream check: the first is recentred at '", a.recentred, "', the second at '",
        b.recentred, "'");
  if (!a.recentred.empty()) writers_.push_back(a.recentred);
  check(!writers_.empty(), "stream check: the two have no writer in common");
  a_.written.resize(writers_.size()), b_.written.resize(writers_.size());
  if (a.recentred.empty()) return;
  NoGrad no_grad;
  const uint64_t seed = kSeed + 1 + writers_.size();
  a_.written.back().fill(entering(a, seed)), b_.written.back().fill(entering(b, seed));
}

void ReaderCheck::note(const Piece& a, const Piece& b) {
  for (const Piece* piece : {&a, &b}) format_ = coarser(format_, coarsest(piece->state, piece->half));
}

void ReaderCheck::write(const Piece& a, const Piece& b) {
  NoGrad no_grad;
  note(a, b);
  for (size_t w = 0; w < writers_.size(); ++w) {
    const std::string& name = writers_[w];
    const Plan::Writer *p = a.plan.writer(name), *q = b.plan.writer(name);
    if (!p || !q) continue;
    Generator generator{kSeed + 2 + w, begin_of(a)};
    const Tensor factors = combinations(a.state.at(name).numel() / a.state.at(name).size(p->dim), generator);
    const auto add = [&](Side& side, const Piece& own, const Piece& partner, const Plan::Writer& writer) {
      Copies found = writer.norm < 0 ? combined<Copies>(factors, by_rows(widened(own.state, name), writer.dim),
                                                        step(own, partner, name), generator)
                                     : combined_behind_norm<Copies>(factors, own, partner, writer, generator);
      if (!writer.scale.empty())
        for (size_t i = 0; i < found.size(); ++i)
          found[i] = found[i] * flatten(taken(own, partner, {&writer.scale}, i > 0, generator).at(writer.scale));
      for (size_t i = 0; i < found.size(); ++i) {
        Tensor& sum = side.written[w][i];
        sum = sum.defined() ? sum + found[i] : found[i];
      }
    };
    add(a_, a, b, *p), add(b_, b, a, *q);
  }
}

// The rows after a reader's norm. The controls move its gain and bias, too.
const ReaderCheck::Copies& ReaderCheck::Side::normalised_for(const Piece& piece, const Plan::Reader& reader,
                                                             const Piece& partner) {
  if (!rows[0].defined())
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<Tensor> all;
      Tensor sum;
      for (Copies& of_writer : written)
        all.push_back(std::move(of_writer[i])), sum = sum.defined() ? sum + all.back() : all.back();
      all.push_back(sum), rows[i] = cat(all, 0);
    }
  if (norm == reader.norm && parts == reader.parts && normalised[0].defined()) return normalised;
  norm = reader.norm, parts = reader.parts;
  const Plan::Norm& place = piece.plan.norms[norm];
  Generator generator{kSeed + 1, 0};
  for (size_t i = 0; i < rows.size(); ++i)
    normalised[i] = equivalence::normalised(taken(piece, partner, {&place.weight, &place.bias}, i > 0, generator),
                                            piece.plan, place, rows[i], parts);
  return normalised;
}

void ReaderCheck::read(const Piece& a, const Piece& b) {
  NoGrad no_grad;
  note(a, b);
  const std::vector<Plan::Reader>&readers_a = a.plan.readers, &readers_b = b.plan.readers;
  check(!readers_a.empty() && readers_a.size() == readers_b.size(),
        "stream check: the two do not have the same readers: ", readers_a.size(), " and ", readers_b.size());
  for (const Plan::Reader& reader : readers_a) {
    const Plan::Reader* partner = b.plan.reader(reader.name);
    check(partner != nullptr, "stream check: there is no reader '", reader.name, "' in the second");
    Generator generator{kSeed, begin_of(a)};
    Tensor factors;
    const auto outputs = [&](Side& side, const Piece& own, const Piece& other, const Plan::Reader& of) {
      const ReaderWeights read = weights_of(own.state, own.plan, of);
      if (!factors.defined()) factors = combinations(read.weight.size(0), generator);
      const Copies& x = side.normalised_for(own, of, other);
      const Copies weights = combined<Copies>(factors, read.weight, step(own, other, of.tensor()), generator);
      Copies y, biases;
      if (read.bias.defined())
        biases =
            combined<Copies>(factors, reshape(read.bias, {read.bias.numel(), 1}), step(own, other, of.bias), generator);
      for (size_t i = 0; i < y.size(); ++i)
        y[i] = linear(x[i], weights[i], read.bias.defined() ? flatten(biases[i]) : Tensor());
      return y;
    };
    const Copies of_a = outputs(a_, a, b, reader), of_b = outputs(b_, b, a, *partner);
    ReaderOutputs& found = outputs_[reader.name];
    for (size_t side = 0; side < 2; ++side) {
      const Copies& y = side == 0 ? of_a : of_b;
      found.largest[side] = larger(found.largest[side], largest_entry(y[0]));
      for (size_t i = 1; i < y.size(); ++i) found.moved[side] = larger(found.moved[side], largest_entry(y[i] - y[0]));
    }
    const Tensor difference = of_a[0] - of_b[0];
    found.difference.resize(writers_.size() + 1);
    for (size_t w = 0; w < found.difference.size(); ++w)
      found.difference[w] = larger(found.difference[w],
                                   largest_entry(narrow(difference, 0, static_cast<int64_t>(w) * kSamples, kSamples)));
  }
}

Deviation ReaderCheck::result(std::map<std::string, double>* of) const {
  double size = 0, control = 0;
  const auto relative = [](double d, double scale) { return d == 0 ? 0 : d / scale; };
  for (const auto& [name, output] : outputs_) {
    double whole = 0;
    for (size_t w = 0; w < output.difference.size(); ++w) {
      const double off = relative(output.difference[w], output.largest[0]);
      whole = larger(whole, off);
      if (!of || w == writers_.size()) continue;
      double& worst = (*of)[writers_[w]];
      worst = larger(worst, off);
    }
    if (of) (*of)[name] = whole;
    size = larger(size, whole);
    for (size_t side = 0; side < 2; ++side)
      control = larger(control, relative(output.moved[side], output.largest[side]));
  }
  return output_deviation("readers of random rows", size, control, format_);
}

}  // namespace isonorm::equivalence
