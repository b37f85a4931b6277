// GRU and LSTM, with and without norms, compared with their definitions in single ops; without norms also with PyTorch.
#include "nn/recurrent/recurrent.h"

#include "io/safetensors.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t kBatch = 2, kTime = 4, kInputs = 3, kHidden = 5;

Tensor flat(const RecurrentResult& r) {
  std::vector<Tensor> all{reshape(r.output, {r.output.numel()})};
  for (const Tensor& s : r.state) all.push_back(reshape(s, {s.numel()}));
  return cat(all, 0);
}

// Step by step in single ops, with the formulas of the papers and of PyTorch's documentation. Parameters are found by
// name.
struct Naive {
  TensorMap p;
  RecurrentOptions o;
  bool lstm;

  Tensor find(const std::string& name) const { return p.find(name) ? p.at(name) : Tensor(); }
  Tensor linear(const Tensor& x, const std::string& name) const {
    return isonorm::linear(x, p.at(name + ".weight"), find(name + ".bias"));
  }
  Tensor norm(const Tensor& x, const std::string& name) const {
    if (o.norm == NormKind::none) return x;
    return normalize(x, {.kind = o.norm, .eps = o.eps, .p = o.p}, p.at(name + ".weight"), find(name + ".bias"));
  }
  static Tensor part(const Tensor& x, int64_t i, int64_t count = 1) {
    return narrow(x, 1, i * kHidden, count * kHidden);
  }

  void step(const std::string& cell, const Tensor& x, Tensor& h, Tensor& c) const {
    const Tensor a = linear(x, cell + ".input"), u = linear(h, cell + ".recurrent");
    if (lstm) {
      Tensor all = norm(a, cell + ".input_norm") + norm(u, cell + ".recurrent_norm");
      if (o.norm != NormKind::none) all = all + p.at(cell + ".bias");
      c = sigmoid(part(all, 1)) * c + sigmoid(part(all, 0)) * tanh(part(all, 2));
      h = sigmoid(part(all, 3)) * tanh(norm(c, cell + ".state_norm"));
      return;
    }
    const Tensor gates =
        sigmoid(norm(part(a, 0, 2), cell + ".input_gates_norm") + norm(part(u, 0, 2), cell + ".recurrent_gates_norm"));
    const Tensor r = part(gates, 0), z = part(gates, 1), fresh = norm(part(a, 2), cell + ".input_new_norm");
    const Tensor kept =
        norm(o.reset_first ? linear(r * h, cell + ".recurrent_new") : part(u, 2), cell + ".recurrent_new_norm");
    h = (1 - z) * tanh(fresh + (o.reset_first ? kept : r * kept)) + z * h;
  }

  Tensor run(Tensor x, const Tensor& mask, const std::vector<Tensor>& state) const {
    std::vector<Tensor> ends[2];  // h and c of each cell
    for (int64_t layer = 0; layer < o.layers; ++layer) {
      std::vector<Tensor> out;
      for (int k = 0; k < (o.bidirectional ? 2 : 1); ++k) {
        Tensor now[2];
        for (size_t i = 0; i < 2; ++i)
          now[i] = i < state.size() ? select(state[i], 0, std::ssize(ends[0])) : zeros({kBatch, kHidden}, kF64);
        std::vector<Tensor> rows(kTime);
        for (int64_t i = 0; i < kTime; ++i) {
          const int64_t t = k == 0 ? i : kTime - 1 - i;
          const Tensor before[] = {now[0], now[1]};
          step(text(k == 0 ? "forward" : "backward", layer), select(x, 1, t), now[0], now[1]);
          for (int part = 0; mask.defined() && part < 2; ++part) {
            const Tensor counts = narrow(mask, 1, t, 1);
            now[part] = counts * now[part] + (1 - counts) * before[part];
          }
          rows[static_cast<size_t>(t)] = now[0];
        }
        out.push_back(stack(rows, 1));
        for (size_t i = 0; i < 2; ++i) ends[i].push_back(now[i]);
      }
      x = cat(out, 2);
    }
    std::vector<Tensor> last{stack(ends[0], 0)};
    if (lstm) last.push_back(stack(ends[1], 0));
    return flat({x, last});
  }
};

struct Case {
  bool lstm;
  RecurrentOptions o;
  bool masked, begun;  // has a mask; begins with a non-zero state
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const bool lstm : {false, true})
    for (const auto& [norm, p] :
         {std::pair{NormKind::none, 1.0}, {NormKind::layer, 1.0}, {NormKind::rms, 1.0}, {NormKind::rms, 0.25}})
      for (const bool more : {false, true})
        for (const bool reset_first : {false, true}) {
          if (lstm && reset_first) continue;
          RecurrentOptions o{.inputs = kInputs, .hidden = kHidden, .bidirectional = more, .norm = norm, .p = p};
          o.layers = more ? 2 : 1, o.reset_first = reset_first;
          all.push_back({lstm, o, more, more});
        }
  return all;
}

std::unique_ptr<Recurrent> made(bool lstm, const RecurrentOptions& o) {
  if (lstm) return std::make_unique<Lstm>(o);
  return std::make_unique<Gru>(o);
}

struct Subject {
  std::unique_ptr<Recurrent> layer;
  Tensor x, mask;
  std::vector<Tensor> state;

  explicit Subject(const Case& c) : layer(made(c.lstm, c.o)) {
    layer->to(DType::f64);
    for (const Tensor& p : layer->parameters()) copy_into(detach(p), randn(p.shape(), kF64) * 0.4 + 0.1);
    x = require_grad(randn({kBatch, kTime, kInputs}, kF64));
    if (c.masked) mask = from_vector<double>({1, 1, 1, 0, 0, 1, 0, 1}, {kBatch, kTime});
    const int64_t cells = c.o.layers * (c.o.bidirectional ? 2 : 1);
    if (c.begun)
      for (int i = 0; i < (c.lstm ? 2 : 1); ++i) state.push_back(require_grad(randn({cells, kBatch, kHidden}, kF64)));
  }

  RecurrentResult result() { return (*layer)(x, {.state = state, .mask = mask}); }
};

// At most 5 x 2 cells and steps, each with a few sums of at most 8 products; a gradient adds about 10 of them.
constexpr double kFixture = 64 * 10 * 0x1p-52;

// Checks outputs, last states, and the gradients of inputs, first states and weights.
void check_case(const TensorMap& fixture, bool lstm, int64_t layers, bool both) {
  const std::string of = text(lstm ? "lstm" : "gru", "_", layers, both ? "_both" : "", "/");
  const RecurrentOptions options{.inputs = 3, .hidden = 4, .layers = layers, .bidirectional = both};
  const std::unique_ptr<Recurrent> layer = made(lstm, options);
  layer->to(DType::f64);
  const TensorMap weights = below(fixture, of + "weight/");
  layer->load_state_dict(weights);

  const Tensor x = require_grad(fixture.at(of + "x"));
  std::vector<Tensor> state;
  for (int i = 0; i < (lstm ? 2 : 1); ++i) state.push_back(require_grad(fixture.at(text(of, "state", i))));
  const RecurrentResult result = (*layer)(x, {.state = state});
  Tensor total = sum(result.output * fixture.at(of + "cotangent/output"));
  INFO(of);
  check_close(result.output, fixture.at(of + "output"), kFixture);
  REQUIRE(result.state.size() == state.size());
  for (size_t i = 0; i < state.size(); ++i) {
    check_close(result.state[i], fixture.at(text(of, "last", i)), kFixture);
    total = total + sum(result.state[i] * fixture.at(text(of, "cotangent/last", i)));
  }
  backward(total);
  check_close(x.grad(), fixture.at(of + "gradient/x"), kFixture);
  for (size_t i = 0; i < state.size(); ++i)
    check_close(state[i].grad(), fixture.at(text(of, "gradient/state", i)), kFixture);
  CHECK(layer->parameters().size() == weights.size());
  for (const NamedParameter& p : layer->named_parameters()) {
    INFO(p.name);
    check_close(p.tensor.grad(), fixture.at(of + "gradient/" + p.name), kFixture);
  }
}

std::string name_of(const Case& c) {
  return text(c.lstm ? "LSTM" : "GRU", ", ", name_of(c.o.norm), " p ", c.o.p, ", ", c.o.layers, " layers",
              c.o.reset_first ? ", reset first" : "");
}

}  // namespace

TEST_CASE("recurrent layers are the loops of their definitions, gradients too") {
  manual_seed(3);
  for (const Case& c : cases()) {
    INFO(name_of(c));
    Subject s(c);
    const auto leaf = [](const Tensor& t) { return require_grad(detached::clone(t)); };
    Naive naive{{}, c.o, c.lstm};
    std::vector<Tensor> state;
    const Tensor x = leaf(s.x);
    for (const auto& [name, t] : s.layer->state_dict()) naive.p.add(name, leaf(t));
    for (const Tensor& t : s.state) state.push_back(leaf(t));
    const Tensor found = flat(s.result()), expected = naive.run(x, s.mask, state),
                 weight = randn(expected.shape(), kF64);
    // About 8 x 2 steps, each with a few sums of at most 10 terms; a gradient adds about 10 of them.
    const double bound = 16 * 8 * std::sqrt(10) * 0x1p-52;
    check_close(found, expected, bound);
    backward(sum(found * weight)), backward(sum(expected * weight));
    check_close(s.x.grad(), x.grad(), 10 * bound);
    for (size_t i = 0; i < state.size(); ++i) check_close(s.state[i].grad(), state[i].grad(), 10 * bound);
    for (const NamedParameter& p : s.layer->named_parameters()) {
      INFO(p.name);
      check_close(p.tensor.grad(), naive.p.at(p.name).grad(), 10 * bound);
    }
  }
}

TEST_CASE("GRU and LSTM have PyTorch's outputs, last states and gradients") {
  const TensorMap fixture = load_safetensors("tests/fixtures/recurrent.safetensors");  // torch_recurrent.py
  for (const bool lstm : {false, true})
    for (const int64_t layers : {1, 2})
      for (const bool both : {false, true}) check_case(fixture, lstm, layers, both);
}

TEST_CASE("a sequence in two pieces is the sequence, and truncated gradients stop between them") {
  manual_seed(5);
  for (const bool lstm : {false, true}) {
    Subject s({lstm, {.inputs = kInputs, .hidden = kHidden, .layers = 2, .norm = NormKind::rms}, false, false});
    const RecurrentResult whole = s.result();
    RecurrentResult first = (*s.layer)(narrow(s.x, 1, 0, 2));
    const RecurrentResult second = (*s.layer)(narrow(s.x, 1, 2, 2), {.state = first.state});
    check_close(cat({first.output, second.output}, 1), whole.output, 0);
    for (Tensor& part : first.state) part = detach(part);
    backward(sum((*s.layer)(narrow(s.x, 1, 2, 2), {.state = first.state}).output));
    const std::vector<double> g = s.x.grad().to_vector<double>();
    for (size_t i = 0; i < g.size(); ++i) CHECK((g[i] != 0) == (i / kInputs % kTime >= 2));
  }
}

TEST_CASE("a mask that hides nothing changes no bit") {
  manual_seed(8);
  for (const bool lstm : {false, true}) {
    Subject s({lstm, {.inputs = kInputs, .hidden = kHidden, .layers = 2, .bidirectional = true}, false, true});
    const Tensor without = flat(s.result());
    s.mask = ones({kBatch, kTime}, {DType::f64});
    check_close(flat(s.result()), without, 0);
  }
}

TEST_CASE("layers of f32 parameters read rows of bf16, and their gradients stay f32") {
  manual_seed(6);
  for (const Case& c : cases()) {
    INFO(name_of(c));
    Subject s(c);
    const Tensor exact = flat(s.result());
    s.layer->to(DType::f32);
    for (Tensor* t : {&s.x, &s.mask})
      if (t->defined()) *t = (*t).to(DType::bf16);
    for (Tensor& part : s.state) part = part.to(DType::bf16);
    const RecurrentResult rounded = s.result();
    CHECK(rounded.output.dtype() == DType::bf16);
    // In each step of at most two layers about 10 numbers, up to the largest in size, are rounded with error 2^-9.
    check_close(flat(rounded).to(DType::f64), exact, 2 * kTime * 10 * 0x1p-9);
    backward(sum(rounded.output));
    for (const Tensor& p : s.layer->parameters()) CHECK(p.grad().dtype() == DType::f32);
  }
}

TEST_CASE("masked entries are not read, not even if they are NaN, and have no gradient") {
  manual_seed(4);
  nn::Lstm layer({.inputs = 3, .hidden = 4, .layers = 2, .bidirectional = true, .norm = NormKind::rms});
  layer.to(DType::f64);
  const Tensor mask = from_vector<double>({1, 1, 0, 1, 0, 0}, {2, 3});
  std::vector<std::vector<double>> seen;
  for (const double hidden : {0.0, 7.0, std::nan("")}) {
    Generator g{.seed = 2};
    std::vector<double> v = randn({2, 3, 3}, {DType::f64}, g).to_vector<double>();
    for (const int step : {2, 4, 5})
      for (int i = 0; i < 3; ++i) v[static_cast<size_t>(3 * step + i)] = hidden;
    const Tensor x = require_grad(from_vector(v, {2, 3, 3}));
    for (const Tensor& p : layer.parameters()) set_grad(p, {});
    const nn::RecurrentResult r = layer(x, {.mask = mask});
    backward(sum(r.output) + sum(r.state[0]));
    std::vector<double> all = r.output.to_vector<double>();
    for (const Tensor& p : layer.parameters())
      for (const double d : p.grad().to_vector<double>()) all.push_back(d);
    for (const double d : x.grad().to_vector<double>()) all.push_back(d);
    seen.push_back(std::move(all));
  }
  CHECK(seen[1] == seen[0]);
  CHECK(seen[2] == seen[0]);  // the same bits, so no NaN
}

TEST_CASE("bad recurrent input is refused in a line") {
  const auto gru = [](RecurrentOptions o) {
    if (o.inputs == 0) o.inputs = kInputs;
    if (o.hidden == 0) o.hidden = kHidden;
    return Gru(o);
  };
  CHECK_THROWS_WITH(Gru({.inputs = 3}), "recurrent: 3 inputs, 0 hidden and 1 layers, expected at least 1 of each");
  CHECK_THROWS_WITH(gru({.norm = NormKind::rms, .p = 0}), "recurrent: p is 0, expected above 0 and at most 1");
  CHECK_THROWS_WITH(gru({.norm = NormKind::layer, .p = 0.5}), Contains("a share of the entries is RMSNorm's"));
  CHECK_THROWS_WITH(gru({.norm = NormKind::crms}),
                    "recurrent: the norm is crms_norm, expected none, layer_norm or rms_norm");
  CHECK_THROWS_WITH(gru({.dropout = 1}), "recurrent: dropout 1 is not in [0, 1)");
  CHECK_THROWS_WITH(gru({.dropout = 0.5}), "recurrent: dropout 0.5 acts between layers, and there is 1");
  Gru layer = gru({});
  CHECK_THROWS_WITH(layer(zeros({2, 4, 2})), "recurrent: rows have shape [2, 4, 2], expected [batch, time, 3]");
  CHECK_THROWS_WITH(layer(zeros({2, 0, 3})), "recurrent: rows of shape [2, 0, 3] are an empty sequence");
  CHECK_THROWS_WITH(layer(zeros({2, 2, 3}), {.mask = from_vector<float>({1, 0, 0, 0}, {2, 2})}),
                    "recurrent: the mask hides all 2 steps of example 1");
  CHECK_THROWS_WITH(layer(zeros({2, 2, 3}), {.mask = from_vector<float>({1, 1, 0.5, 1}, {2, 2})}),
                    "recurrent: the mask has 0.5 at step 0 of example 1, expected 0 or 1");
  CHECK_THROWS_WITH(layer(zeros({2, 2, 3}), {.mask = ones({2, 2}, {DType::f64})}),
                    "recurrent: the mask is f64, expected u8 or the rows' f32");
  CHECK_THROWS_WITH(layer(zeros({2, 2, 3}), {.mask = ones({2, 3})}),
                    "recurrent: the mask has shape [2, 3], expected [2, 2]");
  CHECK_THROWS_WITH(layer(zeros({2, 2, 3}), {.state = {zeros({1, 2, 4})}}),
                    "recurrent: the state has shape [1, 2, 4], expected [1, 2, 5]");
  CHECK_THROWS_WITH(layer(zeros({2, 2, 3}), {.state = {zeros({1, 2, 5}), zeros({1, 2, 5})}}),
                    "recurrent: the state has 2 parts, expected 1");
}
