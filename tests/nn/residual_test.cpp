// Residual connections: logits of every arrangement that is listed, and of one that exists here alone, against plain loops
// over doubles. Their gradients are held against PyTorch's in tests/nn/encoder_decoder_test.cpp.
#include <map>

#include "core/system/profile.h"
#include "nn/gpt.h"
#include "nn/residual/all.h"
#include "nn/vit.h"
#include "tests/support/ops.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;

namespace {

// The other way round, so that a branch that waits meets a connection that does not add it.
BlockConnections reversed(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  return place.index == 0 ? block_of<PreNorm>(width, norms, place) : block_of<PostNorm>(width, norms, place);
}
constexpr Arrangement kReversed{"pre_then_post", reversed, last_of<PreNorm>};

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
  NormKind kind = NormKind::layer;
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
      if (kind == NormKind::layer || name.ends_with("inner_norm"))
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
        for (size_t s = 0; s < weight.size(); ++s)
          for (size_t j = from; j < from + head; ++j)
            weight[s] += qkv[t][j] * qkv[s][inner + j] / std::sqrt(static_cast<double>(head));
        const double largest = *std::ranges::max_element(weight);
        double sum = 0;
        for (double& w : weight) sum += w = std::exp(w - largest);
        for (size_t s = 0; s < weight.size(); ++s)
          for (size_t j = from; j < from + head; ++j) y[t][j] += weight[s] / sum * qkv[s][2 * inner + j];
      }
    return linear(inner_normed(y, name), name + "proj");
  }
  // The LayerNorm inside of a branch, where there is one.
  Rows inner_normed(const Rows& x, const std::string& branch) const {
    return p.contains(branch + "inner_norm.weight") ? norm(x, branch + "inner_norm") : x;
  }
  Rows mlp(const Rows& x, int64_t block) const {
    const std::string name = "blocks." + std::to_string(block) + ".mlp.";
    Rows hidden = linear(x, name + "fc1");
    for (Row& row : hidden)
      for (double& v : row) v *= 0.5 * std::erfc(-v / std::sqrt(2.0));
    return linear(inner_normed(hidden, name), name + "fc2");
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

Rows operator*(double f, Rows x) {
  for (Row& row : x)
    for (double& v : row) v *= f;
  return x;
}

// x <- LayerNorm(x + F(x)) beside d <- d + F(x).
Rows dual(const Naive& n, Rows x, const Pool& pool) {
  Rows dual = x;
  for (int64_t i = 0; i < 2 * n.depth; ++i) {
    const Rows f = n.branch(x, i);
    x = n.norm(x + f, n.norm_of(i)), dual = dual + f;
  }
  Naive last = n;
  last.eps = 1e-7;
  return pool(x) + last.norm(pool(dual), "norm");
}

// phi(x) = x - silu(gate) x with the gate of the block.
Rows gated(const Naive& n, const Rows& x, int64_t sub_layer) {
  const double gate = n.p.at("blocks." + std::to_string(sub_layer / 2) + ".norm1.gate")[0];
  return x + -gate / (1 + std::exp(-gate)) * x;
}

// A sub-layer: what x becomes.
using SubLayer = Rows (*)(const Naive&, const Rows& x, int64_t i);
Rows post(const Naive& n, const Rows& x, int64_t i) { return n.norm(x + n.branch(x, i), n.norm_of(i)); }
Rows pre(const Naive& n, const Rows& x, int64_t i) { return x + n.branch(n.norm(x, n.norm_of(i)), i); }
Rows sandwich(const Naive& n, const Rows& x, int64_t i) {
  return x + n.norm(n.branch(n.norm(x, n.norm_of(i)), i), n.norm_of(i) + ".after");
}
double alpha(const Naive& n) { return std::pow(2 * static_cast<double>(n.depth), 0.25); }
Rows deep(const Naive& n, const Rows& x, int64_t i) { return n.norm(alpha(n) * x + n.branch(x, i), n.norm_of(i)); }
Rows scaled(const Naive& n, const Rows& x, int64_t i) {
  return x + n.branch(1 / std::sqrt(1.0 + static_cast<double>(i / 2)) * n.norm(x, n.norm_of(i)), i);
}
Rows deep_gated(const Naive& n, const Rows& x, int64_t i) {
  return n.norm(alpha(n) * gated(n, x, i) + n.branch(x, i), n.norm_of(i));
}
Rows post_gated(const Naive& n, const Rows& x, int64_t i) {
  return n.norm(gated(n, x, i) + n.branch(x, i), n.norm_of(i));
}
template <SubLayer f> Rows then_gated(const Naive& n, const Rows& x, int64_t i) { return gated(n, f(n, x, i), i); }

// `first` in the first of four blocks, `rest` in the others.
Formula formula(SubLayer first, SubLayer rest, bool final_norm) {
  return [=](const Naive& n, Rows x, const Pool& pool) {
    for (int64_t i = 0; i < 2 * n.depth; ++i) x = (i < 2 ? first : rest)(n, x, i);
    return final_norm ? n.norm(pool(x), "norm") : pool(x);
  };
}

struct Case {
  Arrangement arrangement;
  Formula formula;
};

const Case kCases[] = {
    {kPreLn, formula(pre, pre, true)},
    {kPostLn, formula(post, post, false)},
    {kDeepNorm, formula(deep, deep, false)},
    {kSandwich, formula(sandwich, sandwich, true)},
    {kSubLn, formula(pre, pre, true)},
    {kResiDual, dual},
    {kMixLn, formula(post, pre, true)},
    {kReversed, formula(pre, post, true)},
    {kLayerNormScaling, formula(scaled, scaled, true)},
    {kPreGpas, formula(then_gated<pre>, then_gated<pre>, true)},
    {kLnsGpas, formula(then_gated<scaled>, then_gated<scaled>, true)},
    {kSandwichGpas, formula(then_gated<sandwich>, then_gated<sandwich>, true)},
    {kDeepPostGpas, formula(deep_gated, deep_gated, false)},
    {kPostPreGpas, formula(post_gated, then_gated<pre>, true)},
};

constexpr int64_t kWidth = 6, kDepth = 4, kClasses = 5, kRows = 4;

TransformerOptions transformer(const Arrangement& residual, NormKind norm = NormKind::layer) {
  TransformerOptions t{.width = kWidth, .depth = kDepth, .heads = 2, .mlp_width = 7, .affine = true};
  t.norm = norm, t.connection = residual;
  return t;
}

// Both models on the same terms: an example's rows, and which of them the head reads.
struct Subject {
  std::shared_ptr<Module> model;
  Tensor inputs;
  std::function<Rows(const Naive&, int64_t example)> rows;
  Pool pool;

  void fill() {
    model->to(DType::f64);
    const NoGrad no_grad;
    for (const NamedParameter& p : model->named_parameters()) {
      const bool gate = p.name.ends_with("gate");  // a large one would leave norms almost nothing
      copy_into(p.tensor, randn(p.tensor.shape()) * (gate ? 0.1 : 0.5) + 0.3);
    }
  }
  Naive naive(const TransformerOptions& t) const {
    Naive n{{}, t.heads, t.depth, dynamic_cast<Gpt*>(model.get()) != nullptr, t.norm};
    for (const auto& [name, tensor] : model->state_dict()) n.p[name] = tensor.to_vector<double>();
    return n;
  }
};

Row row_of(const Row& table, int64_t i) { return {table.begin() + i * kWidth, table.begin() + (i + 1) * kWidth}; }

Subject gpt(const TransformerOptions& t) {
  Subject s{std::make_shared<Gpt>(GptOptions{.vocab = kClasses, .context = kRows, .transformer = t}),
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
Subject vit(const TransformerOptions& t, bool mean_pool) {
  Subject s{std::make_shared<Vit>(
                VitOptions{.image = 2, .patch = 1, .classes = kClasses, .mean_pool = mean_pool, .transformer = t}),
            randn({2, 2, 2, 1}, {DType::f64}),
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

}  // namespace

TEST_CASE("every arrangement that is listed has its formula here") {
  for (const Arrangement& a : kArrangements)
    CHECK(std::ranges::count(kCases, std::string_view(a.name), [](const Case& c) { return c.arrangement.name; }) == 1);
}

TEST_CASE("every arrangement gives a GPT's and a ViT's logits as its formula does, with LayerNorm and with RMSNorm") {
  manual_seed(4);
  for (const Case& c : kCases)
    for (NormKind norm : {NormKind::layer, NormKind::rms}) {
      const TransformerOptions t = transformer(c.arrangement, norm);
      for (const Subject& s : {gpt(t), vit(t, false), vit(t, true)}) {
        INFO(c.arrangement.name << ", " << name_of(norm));
        const Naive n = s.naive(t);
        Row expected;
        for (int64_t example = 0; example < 2; ++example)
          for (const Row& row : n.linear(c.formula(n, s.rows(n, example), s.pool), "head"))
            expected.insert(expected.end(), row.begin(), row.end());
        const Tensor logits = (*s.model)(s.inputs);
        // Some 20 sums of at most 18 terms in turn, each norm making an error relative to its rows.
        check_close(logits, from_vector(expected, logits.shape()), 20 * std::sqrt(18) * 16 * 0x1p-52);
      }
    }
}

TEST_CASE("two branches that join one after the other are both added, whatever was read") {
  const Tensor x = from_vector<double>({1, 2}, {2}), a = from_vector<double>({10, 20}, {2}),
               b = from_vector<double>({300, 100}, {2});
  for (const bool post : {false, true}) {
    const std::unique_ptr<Connection> first = block_of<PreNorm>(2, {}, {}).attention;
    const std::unique_ptr<Connection> second = (post ? block_of<PostNorm> : block_of<PreNorm>)(2, {}, {}).attention;
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
    Subject s = gpt(transformer(residual));
    profile::start();
    backward(sum((*s.model)(s.inputs)));
    return profile::stop();
  };
  // The modules whose norms a pass runs, in its order; nothing is added beside them.
  const auto check = [&](const Arrangement& residual, const std::vector<std::string>& norms) {
    std::vector<std::string> forward, backward;
    for (const profile::Call& c : profile_of(residual).calls) {
      const std::string kernel = c.kernel;
      if (kernel.starts_with("norm_")) (c.backward ? backward : forward).push_back(c.module);
      CHECK_FALSE((kernel == "binary" && !c.backward && c.module.find("blocks") != std::string::npos));
    }
    CHECK(forward == norms);
    CHECK(backward.size() == norms.size());
  };
  std::vector<std::string> norms;
  for (int64_t block = 0; block < kDepth; ++block)
    for (const char* norm : {"norm1", "norm2"}) norms.push_back(text("blocks.", block, ".", norm));
  check(kPostLn, norms);
  norms.push_back("norm");
  check(kPreLn, norms);
}
