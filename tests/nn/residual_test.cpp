// Residual connections: logits of every listed arrangement, and of one defined here, compared with formulas in single
// ops. tests/nn/encoder_decoder_test.cpp compares an encoder-decoder and its gradients with PyTorch.
#include "autograd/fused/attention.h"
#include "core/system/profile.h"
#include "nn/gpt.h"
#include "nn/residual/all.h"
#include "nn/vit.h"
#include "tests/support/ops.h"
#include "tests/support/random.h"

using namespace isonorm;
using namespace isonorm::nn;

namespace {

// Pre-LN before Post-LN: a pending branch output meets a connection that does not add it itself.
BlockConnections reversed(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  return place.index == 0 ? block_of<PreNorm>(width, norms, place) : block_of<PostNorm>(width, norms, place);
}
constexpr Arrangement kReversed{"pre_then_post", reversed, last_of<PreNorm>};

// The parts of a Transformer on rows [batch, time, width]. Parameters are found by name.
struct Naive {
  TensorMap p;
  int64_t heads, depth;
  bool causal;
  NormKind kind;

  Tensor linear(const Tensor& x, const std::string& name) const {
    return isonorm::linear(x, p.at(name + ".weight"), p.at(name + ".bias"));
  }
  Tensor norm(const Tensor& x, const std::string& name, double eps = 1e-5) const {
    const NormSpec spec{.kind = name.ends_with("inner_norm") ? NormKind::layer : kind, .eps = eps};
    return normalize(x, spec, p.at(name + ".weight"), p.at(name + ".bias"));
  }
  Tensor attention(const Tensor& x, const std::string& name) const {
    const Tensor qkv = linear(x, name + "qkv");
    const int64_t inner = qkv.size(2) / 3;
    const auto part = [&](int64_t i) {
      return transpose(reshape(narrow(qkv, 2, i * inner, inner), {x.size(0), x.size(1), heads, inner / heads}), 1, 2);
    };
    const Tensor y = scaled_dot_product_attention(part(0), part(1), part(2), {.causal = causal});
    return reshape(transpose(y, 1, 2), {x.size(0), x.size(1), inner});
  }
  // The branch of sub-layer i: attention and MLP alternate, each with an inner LayerNorm if it has one.
  Tensor branch(const Tensor& x, int64_t i) const {
    const std::string name = text("blocks.", i / 2, i % 2 == 0 ? ".attn." : ".mlp.");
    const Tensor y = i % 2 == 0 ? attention(x, name) : gelu(linear(x, name + "fc1"));
    const bool inner = p.find(name + "inner_norm.weight") != nullptr;
    return linear(inner ? norm(y, name + "inner_norm") : y, name + (i % 2 == 0 ? "proj" : "fc2"));
  }
  static std::string norm_of(int64_t i) { return text("blocks.", i / 2, i % 2 == 0 ? ".norm1" : ".norm2"); }
};

using Pool = std::function<Tensor(const Tensor&)>;
// From the embedded rows to the rows that the head reads.
using Formula = std::function<Tensor(const Naive&, const Tensor&, const Pool&)>;

// x <- LayerNorm(x + F(x)) and, in parallel, d <- d + F(x).
Tensor dual(const Naive& n, Tensor x, const Pool& pool) {
  Tensor dual = x;
  for (int64_t i = 0; i < 2 * n.depth; ++i) {
    const Tensor f = n.branch(x, i);
    x = n.norm(x + f, n.norm_of(i)), dual = dual + f;
  }
  return pool(x) + n.norm(pool(dual), "norm", 1e-7);
}

// phi(x) = x - silu(gate) x with the block's gate.
Tensor gated(const Naive& n, const Tensor& x, int64_t sub_layer) {
  return x - silu(n.p.at(text("blocks.", sub_layer / 2, ".norm1.gate"))) * x;
}

// A sub-layer: returns the new x.
using SubLayer = Tensor (*)(const Naive&, const Tensor& x, int64_t i);
Tensor post(const Naive& n, const Tensor& x, int64_t i) { return n.norm(x + n.branch(x, i), n.norm_of(i)); }
Tensor pre(const Naive& n, const Tensor& x, int64_t i) { return x + n.branch(n.norm(x, n.norm_of(i)), i); }
Tensor sandwich(const Naive& n, const Tensor& x, int64_t i) {
  return x + n.norm(n.branch(n.norm(x, n.norm_of(i)), i), n.norm_of(i) + ".after");
}
double alpha(const Naive& n) { return std::pow(2 * static_cast<double>(n.depth), 0.25); }
Tensor deep(const Naive& n, const Tensor& x, int64_t i) { return n.norm(x * alpha(n) + n.branch(x, i), n.norm_of(i)); }
Tensor scaled(const Naive& n, const Tensor& x, int64_t i) {
  return x + n.branch(n.norm(x, n.norm_of(i)) / std::sqrt(1.0 + static_cast<double>(i / 2)), i);
}
Tensor deep_gated(const Naive& n, const Tensor& x, int64_t i) {
  return n.norm(gated(n, x, i) * alpha(n) + n.branch(x, i), n.norm_of(i));
}
Tensor post_gated(const Naive& n, const Tensor& x, int64_t i) {
  return n.norm(gated(n, x, i) + n.branch(x, i), n.norm_of(i));
}
template <SubLayer f> Tensor then_gated(const Naive& n, const Tensor& x, int64_t i) { return gated(n, f(n, x, i), i); }

// `first` for the first of the four blocks, `rest` for the others.
Formula formula(SubLayer first, SubLayer rest, bool final_norm) {
  return [=](const Naive& n, Tensor x, const Pool& pool) {
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

// A model, its inputs, the rows that enter its blocks, and the rows that its head reads.
struct Subject {
  std::shared_ptr<Module> model;
  Tensor inputs;
  std::function<Tensor(const Naive&)> rows;
  Pool pool;

  Naive naive(const TransformerOptions& t) {
    model->to(DType::f64);
    const NoGrad no_grad;
    for (const NamedParameter& p : model->named_parameters()) {
      const bool gate = p.name.ends_with("gate");  // with a large gate the norms would see almost zero
      copy_into(p.tensor, randn(p.tensor.shape()) * (gate ? 0.1 : 0.5) + 0.3);
    }
    return {model->state_dict(), t.heads, t.depth, dynamic_cast<Gpt*>(model.get()) != nullptr, t.norm};
  }
};

Subject gpt(const TransformerOptions& t) {
  const Tensor ids = randint(0, kClasses, {2, kRows});
  return {std::make_shared<Gpt>(GptOptions{.vocab = kClasses, .context = kRows, .transformer = t}), ids,
          [ids](const Naive& n) { return embedding(n.p.at("token.weight"), ids) + n.p.at("position.weight"); },
          [](const Tensor& x) { return x; }};
}

// Images of 2 x 2 pixels, one pixel per patch.
Subject vit(const TransformerOptions& t, bool mean_pool) {
  const VitOptions o{.image = 2, .patch = 1, .classes = kClasses, .mean_pool = mean_pool, .transformer = t};
  const Tensor images = randn({2, 2, 2, 1}, {DType::f64});
  return {std::make_shared<Vit>(o), images,
          [=](const Naive& n) {
            const Tensor x = n.linear(reshape(images, {2, kRows, 1}), "patch") + n.p.at("position");
            return mean_pool ? x : cat({expand(n.p.at("cls"), {2, 1, kWidth}), x}, 1);
          },
          [=](const Tensor& x) { return mean_pool ? mean(x, {1}) : select(x, 1, 0); }};
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
      for (Subject s : {gpt(t), vit(t, false), vit(t, true)}) {
        INFO(c.arrangement.name << ", " << name_of(norm));
        const Naive n = s.naive(t);
        const Tensor expected = n.linear(c.formula(n, s.rows(n), s.pool), "head"), logits = (*s.model)(s.inputs);
        // About 20 consecutive sums of at most 18 terms; each norm has an error relative to its rows.
        check_close(logits, expected, 20 * std::sqrt(18) * 16 * 0x1p-52);
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
    // LayerNorm of (311, 122) is (1, -1) up to eps / (2 variance).
    const auto found = r.settle().to_vector<double>();
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
  // Checks which modules' norms run, in this order, and that no other kernel adds anything in the blocks.
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

TEST_CASE("a branch is stretched to the stream, or refused where it is added") {
  const Tensor positions = require_grad(test::randn({3, 4}, 1)), rows = test::randn({2, 3, 4}, 2);
  Residual x = rows;
  x += positions;
  const Tensor& y = x.settle();
  check_close(y, rows + positions, 0);
  backward(sum(y * rows));
  check_close(positions.grad(), sum(rows, {0}), 1e-15);
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(x += test::randn({5, 4}, 3), Contains("residual +=: shapes [5, 4] and [2, 3, 4] do not broadcast"));
  CHECK_THROWS_WITH(
      x += test::randn({3, 2, 3, 4}, 3),
      Contains("residual +=: a branch of shape [3, 2, 3, 4] does not broadcast to the residual stream [2, 3, 4]"));
  CHECK_THROWS_WITH(x += Tensor(), Contains("residual +=: the branch is undefined"));
  CHECK_THROWS_WITH(x += to(rows, DType::f32), Contains("residual +=: the branch is f32, the residual stream f64"));
}
