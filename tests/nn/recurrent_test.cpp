// GRU and LSTM, plain and with norms, against loops over doubles and differences of them, and plain ones against PyTorch.
#include "nn/recurrent/recurrent.h"

#include <map>
#include "io/safetensors.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;

namespace {

using Row = std::vector<double>;
constexpr int64_t kBatch = 2, kTime = 4, kInputs = 3, kHidden = 5;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One example, step by step, as the papers and PyTorch's documentation have it, from the parameters by name.
struct Naive {
  std::map<std::string, Row> p;
  RecurrentOptions o;
  bool lstm;

  Row linear(const Row& x, const std::string& name) const {
    const Row& w = p.at(name + ".weight");
    Row y(w.size() / x.size());
    for (size_t i = 0; i < y.size(); ++i) {
      for (size_t j = 0; j < x.size(); ++j) y[i] += w[i * x.size() + j] * x[j];
      if (const auto b = p.find(name + ".bias"); b != p.end()) y[i] += b->second[i];
    }
    return y;
  }
  Row norm(Row x, const std::string& name) const {
    const double n = static_cast<double>(x.size());
    double mean = 0, square = 0;
    if (o.norm == RecurrentNorm::layer)
      for (double v : x) mean += v / n;
    const auto k = static_cast<size_t>(std::ceil(o.p * n));
    for (size_t i = 0; i < k; ++i) square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(k);
    const auto bias = p.find(name + ".bias");
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = (x[i] - mean) / std::sqrt(square + o.eps) * p.at(name + ".weight")[i] +
             (bias == p.end() ? 0 : bias->second[i]);
    return x;
  }
  static Row part(const Row& x, size_t i, size_t count) {
    return {x.begin() + static_cast<std::ptrdiff_t>(i * kHidden),
            x.begin() + static_cast<std::ptrdiff_t>((i + count) * kHidden)};
  }

  void step(const std::string& cell, const Row& x, Row& h, Row& c) const {
    Row a = linear(x, cell + ".input"), u = linear(h, cell + ".recurrent");
    const bool plain = o.norm == RecurrentNorm::none;
    if (!lstm) {
      Row gates = part(a, 0, 2), gates_h = part(u, 0, 2), fresh = part(a, 2, 1), r(kHidden), z(kHidden);
      if (!plain) {
        gates = norm(gates, cell + ".input_gates_norm"), gates_h = norm(gates_h, cell + ".recurrent_gates_norm");
        fresh = norm(fresh, cell + ".input_new_norm");
      }
      for (size_t i = 0; i < kHidden; ++i)
        r[i] = sigmoid(gates[i] + gates_h[i]), z[i] = sigmoid(gates[kHidden + i] + gates_h[kHidden + i]);
      Row kept = h;
      for (size_t i = 0; i < kHidden; ++i) kept[i] *= r[i];
      Row fresh_h = o.reset_first ? linear(kept, cell + ".recurrent_new") : part(u, 2, 1);
      if (!plain) fresh_h = norm(fresh_h, cell + ".recurrent_new_norm");
      for (size_t i = 0; i < kHidden; ++i)
        h[i] = (1 - z[i]) * std::tanh(fresh[i] + (o.reset_first ? 1 : r[i]) * fresh_h[i]) + z[i] * h[i];
      return;
    }
    if (!plain) a = norm(a, cell + ".input_norm"), u = norm(u, cell + ".recurrent_norm");
    for (size_t i = 0; i < a.size(); ++i) a[i] += u[i] + (plain ? 0 : p.at(cell + ".bias")[i]);
    for (size_t i = 0; i < kHidden; ++i)
      c[i] = sigmoid(a[kHidden + i]) * c[i] + sigmoid(a[i]) * std::tanh(a[2 * kHidden + i]);
    const Row seen = plain ? c : norm(c, cell + ".state_norm");
    for (size_t i = 0; i < kHidden; ++i) h[i] = sigmoid(a[3 * kHidden + i]) * std::tanh(seen[i]);
  }

  // Rows of the last layer; states[cell] are h and c behind it, which it begins with.
  std::vector<Row> run(std::vector<Row> x, const Row& mask, std::vector<std::pair<Row, Row>>& states) const {
    const size_t directions = o.bidirectional ? 2 : 1;
    for (int64_t layer = 0; layer < o.layers; ++layer) {
      std::vector<Row> out(x.size());
      for (size_t k = 0; k < directions; ++k) {
        auto& [h, c] = states[static_cast<size_t>(layer) * directions + k];
        std::vector<Row> rows(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          const size_t t = k == 0 ? i : x.size() - 1 - i;
          if (mask[t] != 0) step((k == 0 ? "forward" : "backward") + std::to_string(layer), x[t], h, c);
          rows[t] = h;
        }
        for (size_t t = 0; t < x.size(); ++t) out[t].insert(out[t].end(), rows[t].begin(), rows[t].end());
      }
      x = out;
    }
    return x;
  }
};

struct Case {
  bool lstm;
  RecurrentOptions o;
  bool masked, begun;  // with a mask; from a state that is not zero
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const bool lstm : {false, true})
    for (const auto& [norm, p] : {std::pair{RecurrentNorm::none, 1.0},
                                  {RecurrentNorm::layer, 1.0},
                                  {RecurrentNorm::rms, 1.0},
                                  {RecurrentNorm::rms, 0.25}})
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
  Naive naive;

  explicit Subject(const Case& c) : naive{{}, c.o, c.lstm} {
    layer = made(c.lstm, c.o);
    layer->to(DType::f64);
    const NoGrad no_grad;
    for (const Tensor& p : layer->parameters()) copy_into(p, randn(p.shape(), {DType::f64}) * 0.4 + 0.1);
    x = randn({kBatch, kTime, kInputs}, {DType::f64});
    if (c.masked) mask = from_vector<double>({1, 1, 1, 0, 0, 1, 0, 1}, {kBatch, kTime});
    const int64_t cells = c.o.layers * (c.o.bidirectional ? 2 : 1);
    if (c.begun)
      for (int i = 0; i < (c.lstm ? 2 : 1); ++i) state.push_back(randn({cells, kBatch, kHidden}, {DType::f64}));
    for (const auto& [name, t] : layer->state_dict()) naive.p[name] = t.to_vector<double>();
  }

  RecurrentResult result() { return (*layer)(x, {.state = state, .mask = mask}); }

  // Outputs, then h (and c) behind the last step, as the layer's result holds them, one after the other.
  Row expected(const Naive& n) const {
    const size_t cells = static_cast<size_t>(n.o.layers) * (n.o.bidirectional ? 2 : 1);
    const Row inputs = x.to_vector<double>(),
              counts = mask.defined() ? mask.to_vector<double>() : Row(kBatch * kTime, 1);
    Row ends[2], rows;  // h and c of [cell, example]
    for (size_t i = 0; i < 2; ++i)
      ends[i] = i < state.size() ? state[i].to_vector<double>() : Row(cells * kBatch * kHidden);
    for (int64_t b = 0; b < kBatch; ++b) {
      const auto first = inputs.begin() + b * kTime * kInputs;
      std::vector<Row> steps;
      for (int64_t t = 0; t < kTime; ++t) steps.emplace_back(first + t * kInputs, first + (t + 1) * kInputs);
      std::vector<std::pair<Row, Row>> states;
      for (size_t at = b; at < cells * kBatch; at += kBatch)
        states.push_back({Naive::part(ends[0], at, 1), Naive::part(ends[1], at, 1)});
      for (const Row& row : n.run(steps, {counts.begin() + b * kTime, counts.begin() + (b + 1) * kTime}, states))
        rows.insert(rows.end(), row.begin(), row.end());
      for (size_t i = 0; i < cells; ++i) {
        const auto at = static_cast<std::ptrdiff_t>((i * kBatch + b) * kHidden);
        std::ranges::copy(states[i].first, ends[0].begin() + at);
        std::ranges::copy(states[i].second, ends[1].begin() + at);
      }
    }
    for (int i = 0; i < (naive.lstm ? 2 : 1); ++i) rows.insert(rows.end(), ends[i].begin(), ends[i].end());
    return rows;
  }
};

Tensor flat(const RecurrentResult& r) {
  std::vector<Tensor> all{reshape(r.output, {r.output.numel()})};
  for (const Tensor& s : r.state) all.push_back(reshape(s, {s.numel()}));
  return cat(all, 0);
}

// Cells and steps are 5 x 2 at most, each a handful of sums of 8 products at most; a gradient sums over some 10 of
// them.
constexpr double kFixture = 64 * 10 * 0x1p-52;

// Outputs, last states, and the gradients of rows, first states and weights.
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

TEST_CASE("recurrent layers are the loops of their definitions") {
  manual_seed(3);
  for (const Case& c : cases()) {
    INFO(name_of(c));
    Subject s(c);
    const Row expected = s.expected(s.naive);
    // Some 8 x 2 steps, each a handful of sums of at most 10 terms.
    check_close(flat(s.result()), from_vector(expected, {std::ssize(expected)}), 16 * 8 * std::sqrt(10) * 0x1p-52);
  }
}

TEST_CASE("GRU and LSTM have PyTorch's outputs, last states and gradients") {
  const TensorMap fixture = load_safetensors("tests/fixtures/recurrent.safetensors");  // torch_recurrent.py
  for (const bool lstm : {false, true})
    for (const int64_t layers : {1, 2})
      for (const bool both : {false, true}) check_case(fixture, lstm, layers, both);
}

TEST_CASE("gradients of recurrent layers are those of differences of the loops") {
  manual_seed(4);
  for (const Case& c : cases()) {
    Subject s(c);
    const Row expected = s.expected(s.naive), weight = randn({std::ssize(expected)}, {DType::f64}).to_vector<double>();
    backward(sum(flat(s.result()) * from_vector(weight, {std::ssize(weight)})));
    for (const NamedParameter& p : s.layer->named_parameters()) {
      const Row direction = randn(p.tensor.shape(), {DType::f64}).to_vector<double>(),
                g = p.tensor.grad().to_vector<double>();
      double length = 0, product = 0;
      for (double d : direction) length += d * d;
      for (size_t i = 0; i < g.size(); ++i) product += g[i] * direction[i] / std::sqrt(length);
      const auto value = [&](double by) {
        Naive moved = s.naive;
        for (size_t i = 0; i < direction.size(); ++i) moved.p.at(p.name)[i] += by * direction[i] / std::sqrt(length);
        const Row y = s.expected(moved);
        double sum = 0;
        for (size_t i = 0; i < y.size(); ++i) sum += y[i] * weight[i];
        return sum;
      };
      const auto difference = [&](double h) {
        return (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h);
      };
      // Along one direction of length 1: D(h) is off by c h^4 and by 3 roundings of a value over 2h; D(h) - D(h/2) is 15/16
      // of the former, which D(h/2) has a 16th of. A value is a sum of some 100 terms of size 1.
      const double h = 2e-4, fine = difference(h / 2), allowed = std::abs(difference(h) - fine) + 3 * 100 * 0x1p-52 / h;
      INFO(name_of(c) << ", " << p.name << ": " << product << ", difference " << fine << " within " << allowed);
      CHECK(std::abs(product - fine) <= allowed);
      CHECK(allowed <= 1e-7);
    }
  }
}

TEST_CASE("a sequence in two pieces is the sequence, and truncated gradients stop between them") {
  manual_seed(5);
  for (const bool lstm : {false, true}) {
    Subject s({lstm, {.inputs = kInputs, .hidden = kHidden, .layers = 2, .norm = RecurrentNorm::rms}, false, false});
    require_grad(s.x);
    const RecurrentResult whole = s.result();
    RecurrentResult first = (*s.layer)(narrow(s.x, 1, 0, 2));
    const RecurrentResult second = (*s.layer)(narrow(s.x, 1, 2, 2), {.state = first.state});
    check_close(cat({first.output, second.output}, 1), whole.output, 0);
    for (Tensor& part : first.state) part = detach(part);
    backward(sum((*s.layer)(narrow(s.x, 1, 2, 2), {.state = first.state}).output));
    const Row g = s.x.grad().to_vector<double>();
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
    // In each of the steps of two layers at most, some 10 numbers of the size of the largest are rounded by half of 2^-8.
    check_close(flat(rounded).to(DType::f64), exact, 2 * kTime * 10 * 0x1p-9);
    backward(sum(rounded.output));
    for (const Tensor& p : s.layer->parameters()) CHECK(p.grad().dtype() == DType::f32);
  }
}

TEST_CASE("what a mask hides is not looked at, NaN neither, and takes no gradient") {
  manual_seed(4);
  nn::Lstm layer({.inputs = 3, .hidden = 4, .layers = 2, .bidirectional = true, .norm = nn::RecurrentNorm::rms});
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
  CHECK(seen[2] == seen[0]);  // bit by bit, so without NaN
}

TEST_CASE("bad recurrent input is refused in a line") {
  const auto gru = [](RecurrentOptions o) {
    if (o.inputs == 0) o.inputs = kInputs;
    if (o.hidden == 0) o.hidden = kHidden;
    return Gru(o);
  };
  CHECK_THROWS_WITH(Gru({.inputs = 3}), "recurrent: 3 inputs, 0 hidden and 1 layers, expected at least 1 of each");
  CHECK_THROWS_WITH(gru({.norm = RecurrentNorm::rms, .p = 0}), "recurrent: p is 0, expected above 0 and at most 1");
  CHECK_THROWS_WITH(gru({.norm = RecurrentNorm::layer, .p = 0.5}), Contains("a share of the entries is RMSNorm's"));
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
                    "recurrent: the mask is f64, the rows f32");
  CHECK_THROWS_WITH(layer(zeros({2, 2, 3}), {.mask = ones({2, 3})}),
                    "recurrent: the mask has shape [2, 3], expected [2, 2]");
  CHECK_THROWS_WITH(layer(zeros({2, 2, 3}), {.state = {zeros({1, 2, 4})}}),
                    "recurrent: the state has shape [1, 2, 4], expected [1, 2, 5]");
  CHECK_THROWS_WITH(layer(zeros({2, 2, 3}), {.state = {zeros({1, 2, 5}), zeros({1, 2, 5})}}),
                    "recurrent: the state has 2 parts, expected 1");
}
