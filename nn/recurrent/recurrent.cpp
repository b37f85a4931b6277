#include "nn/recurrent/recurrent.h"

#include <algorithm>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/shape.h"
#include "nn/module_scope.h"

namespace isonorm::nn {

Recurrent::Recurrent(const RecurrentOptions& o, const MakeCell& make) : options(o) {
  check(o.inputs > 0 && o.hidden > 0 && o.layers > 0, "recurrent: ", o.inputs, " inputs, ", o.hidden, " hidden and ",
        o.layers, " layers, expected at least 1 of each");
  check(o.p > 0 && o.p <= 1, "recurrent: p is ", o.p, ", expected above 0 and at most 1");
  check(o.norm == NormKind::none || o.norm == NormKind::layer || o.norm == NormKind::rms, "recurrent: the norm is ",
        name_of(o.norm), ", expected none, layer_norm or rms_norm");
  check(o.p == 1 || o.norm == NormKind::rms, "recurrent: p is ", o.p, " with norm ", name_of(o.norm),
        ", expected 1: a share of the entries is RMSNorm's");
  check(o.dropout >= 0 && o.dropout < 1, "recurrent: dropout ", o.dropout, " is not in [0, 1)");
  check(o.dropout == 0 || o.layers > 1, "recurrent: dropout ", o.dropout, " acts between layers, and there is 1");
  const int64_t directions = o.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < o.layers; ++layer)
    for (int64_t k = 0; k < directions; ++k)
      cells_.push_back(
          &add(text(k == 0 ? "forward" : "backward", layer), make(layer == 0 ? o.inputs : directions * o.hidden)));
}

Tensor Recurrent::run(Cell& cell, const Tensor& x, const Tensor& mask, const std::vector<bool>& padded, bool backwards,
                      std::vector<Tensor>& state) const {
  const int64_t time = x.size(1);
  // One split for all steps. With a node per step, each step would make a gradient of the size of the whole sequence.
  const std::vector<Tensor> prepared = split(cell.prepared(x), std::vector<int64_t>(static_cast<size_t>(time), 1), 1);
  std::vector<Tensor> rows(static_cast<size_t>(time));
  for (int64_t i = 0; i < time; ++i) {
    const int64_t t = backwards ? time - 1 - i : i;
    std::vector<Tensor> next = cell.step(squeeze(prepared[static_cast<size_t>(t)], 1), state);
    if (padded[static_cast<size_t>(t)]) {
      const Tensor counts = narrow(mask, 1, t, 1);
      for (size_t part = 0; part < next.size(); ++part) next[part] = where(counts, next[part], state[part]);
    }
    state = std::move(next);
    rows[static_cast<size_t>(t)] = unsqueeze(state[0], 1);
  }
  return cat(rows, 1);
}

RecurrentResult Recurrent::operator()(const Tensor& x, const RecurrentInput& input) {
  const ModuleScope scope(*this);
  check(x.rank() == 3 && x.size(2) == options.inputs, "recurrent: rows have shape ", x.shape(),
        ", expected [batch, time, ", options.inputs, "]");
  check(x.size(0) > 0 && x.size(1) > 0, "recurrent: rows of shape ", x.shape(), " are an empty sequence");
  const auto directions = static_cast<size_t>(options.bidirectional ? 2 : 1);
  const Dims shape{static_cast<int64_t>(cells_.size()), x.size(0), options.hidden};
  const auto parts = static_cast<size_t>(cells_.front()->parts());
  check(input.state.empty() || input.state.size() == parts, "recurrent: the state has ", input.state.size(),
        " parts, expected ", parts);
  for (const Tensor& s : input.state)
    check(s.shape() == shape, "recurrent: the state has shape ", s.shape(), ", expected ", shape);
  std::vector<bool> padded(static_cast<size_t>(x.size(1)));
  if (input.mask.defined()) {
    check(input.mask.shape() == Dims{x.size(0), x.size(1)}, "recurrent: the mask has shape ", input.mask.shape(),
          ", expected ", Dims{x.size(0), x.size(1)});
    check(input.mask.dtype() == DType::u8 || input.mask.dtype() == x.dtype(), "recurrent: the mask is ",
          input.mask.dtype(), ", expected u8 or the rows' ", x.dtype());
    const std::vector<double> counts = detach(input.mask).to(DType::f64).to_vector<double>();
    for (int64_t b = 0; b < x.size(0); ++b) {
      const auto begin = counts.begin() + b * x.size(1);
      check(std::any_of(begin, begin + x.size(1), [](double c) { return c != 0; }), "recurrent: the mask hides all ",
            x.size(1), " steps of example ", b);
      for (int64_t t = 0; t < x.size(1); ++t) {
        check(begin[t] == 0 || begin[t] == 1, "recurrent: the mask has ", begin[t], " at step ", t, " of example ", b,
              ", expected 0 or 1");
        if (begin[t] == 0) padded[static_cast<size_t>(t)] = true;
      }
    }
  }
  RecurrentResult result{x, {}};
  Tensor counts;  // u8
  if (std::find(padded.begin(), padded.end(), true) != padded.end()) {
    counts = ne(detach(input.mask), 0);
    // Padded values may be anything, even NaN, and take no part in gradients.
    result.output = where(unsqueeze(counts, 2), x, zeros({}, x.options()));
  }
  std::vector<std::vector<Tensor>> last(parts);
  for (size_t i = 0; i < cells_.size(); i += directions) {
    if (i > 0 && training() && options.dropout > 0) result.output = dropout(result.output, options.dropout);
    std::vector<Tensor> sides;
    for (size_t k = 0; k < directions; ++k) {
      std::vector<Tensor> state;
      for (size_t part = 0; part < parts; ++part)
        state.push_back(input.state.empty() ? zeros({x.size(0), options.hidden}, x.options())
                                            : select(input.state[part], 0, static_cast<int64_t>(i + k)));
      sides.push_back(run(*cells_[i + k], result.output, counts, padded, k == 1, state));
      for (size_t part = 0; part < parts; ++part) last[part].push_back(unsqueeze(state[part], 0));
    }
    result.output = directions == 1 ? sides[0] : cat(sides, -1);
  }
  for (const std::vector<Tensor>& part : last) result.state.push_back(cat(part, 0));
  return result;
}

Gru::Gru(const RecurrentOptions& o)
    : Recurrent(o, [&](int64_t inputs) { return std::make_unique<GruCell>(inputs, o); }) {}
Lstm::Lstm(const RecurrentOptions& o)
    : Recurrent(o, [&](int64_t inputs) { return std::make_unique<LstmCell>(inputs, o); }) {}

}  // namespace isonorm::nn
