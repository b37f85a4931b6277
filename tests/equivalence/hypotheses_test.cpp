// A training step spelled out in f64, with planted mistakes: each must be found by its own hypothesis and no other, at
// the tensor where it begins. Also the order of execution, from names.
#include <map>
#include <numeric>
#include <random>

#include "equivalence/explain/compare_tensors.h"
#include "autograd/ops/norm.h"
#include "equivalence/explain/models.h"
#include "tests/equivalence/room.h"

namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;
constexpr int kWidth = 8, kRows = 12;

enum class Fault {
  none,
  backward_mean,
  eps,
  stored_gain,
  read_gain,
  divisor,
  rms,
  transposed,
  loss_mean,
  tanh_gelu,
  no_decay,
  coupled,
  adam_eps,
  rate,
  ones,
  entry,
  one_halved,
  one_turned,
  activations
};

struct NaiveNorm {
  double eps = 1e-5;
  int divisor = kWidth;
  bool centred = true, mean_in_backward = true;

  double mean(const Row& x) const { return std::accumulate(x.begin(), x.end(), 0.0) / kWidth; }
  Row normalised(const Row& x, double& s) const {
    Row c = x;
    double squares = 0;
    for (double& v : c) v -= centred ? mean(x) : 0, squares += v * v;
    s = 1 / std::sqrt(squares / divisor + eps);
    for (double& v : c) v *= s;
    return c;
  }
  // s (h - mean h - n mean(h n)), with h = gain dy.
  Row backward(const Row& x, const Row& gain, const Row& dy) const {
    double s = 0, of_h = 0, of_hn = 0;
    const Row n = normalised(x, s);
    for (int j = 0; j < kWidth; ++j) of_h += gain[j] * dy[j] / kWidth, of_hn += gain[j] * dy[j] * n[j] / kWidth;
    Row dx(kWidth);
    for (int j = 0; j < kWidth; ++j) dx[j] = s * (gain[j] * dy[j] - (mean_in_backward ? of_h : 0) - n[j] * of_hn);
    return dx;
  }
};

struct Program {
  explicit Program(Fault f) : fault(f) {
    draw.seed(7);
    norm.eps = f == Fault::eps ? 1e-6 : 1e-5;
    norm.divisor = f == Fault::divisor ? kWidth - 1 : kWidth;
    norm.centred = f != Fault::rms, norm.mean_in_backward = f != Fault::backward_mean;
    step();
  }

  Fault fault;
  NaiveNorm norm;
  std::mt19937 draw;
  std::map<std::string, Tensor> recorded;  // sorted like in the safetensors library

  Rows random(int rows, double size = 1, double mean = 0) {
    std::normal_distribution<double> normal(mean, size);
    Rows r(rows, Row(kWidth));
    for (Row& row : r)
      for (double& v : row) v = normal(draw);
    return r;
  }
  void record(const std::string& name, const Rows& r) {
    std::vector<double> flat;
    for (const Row& row : r) flat.insert(flat.end(), row.begin(), row.end());
    const int64_t n = static_cast<int64_t>(r.size());
    recorded[name] = n == 1 ? from_vector(flat, {kWidth}) : from_vector(flat, {n, kWidth});
  }
  // y = x W^T; also used for the gradients of x and W.
  static Rows times(const Rows& x, const Rows& w) {
    Rows y(x.size(), Row(w.size()));
    for (size_t i = 0; i < x.size(); ++i)
      for (size_t o = 0; o < w.size(); ++o) y[i][o] = std::inner_product(x[i].begin(), x[i].end(), w[o].begin(), 0.0);
    return y;
  }
  static Rows turned(const Rows& x) {
    Rows t(x[0].size(), Row(x.size()));
    for (size_t i = 0; i < x.size(); ++i)
      for (size_t j = 0; j < x[i].size(); ++j) t[j][i] = x[i][j];
    return t;
  }
  Rows normalised(const std::string& name, const Rows& x, Row gain, const Row& bias) {
    record(name + ".input", x);
    Rows y;
    for (const Row& row : x) {
      double s = 0;
      y.push_back(norm.normalised(row, s));
      for (int j = 0; j < kWidth; ++j)
        y.back()[j] = y.back()[j] * (gain[j] + (fault == Fault::read_gain ? 1 : 0)) + bias[j];
    }
    record(name + ".output", y);
    return y;
  }
  // Returns the gradient of the input; records those of gain and bias.
  Rows back(const std::string& name, const Rows& x, const Row& gain, const Rows& dy) {
    Rows dx, of_gain(1, Row(kWidth)), of_bias(1, Row(kWidth));
    for (size_t i = 0; i < x.size(); ++i) {
      double s = 0;
      const Row n = norm.normalised(x[i], s);
      for (int j = 0; j < kWidth; ++j) of_gain[0][j] += dy[i][j] * n[j], of_bias[0][j] += dy[i][j];
      dx.push_back(norm.backward(x[i], gain, dy[i]));
    }
    gradient(name + ".weight", of_gain), gradient(name + ".bias", of_bias);
    return dx;
  }
  void gradient(const std::string& name, const Rows& g) {
    record(name + ".grad", g);
    const Tensor w = recorded.at(name);
    const bool vector = g.size() == 1;
    std::vector<double> after = w.to_vector<double>();
    const double decay = vector && fault == Fault::no_decay ? 0 : 0.1, eps = fault == Fault::adam_eps ? 1e-4 : 1e-8,
                 rate = fault == Fault::rate ? 2e-3 : 1e-3;
    for (size_t i = 0; i < after.size(); ++i) {
      double of = g[i / kWidth][i % kWidth];
      if (fault == Fault::coupled) of += decay * after[i];
      after[i] = after[i] * (1 - (fault == Fault::coupled ? 0 : rate * decay)) - rate * of / (std::abs(of) + eps);
    }
    recorded[name + ".after"] = from_vector(after, w.shape());
  }

  // x + proj(gelu(fc(ln(x)))), a norm, and as loss the inner product with random numbers.
  void step() {
    const Rows x = random(kRows, 0.1, 0.3), fc = random(kWidth), proj = random(kWidth);
    Row gain = random(1, 0.2, 1)[0], last_gain = random(1, 0.2, 1)[0];
    const Row bias = random(1)[0], last_bias = random(1)[0];
    Rows c = random(kRows, 1e-3);
    if (fault == Fault::ones) c.assign(kRows, Row(kWidth, 1)), last_gain.assign(kWidth, 1);
    if (fault == Fault::loss_mean)
      for (Row& row : c)
        for (double& v : row) v /= 96;
    record("h.0.ln.weight", {gain}), record("h.0.ln.bias", {bias});
    record("ln_f.weight", {last_gain}), record("ln_f.bias", {last_bias});
    record("h.0.fc.weight", fc), record("h.0.proj.weight", proj);

    const Rows n = normalised("h.0.ln", x, gain, bias), f = times(n, fc);
    record("h.0.fc.output", f);
    Rows a = f, slope = f;
    for (size_t i = 0; i < a.size(); ++i)
      for (int j = 0; j < kWidth; ++j) {
        const double v = f[i][j], u = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
        a[i][j] = fault == Fault::tanh_gelu ? v / 2 * (1 + std::tanh(u)) : v / 2 * (1 + std::erf(v / std::sqrt(2)));
        slope[i][j] = (1 + std::erf(v / std::sqrt(2))) / 2 + v * std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
      }
    record("h.0.act.output", a);
    Rows p = times(a, proj), sum = p;
    record("h.0.proj.output", p);
    for (size_t i = 0; i < sum.size(); ++i)
      for (int j = 0; j < kWidth; ++j) sum[i][j] += x[i][j];
    normalised("ln_f", sum, last_gain, last_bias);

    const Rows g = back("ln_f", sum, last_gain, c);
    record("ln_f.input.grad", g);
    gradient("h.0.proj.weight", times(turned(g), turned(a)));
    Rows h = times(g, turned(proj));
    for (size_t i = 0; i < h.size(); ++i)
      for (int j = 0; j < kWidth; ++j) h[i][j] *= slope[i][j];
    gradient("h.0.fc.weight", times(turned(h), turned(n)));
    back("h.0.ln", x, gain, times(h, turned(fc)));

    if (fault == Fault::stored_gain)
      for (const char* name : {"h.0.ln.weight", "ln_f.weight"}) recorded[name] = recorded[name] - 1.0;
    if (fault == Fault::transposed) record("h.0.fc.weight", turned(fc));
    if (fault == Fault::entry) recorded["h.0.proj.weight.grad"].mutable_data<double>()[5] *= 1.5;
    if (fault == Fault::one_halved) recorded["h.0.proj.weight.grad"] = recorded["h.0.proj.weight.grad"] * 0.5;
    if (fault == Fault::one_turned) {
      Tensor& turned_alone = recorded["h.0.proj.weight.grad"];
      turned_alone = contiguous(transpose(turned_alone, 0, 1));
    }
    if (fault == Fault::activations) record("h.0.act.output", random(kRows));
  }

  TensorMap tensors() const {
    TensorMap all;
    for (const auto& [name, tensor] : recorded) all.add(name, tensor);
    return all;
  }
};

streams::Layout layout() {
  streams::Layout l;
  l.writes("h.*.proj.weight", 0).reads("h.*.fc.weight", "h.*.ln", 1).reads("head.weight", "ln_f", 1);
  return l;
}

TensorsComparison compared(const TensorMap& a, const TensorMap& b) {
  CompareTensorsOptions o{.layouts = {layout()}};
  o.order = execution_order(a, false, {}, o.layouts);
  return compare_tensors(a, b, {}, o);
}

struct Planted {
  Fault fault;
  const char *first, *agrees, *says;  // `says` empty: no hypothesis fits
};
const Planted kPlanted[] = {
    {Fault::backward_mean, "ln_f.input.grad", "ln_f.bias.grad", "a norm's backward without its mean term"},
    {Fault::eps, "h.0.ln.output", "h.0.ln.input", "another eps: B has 1e-06, A 1e-05"},
    {Fault::stored_gain, "h.0.ln.weight", "h.0.ln.bias", "a gain that is stored less 1 on one side"},
    {Fault::read_gain, "h.0.ln.output", "h.0.ln.input", "another use of the gain"},
    {Fault::divisor, "h.0.ln.output", "h.0.ln.input", "another divisor in the norm: B divides by 7, A by 8"},
    {Fault::rms, "h.0.ln.output", "h.0.ln.input", "another norm: A computes layer_norm, B rms_norm"},
    {Fault::transposed, "h.0.fc.weight", "h.0.ln.weight", "stored transposed"},
    {Fault::loss_mean, "ln_f.weight.grad", "ln_f.output", "a factor of 0.0104167, about 1 / 96"},
    {Fault::tanh_gelu, "h.0.act.output", "h.0.fc.output", "another activation: A computes GELU (erf), B GELU (tanh)"},
    {Fault::no_decay, "h.0.ln.bias.after", "h.0.ln.bias.grad",
     "another weight decay: B takes off 0 of each weight per step, A 0.0001"},
    {Fault::coupled, "h.0.ln.bias.after", "h.0.ln.bias.grad", "a decay that B adds to the gradient"},
    {Fault::adam_eps, "h.0.ln.bias.after", "h.0.ln.bias.grad", "another eps of Adam: B has 0.0001, A 1e-08"},
    {Fault::rate, "h.0.ln.bias.after", "h.0.ln.bias.grad", "another learning rate: B has 0.002, A 0.001"},
    {Fault::entry, "h.0.proj.weight.grad", "ln_f.input.grad", ""},
    {Fault::one_halved, "h.0.proj.weight.grad", "ln_f.input.grad", ""},
    {Fault::one_turned, "h.0.proj.weight.grad", "ln_f.input.grad", ""},
    {Fault::activations, "h.0.act.output", "h.0.fc.output", ""},
};

}  // namespace

TEST_CASE("hypotheses: each planted fault is found at the tensor where it begins, and only as itself") {
  const TensorMap a = Program(Fault::none).tensors();
  CHECK(compared(a, Program(Fault::none).tensors()).identical);
  for (const Planted& p : kPlanted) {
    const TensorsComparison r = compared(a, Program(p.fault).tensors());
    INFO(p.first << ": " << r.sentence());
    REQUIRE(r.first_difference);
    CHECK(r.first_difference->place.tensor == p.first);
    CHECK(r.agrees == p.agrees);
    CHECK_FALSE(r.tried.empty());
    if (!*p.says) CHECK_THAT(r.sentence(), Contains("no cause was found; tested: "));
    for (const Planted& other : kPlanted)
      if (*other.says) CHECK((r.likely_cause.find(other.says) != r.likely_cause.npos) == (&other == &p));
  }
}

TEST_CASE("hypotheses: a gradient of ones shows rounding alone") {
  const TensorMap a = Program(Fault::ones).tensors();
  Program other(Fault::ones);
  Tensor& g = other.recorded.at("ln_f.input.grad");
  g = g + randn(g.shape(), {DType::f64}) * 1e-17;
  const TensorsComparison r = compared(a, other.tensors());
  INFO(r.sentence());
  CHECK(r.verdict == Verdict::undecided);
  CHECK_THAT(r.likely_cause, Contains("a gradient of ones: the gradient that enters the norm is the same"));
}

TEST_CASE("hypotheses: the divisor of a compressed norm is named with its input, and not without") {
  // x / sqrt((sum x^2 + (sum x)^2) / D + eps), D = n + 1
  std::mt19937 draw(3);
  std::normal_distribution<double> normal;
  constexpr int kStored = 15;
  const auto norm = [&](const std::vector<double>& x, double divisor) {
    std::vector<double> y = x;
    for (size_t row = 0; row < x.size(); row += kStored) {
      double squares = 0, sum = 0;
      for (size_t j = row; j < row + kStored; ++j) squares += x[j] * x[j], sum += x[j];
      for (size_t j = row; j < row + kStored; ++j) y[j] /= std::sqrt((squares + sum * sum) / divisor + 1e-5);
    }
    return y;
  };
  std::vector<double> x(kStored * 4);
  for (double& v : x) v = normal(draw);
  const auto file = [&](double divisor, bool input) {
    TensorMap m;
    if (input) m.add("ln.input", from_vector(x, {4, kStored}));
    m.add("ln.output", from_vector(norm(x, divisor), {4, kStored}));
    return m;
  };
  CHECK_THAT(compare_tensors(file(16, true), file(15, true)).likely_cause,
             Contains("B divides by 15, A by 16 (a ratio of sqrt(15 / 16) = 0.968246)"));
  CHECK(compare_tensors(file(16, false), file(15, false)).likely_cause.empty());  // with eps the ratio is not constant
}

TEST_CASE("hypotheses: inherited differences, and constants that are not a mean, are not explained") {
  const auto said = [](const char* first, const Tensor& a, const Tensor& b, bool normalised) {
    const auto file = [&](const Tensor& x) {
      TensorMap m;
      m.add(first, x);
      if (normalised) m.add("ln.output", layer_norm(x));
      return m;
    };
    return compare_tensors(file(a), file(b));
  };
  manual_seed(5);
  const Tensor a = randn({6, 7}, {DType::f64}), b = randn({6, 7}, {DType::f64}), row = randn({7}, {DType::f64});
  const TensorsComparison inherited = said("ln.input", a, b, true);
  CHECK(inherited.likely_cause == "");
  CHECK(std::ranges::find(inherited.tried, "another eps of a norm") == inherited.tried.end());
  CHECK(said("fc.weight", a, a + row, false).likely_cause == "");
  CHECK(said("fc.weight.grad", a, a + row, false).likely_cause == "");
  // Rows of zeros (padding) contain no information about eps.
  const Tensor padded = where(arange(0, 6, 1, {DType::f64}) < 2.0, zeros({6}, {DType::f64}), ones({6}, {DType::f64}));
  const Tensor x = a * reshape(padded, {6, 1});
  const auto model = fit_norm({x, layer_norm(x, {}, {}, {.eps = 1e-3}), {}, {}}, 1e-10);
  REQUIRE(model);
  CHECK(std::abs(model->eps - 1e-3) < 1e-12);
}

TEST_CASE("recorded tensors: meanings of names") {
  const auto is = [](const char* name, const Recorded& expected) {
    INFO(name);
    CHECK(recorded(name) == expected);
  };
  using enum Stage;
  using enum Side;
  is("h.0.ln_1.weight", {0, before, parameter, "h.0.ln_1.weight"});
  is("h.0.ln_1.output", {0, forward, output, "h.0.ln_1"});
  is("h.0.ln_1.output.grad", {0, gradient, output, "h.0.ln_1"});
  is("h.0.ln_1.grad_input", {0, gradient, input, "h.0.ln_1"});
  is("grad.h.0.ln_1.weight", {0, gradient, parameter, "h.0.ln_1.weight"});
  is("step.12.h.0.w.after", {12, after, parameter, "h.0.w"});
  is("after.step.3.w", {3, after, parameter, "w"});
  is("w.exp_avg", {0, state, parameter, "w.exp_avg"});
  is("output.weight", {0, before, parameter, "output.weight"});  // a parameter of the head, not a module's output
  is("blocks.0.hook_resid_pre", {0, forward, output, "blocks.0.hook_resid_pre"});  // TransformerLens
  is("loss", {0, forward, output, "loss"});
  is("step.weight", {0, before, parameter, "step.weight"});
  is("step.-1.w", {0, before, parameter, "step.-1.w"});
  for (const char* whole : {"", "grad", "output", ".", "step.1", "after"}) CHECK_NOTHROW(recorded(whole));
}

TEST_CASE("the order of execution comes from an argument, the layout, the file or the numbers in names") {
  const auto order = [](std::vector<std::string> names, std::vector<std::string> given = {},
                        std::span<const streams::Layout> layouts = {}) {
    TensorMap m;
    for (const std::string& name : names) m.add(name, zeros({1}));
    return execution_order(m, false, given, layouts);
  };
  using Names = std::vector<std::string>;
  const auto sorted = order({"h.10.w", "h.10.w.grad", "h.2.w", "h.2.w.after", "h.2.w.grad"});
  CHECK(sorted.names == Names{"h.2.w", "h.10.w", "h.10.w.grad", "h.2.w.grad", "h.2.w.after"});
  CHECK(sorted.source == "of names");
  const auto file = order({"wte.w", "h.1.w", "h.0.w", "h.0.w.grad", "h.1.w.grad", "wte.w.grad"});
  CHECK(file.names == Names{"wte.w", "h.1.w", "h.0.w", "h.0.w.grad", "h.1.w.grad", "wte.w.grad"});
  CHECK(file.source == "of the file");
  const streams::Layout l = [] {
    streams::Layout of;
    of.reads("h.*.attn.qkv", "h.*.n1", 1).reads("h.*.fc1", "h.*.n2", 1).reads("head.weight", "last", 1);
    of.writes("wte.weight", 1).writes("h.*.attn.out", 0).writes("h.*.fc2", 0);
    return of;
  }();
  const Names run = {"wte.output",          "h.0.input",
                     "h.0.n1.output",       "h.0.attn.qkv.output",
                     "h.0.attn.out.output", "h.0.attn.output",
                     "h.0.n2.output",       "h.0.fc1.output",
                     "h.0.fc2.output",      "h.0.output",
                     "h.10.n1.output",      "last.output",
                     "head.output",         "loss"};
  const Names shuffled(run.rbegin(), run.rend());
  CHECK(order(shuffled, {}, {&l, 1}).names == run);
  const auto given = order(shuffled, {"wte", "h.*.n1", "h.*.attn", "h.*.n2", "h.*.fc1", "h.*.fc2", "last", "head"});
  CHECK(given.names.front() == "wte.output");
  CHECK(given.names.back() == "loss");
  CHECK(order(run, shuffled).names == shuffled);  // if all names are given, exactly this order
  CHECK_THROWS_WITH(order(run, {"nothing"}), Contains("no tensor is of 'nothing'"));
  // The encoder runs before the decoder blocks that read from it. The readers (dec.*.attn.kv) are ordered with the
  // decoder's blocks.
  const auto tower = [](const std::string& of) {
    return streams::Layout().writes(of + ".*.attn.out", 0).reads(of + ".*.attn.q", of + ".*.norm", 1);
  };
  const std::vector<streams::Layout> both = {tower("dec").writes("table.weight", 1).reads("head.weight", "last", 1),
                                             tower("enc").reads("dec.*.attn.kv", "enc_last", 1)};
  const Names two = {"enc.0.norm.output", "enc.0.attn.q.output",  "enc_last.output",       "table.output",
                     "dec.0.norm.output", "dec.0.attn.kv.output", "dec.0.attn.out.output", "last.output"};
  CHECK(order(Names(two.rbegin(), two.rend()), {}, both).names == two);
  CHECK(naturally_before("h.2.x", "h.10.x"));
  CHECK(naturally_before("h.02", "h.2") != naturally_before("h.2", "h.02"));
}
