// Residual connections: Post-LN, and arrangements that exist here alone, whose second stream and index of the block the
// Transformer knows nothing of. Logits are held against plain loops over doubles, gradients against differences of
// them.
#include "tests/support/catch.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/system/profile.h"
#include "nn/gpt.h"
#include "nn/residual/all.h"
#include "nn/vit.h"
#include "tests/support/compare.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;

namespace {

// Mix-LN (2412.13795): Post-LN in the first blocks, Pre-LN behind them. One of four here.
BlockConnections mixed(const Stream& stream, const StreamNormOptions& norms, int64_t index, int64_t depth) {
  const bool post = index < (depth + 3) / 4;
  return post ? block_of<PostNorm>(stream, norms, index, depth) : block_of<PreNorm>(stream, norms, index, depth);
}
constexpr Arrangement kMixed{"mix_ln", mixed, last_of<PreNorm>};

// The other way round, so that a branch that waits meets a connection that does not add it.
BlockConnections reversed(const Stream& stream, const StreamNormOptions& norms, int64_t index, int64_t depth) {
  return index == 0 ? block_of<PreNorm>(stream, norms, index, depth) : block_of<PostNorm>(stream, norms, index, depth);
}
constexpr Arrangement kReversed{"pre_then_post", reversed, last_of<PreNorm>};

// ResiDual (2304.14802): a Post-LN stream and the sum of all branches beside it, which a norm ends.
struct ResiDual : StreamNorm {
  using StreamNorm::StreamNorm;
  Tensor read(Residual& r) override {
    if (!r.dual.defined()) r.dual = r.stream;
    return r.stream;
  }
  void join(Residual& r, const Tensor& branch) override {
    r.stream = add_normalize(r.stream, branch).normed;
    r.dual = r.dual + branch;
  }
};
struct ResiDualEnd : PreNorm {
  using PreNorm::PreNorm;
  Tensor read(Residual& r) override { return r.stream + normalize(r.dual); }
};
constexpr Arrangement kResiDual{"residual_dual", block_of<ResiDual>, last_of<ResiDualEnd>};

// GPAS (2506.22049) on Pre-LN: the sum of stream and branch is scaled by 1 - silu(gate), of which the gradient in the
// sum takes no notice. The gate belongs to the block: both connections use it.
struct Gpas : PreNorm {
  Tensor gate;
  Gpas(const Stream& stream, const StreamNormOptions& norms, const Tensor& shared = {}) : PreNorm(stream, norms) {
    gate = shared.defined() ? shared : add_parameter("gate", randn({1}));
  }
  void join(Residual& r, const Tensor& branch) override {
    PreNorm::join(r, branch);
    const Tensor sum = r.settle();
    r.stream = sum - silu(gate) * detach(sum);
  }
};
BlockConnections gated(const Stream& stream, const StreamNormOptions& norms, int64_t, int64_t) {
  auto first = std::make_unique<Gpas>(stream, norms);
  auto second = std::make_unique<Gpas>(stream, norms, first->gate);
  return {std::move(first), std::move(second)};
}
constexpr Arrangement kGpas{"gpas", gated, last_of<PreNorm>};

using Row = std::vector<double>;
using Rows = std::vector<Row>;

Rows operator+(const Rows& a, const Rows& b) {
  Rows sum = a;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[i].size(); ++j) sum[i][j] += b[i][j];
  return sum;
}

// The branches of a Transformer on the rows of one example, from the parameters by name.
struct Naive {
  std::map<std::string, Row> p;
  int64_t heads, depth;
  bool causal;
  double eps = 1e-5;

  // y = x W^T + b
  Rows linear(const Rows& x, const std::string& name) const {
    const Row &w = p.at(name + ".weight"), &b = p.at(name + ".bias");
    Rows y(x.size(), b);
    for (size_t i = 0; i < x.size(); ++i)
      for (size_t o = 0; o < b.size(); ++o)
        for (size_t j = 0; j < x[i].size(); ++j) y[i][o] += x[i][j] * w[o * x[i].size() + j];
    return y;
  }
  Rows norm(const Rows& x, const std::string& name) const {
    const Row &gain = p.at(name + ".weight"), &bias = p.at(name + ".bias");
    Rows y = x;
    for (Row& row : y) {
      const double d = static_cast<double>(row.size());
      double mean = 0, variance = 0;
      for (double v : row) mean += v / d;
      for (double v : row) variance += (v - mean) * (v - mean) / d;
      for (size_t j = 0; j < row.size(); ++j) row[j] = (row[j] - mean) / std::sqrt(variance + eps) * gain[j] + bias[j];
    }
    return y;
  }
  Rows attention(const Rows& x, int64_t block) const {
    const std::string name = "blocks." + std::to_string(block) + ".attn.";
    const Rows qkv = linear(x, name + "qkv");
    const size_t inner = qkv[0].size() / 3, head = inner / static_cast<size_t>(heads), time = x.size();
    Rows y(time, Row(inner));
    for (size_t t = 0; t < time; ++t)
      for (size_t from = 0; from < inner; from += head) {
        Row weight(causal ? t + 1 : time);
        double sum = 0;
        for (size_t s = 0; s < weight.size(); ++s) {
          double score = 0;
          for (size_t j = from; j < from + head; ++j) score += qkv[t][j] * qkv[s][inner + j];
          sum += weight[s] = std::exp(score / std::sqrt(static_cast<double>(head)));
        }
        for (size_t s = 0; s < weight.size(); ++s)
          for (size_t j = from; j < from + head; ++j) y[t][j] += weight[s] / sum * qkv[s][2 * inner + j];
      }
    return linear(y, name + "proj");
  }
  Rows mlp(const Rows& x, int64_t block) const {
    const std::string name = "blocks." + std::to_string(block) + ".mlp.";
    Rows hidden = linear(x, name + "fc1");
    for (Row& row : hidden)
      for (double& v : row) v *= 0.5 * std::erfc(-v / std::sqrt(2.0));
    return linear(hidden, name + "fc2");
  }
  Rows branch(const Rows& x, int64_t sub_layer) const {
    return sub_layer % 2 == 0 ? attention(x, sub_layer / 2) : mlp(x, sub_layer / 2);
  }
  static std::string norm_of(int64_t sub_layer) {
    return "blocks." + std::to_string(sub_layer / 2) + (sub_layer % 2 == 0 ? ".norm1" : ".norm2");
  }
};

using Pool = std::function<Rows(const Rows&)>;
// From the rows of an example to those that the head reads.
using Formula = std::function<Rows(const Naive&, const Rows&, const Pool&)>;

// Pre-LN in the blocks that `pre` names, Post-LN in the others.
Formula formula(std::function<bool(int64_t block, int64_t depth)> pre, bool final_norm) {
  return [=](const Naive& n, Rows x, const Pool& pool) {
    for (int64_t i = 0; i < 2 * n.depth; ++i)
      if (pre(i / 2, n.depth))
        x = x + n.branch(n.norm(x, n.norm_of(i)), i);
      else
        x = n.norm(x + n.branch(x, i), n.norm_of(i));
    return final_norm ? n.norm(pool(x), "norm") : pool(x);
  };
}

Rows residual_dual(const Naive& n, Rows x, const Pool& pool) {
  Rows dual = x;
  for (int64_t i = 0; i < 2 * n.depth; ++i) {
    const Rows f = n.branch(x, i);
    x = n.norm(x + f, n.norm_of(i)), dual = dual + f;
  }
  return pool(x) + n.norm(pool(dual), "norm");
}

Rows gpas(const Naive& n, Rows x, const Pool& pool) {
  for (int64_t i = 0; i < 2 * n.depth; ++i) {
    const double gate = n.p.at("blocks." + std::to_string(i / 2) + ".norm1.gate")[0];
    x = x + n.branch(n.norm(x, n.norm_of(i)), i);
    for (Row& row : x)
      for (double& v : row) v *= 1 - gate / (1 + std::exp(-gate));
  }
  return n.norm(pool(x), "norm");
}

struct Case {
  Arrangement arrangement;
  Formula formula;
  bool true_gradient = true;  // false: gradients are not those of the function
};

const Case kCases[] = {
    {kPreNorm, formula([](int64_t, int64_t) { return true; }, true)},
    {kPostNorm, formula([](int64_t, int64_t) { return false; }, false)},
    {kMixed, formula([](int64_t block, int64_t depth) { return block >= (depth + 3) / 4; }, true)},
    {kReversed, formula([](int64_t block, int64_t) { return block == 0; }, true)},
    {kResiDual, residual_dual},
    {kGpas, gpas, false},
};

constexpr int64_t kWidth = 6, kDepth = 3, kHeads = 2, kClasses = 5, kRows = 4;

TransformerOptions transformer(const Arrangement& residual) {
  return {.width = kWidth, .depth = kDepth, .heads = kHeads, .mlp_width = 7, .affine = true, .residual = residual};
}

// Both models on the same terms: an example's rows, and which of them the head reads.
struct Subject {
  std::unique_ptr<Module> model;
  Tensor inputs, targets;
  std::function<Rows(const Naive&, int64_t example)> rows;
  Pool pool;

  void fill() {
    model->to(DType::f64);
    const NoGrad no_grad;
    for (const Parameter& p : model->named_parameters()) copy_into(p.tensor, randn(p.tensor.shape()) * 0.5 + 0.3);
  }
  Naive naive(const TransformerOptions& t) const {
    Naive n{{}, t.heads, t.depth, dynamic_cast<Gpt*>(model.get()) != nullptr};
    for (const auto& [name, tensor] : model->state_dict()) n.p[name] = tensor.to_vector<double>();
    return n;
  }
};

Row row_of(const Row& table, int64_t i) { return {table.begin() + i * kWidth, table.begin() + (i + 1) * kWidth}; }

Subject gpt(const Arrangement& residual) {
  Subject s{
      std::make_unique<Gpt>(GptOptions{.vocab = kClasses, .context = kRows, .transformer = transformer(residual)}),
      randint(0, kClasses, {2, kRows}),
      randint(0, kClasses, {2, kRows}),
      {},
      [](const Rows& x) { return x; }};
  s.rows = [ids = s.inputs.to_vector<int64_t>()](const Naive& n, int64_t example) {
    Rows x;
    for (int64_t t = 0; t < kRows; ++t) {
      const Rows token = {row_of(n.p.at("token.weight"), ids[static_cast<size_t>(example * kRows + t)])};
      x.push_back((token + Rows{row_of(n.p.at("position.weight"), t)})[0]);
    }
    return x;
  };
  s.fill();
  return s;
}

// Images of 2 x 2 pixels, a patch each.
Subject vit(const Arrangement& residual, bool mean_pool) {
  Subject s{
      std::make_unique<Vit>(VitOptions{
          .image = 2, .patch = 1, .classes = kClasses, .mean_pool = mean_pool, .transformer = transformer(residual)}),
      randn({2, 2, 2, 1}, {DType::f64}),
      randint(0, kClasses, {2}),
      {},
      {}};
  s.rows = [pixels = s.inputs.to_vector<double>(), mean_pool](const Naive& n, int64_t example) {
    Rows x;
    for (int64_t t = 0; t < kRows; ++t) x.push_back({pixels[static_cast<size_t>(example * kRows + t)]});
    x = n.linear(x, "patch");
    for (int64_t t = 0; t < kRows; ++t)
      x[static_cast<size_t>(t)] = (Rows{x[t]} + Rows{row_of(n.p.at("position"), t)})[0];
    if (!mean_pool) x.insert(x.begin(), n.p.at("cls"));
    return x;
  };
  s.pool = [mean_pool](const Rows& x) {
    if (!mean_pool) return Rows{x[0]};
    Row mean(kWidth);
    for (const Row& row : x)
      for (size_t j = 0; j < mean.size(); ++j) mean[j] += row[j] / static_cast<double>(x.size());
    return Rows{mean};
  };
  s.fill();
  return s;
}

std::vector<Subject> subjects(const Arrangement& residual) {
  std::vector<Subject> all;
  all.push_back(gpt(residual)), all.push_back(vit(residual, false)), all.push_back(vit(residual, true));
  return all;
}

Row naive_logits(const Subject& s, const Naive& n, const Formula& formula) {
  Row logits;
  for (int64_t example = 0; example < s.inputs.size(0); ++example)
    for (const Row& row : n.linear(formula(n, s.rows(n, example), s.pool), "head"))
      logits.insert(logits.end(), row.begin(), row.end());
  return logits;
}

double naive_loss(const Subject& s, const Naive& n, const Formula& formula) {
  const Row logits = naive_logits(s, n, formula);
  const std::vector<int64_t> targets = s.targets.to_vector<int64_t>();
  double loss = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    double sum = 0;
    for (int64_t c = 0; c < kClasses; ++c) sum += std::exp(logits[i * kClasses + static_cast<size_t>(c)]);
    loss += std::log(sum) - logits[i * kClasses + static_cast<size_t>(targets[i])];
  }
  return loss / static_cast<double>(targets.size());
}

Tensor loss_of(Subject& s) {
  const Tensor logits = (*s.model)(s.inputs);
  return cross_entropy(reshape(logits, {s.targets.numel(), kClasses}), reshape(s.targets, {s.targets.numel()}));
}

int64_t calls(const profile::Profile& p, const std::string& kernel) {
  return std::count_if(p.calls.begin(), p.calls.end(), [&](const profile::Call& c) { return c.kernel == kernel; });
}

}  // namespace

TEST_CASE("Post-LN, Mix-LN, ResiDual and GPAS give a GPT's and a ViT's logits as their formulas do") {
  manual_seed(4);
  for (const Case& c : kCases)
    for (Subject& s : subjects(c.arrangement)) {
      INFO(c.arrangement.name);
      const Row expected = naive_logits(s, s.naive(transformer(c.arrangement)), c.formula);
      const Tensor logits = (*s.model)(s.inputs);
      // Some 20 sums of at most 18 terms in turn, each norm making an error relative to its rows.
      check_close(logits, from_vector(expected, logits.shape()), 20 * std::sqrt(18) * 16 * 0x1p-52);
    }
}

TEST_CASE("gradients of Post-LN, Mix-LN and ResiDual are those of differences of the formulas") {
  manual_seed(5);
  for (const Case& c : kCases) {
    if (!c.true_gradient) continue;
    for (Subject& s : subjects(c.arrangement)) {
      backward(loss_of(s));
      const Naive at = s.naive(transformer(c.arrangement));
      double largest = 0;
      for (const Parameter& p : s.model->named_parameters()) {
        // Along one direction of length 1 in each tensor: (8 (L(h) - L(-h)) - (L(2h) - L(-2h))) / 12 h, off by h^4 / 30
        // = 3e-16 times a fifth derivative, of up to some thousands here, and by some ten eps / h = 7e-13.
        const double h = 3e-4;
        const Row random = randn(p.tensor.shape(), {DType::f64}).to_vector<double>();
        double length = 0, product = 0;
        for (double r : random) length += r * r;
        const auto loss = [&](double step) {
          Naive moved = at;
          Row& value = moved.p.at(p.name);
          for (size_t i = 0; i < value.size(); ++i) value[i] += step * random[i] / std::sqrt(length);
          return naive_loss(s, moved, c.formula);
        };
        const Row g = gradient(p.tensor).to_vector<double>();
        for (size_t i = 0; i < g.size(); ++i) product += g[i] * random[i] / std::sqrt(length);
        const double difference = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h);
        INFO(c.arrangement.name << " " << p.name << ": " << product << ", difference " << difference);
        CHECK(std::abs(product - difference) <= 1e-10);
        largest = std::max(largest, std::abs(product));
      }
      CHECK(largest > 1e-2);
    }
  }
}

TEST_CASE("connections of a block may share a parameter: GPAS's gate gets both their gradients") {
  CHECK(gpt(kGpas).model->named_parameters().size() == gpt(kPreNorm).model->named_parameters().size() + kDepth);
  manual_seed(6);
  const auto [first, second] = gated(Stream(StreamForm::layer_norm, 3), {}, 0, 1);
  for (Module* m : {first.get(), second.get()}) m->to(DType::f64);
  const Row x = {1, -2, 0.5}, b1 = {0.25, 3, -1}, b2 = {2, 2, -0.5}, w = {0.3, -1, 2};
  const auto tensor = [](const Row& values) { return from_vector(values, {3}); };
  const Tensor rows = require_grad(tensor(x)), gate = first->parameters()[0];
  Residual r{rows, {}};
  first->join(r, tensor(b1));
  second->join(r, tensor(b2));
  backward(sum(tensor(w) * r.stream));
  const double a = gate.item(), s = 1 / (1 + std::exp(-a)), f = a * s, df = s * (1 + a * (1 - s));
  double expected = 0;
  for (size_t j = 0; j < 3; ++j) expected -= df * w[j] * ((x[j] + b1[j]) + ((x[j] + b1[j]) * (1 - f) + b2[j]));
  CHECK(std::abs(gradient(gate).item() - expected) <= 16 * 0x1p-52 * 12);
  CHECK(gradient(rows).to_vector<double>() == w);
}

TEST_CASE("two branches that join one after the other are both added, whatever was read") {
  const Stream stream(StreamForm::layer_norm, 2);
  const Tensor x = from_vector<double>({1, 2}, {2}), a = from_vector<double>({10, 20}, {2}),
               b = from_vector<double>({300, 100}, {2});
  for (const bool post : {false, true}) {
    const std::unique_ptr<Connection> first = block_of<PreNorm>(stream, {}, 0, 1).attention;
    const std::unique_ptr<Connection> second =
        (post ? block_of<PostNorm> : block_of<PreNorm>)(stream, {}, 0, 1).attention;
    Residual r{x, {}};
    first->join(r, a);
    second->join(r, b);
    // LayerNorm of (311, 122) is (1, -1) but for eps / (2 variance).
    const Row found = r.settle().to_vector<double>();
    CHECK(std::abs(found[0] - (post ? 1 : 311)) < 1e-8);
    CHECK(std::abs(found[1] - (post ? -1 : 122)) < 1e-8);
  }
}

TEST_CASE("the residual addition is in the pass of the norm, before it in Pre-LN and behind it in Post-LN") {
  const auto profile_of = [](const Arrangement& residual) {
    Subject s = gpt(residual);
    profile::start();
    backward(loss_of(s));
    return profile::stop();
  };
  const profile::Profile pre = profile_of(kPreNorm), post = profile_of(kPostNorm);
  CHECK(calls(pre, "norm_forward") == 2 * kDepth + 1);
  CHECK(calls(pre, "norm_backward") == 2 * kDepth + 1);
  CHECK(calls(post, "norm_forward") == 2 * kDepth);
  CHECK(calls(post, "norm_backward") == 2 * kDepth);
  const auto additions = [](const profile::Profile& p) {
    return std::count_if(p.calls.begin(), p.calls.end(), [](const profile::Call& c) {
      return std::string(c.kernel) == "binary" && !c.backward && c.module.find("blocks") != std::string::npos;
    });
  };
  CHECK(additions(pre) == 0);
  CHECK(additions(post) == 0);
  const auto modules = [](const profile::Profile& p, bool backward) {
    std::vector<std::string> found;
    for (const profile::Call& c : p.calls)
      if (c.backward == backward && std::string(c.kernel).starts_with("norm_")) found.push_back(c.module);
    return found;
  };
  CHECK(modules(pre, false) == std::vector<std::string>{"blocks.0.norm1", "blocks.0.norm2", "blocks.1.norm1",
                                                        "blocks.1.norm2", "blocks.2.norm1", "blocks.2.norm2", "norm"});
  CHECK(modules(post, false) == std::vector<std::string>{"blocks.0.norm1", "blocks.0.norm2", "blocks.1.norm1",
                                                         "blocks.1.norm2", "blocks.2.norm1", "blocks.2.norm2"});
}

TEST_CASE("Post-LN is a model of the layer_norm form alone, without a norm before the head") {
  const auto build = [](TransformerOptions t) {
    t.width = 8, t.residual = kPostNorm, t.depth = 1;
    return Gpt({.vocab = 5, .context = 4, .tied = true, .transformer = t});
  };
  for (const StreamForm form :
       {StreamForm::rms_norm, StreamForm::crms_norm, StreamForm::crms_isometric, StreamForm::none})
    for (const StreamStorage storage : {StreamStorage::raw, StreamStorage::mapped})
      CHECK_THROWS_WITH(build({.stream = form, .storage = storage}),
                        text("post_norm: the stream is one of ", name_of(form),
                             ", expected layer_norm: the other forms are those of pre_norm"));
  CHECK_THROWS_WITH(build({.centre_readers = true}), Contains("layer_norm with centred readers, expected layer_norm"));
  const auto names = [](const Module& m) {
    std::vector<std::string> found;
    for (const Parameter& p : m.named_parameters()) found.push_back(p.name);
    return found;
  };
  std::vector<std::string> expected = names(build({.affine = true}));
  CHECK(std::count(expected.begin(), expected.end(), "blocks.0.norm2.weight") == 1);
  CHECK(std::count(expected.begin(), expected.end(), "norm.weight") == 0);
  CHECK(names(build({.affine = true, .final_norm = false})) == expected);
}
