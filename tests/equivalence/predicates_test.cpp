// Measured properties of updates: known properties of the grid's optimizers, and updates made such that a single
// property fails or holds.
#include "equivalence/grid/predicates.h"

#include "equivalence/grid/expectation.h"
#include "equivalence/grid/recipe.h"
#include "tests/equivalence/room.h"

namespace {

constexpr int64_t kWidth = 6;
using P = streams::NamedParameter;

// Names, shapes and roles of a small model's parameters.
std::vector<P> like() {
  const auto of = [](const char* name, const Dims& shape, Role role = Role::neutral, int dim = 0) {
    return P{{name, zeros(shape, {DType::f64})}, role, dim};
  };
  std::vector<P> p = {of("token.weight", {5, kWidth}, Role::writer, 1),
                      of("blocks.0.attn.qkv.weight", {9, kWidth}, Role::reader, 1),
                      of("blocks.0.attn.qkv.bias", {9}),
                      of("blocks.0.attn.proj.weight", {kWidth, 7}, Role::writer, 0),
                      of("blocks.0.attn.proj.bias", {kWidth}, Role::writer, 0),
                      of("head.weight", {5, kWidth}, Role::reader, 1)};
  p[2].blind_begin = 3, p[2].blind_end = 6;
  return p;
}

std::string signs(const Predicates& p) {
  std::string out;
  for (const Measured& m : p.measured) out += m.holds ? 'y' : 'n';
  return out;
}

// w <- w - 0.1 u(g, w, p), without state.
MakeUpdate rule(const std::function<Tensor(const Tensor& g, const Tensor& w, const P& p)>& u) {
  return [u](const std::vector<P>& parameters) -> Update {
    return [u, parameters] {
      for (const P& p : parameters)
        copy_into(p.tensor, detach(p.tensor) - u(p.tensor.grad(), detach(p.tensor), p) * 0.1);
    };
  };
}

Predicates sgd_within(double clip_value) {
  TrainingOptions o = with_recipe({}, recipe("sgd"));
  o.clip_value = clip_value;
  return measure(update_of(o), like());
}

Tensor plain(const Tensor& g, const Tensor&, const P&) { return g; }

}  // namespace

TEST_CASE("predicates: measurements confirm the stated properties of the grid's optimizers") {
  // repeats, linear, rotates, covariant, any_width, writers' and readers' means unseen, keeps writers, keeps readers,
  // gradient's mean unseen, centres, ignores weights, tensors apart
  const std::pair<const char*, const char*> known[] = {{"sgd", "yyynyyyyyynyy"},
                                                       {"momentum", "yyynyyyyyynyy"},
                                                       {"nesterov", "yyynyyyyyynyy"},
                                                       {"sgd_l2", "yyynyyyyyynny"},
                                                       {"momentum_decoupled", "yyynyyyyyynny"},
                                                       {"adam", "ynnnyyynnnnyy"},
                                                       {"adam_l2", "ynnnynnnnnnny"},
                                                       {"adamw", "ynnnyyynnnnny"},
                                                       {"clip_momentum", "ynynyyyyynnyn"},
                                                       {"clip_adamw", "ynnnyyynnnnnn"},
                                                       {"clip_l2", "ynynynnyynnnn"},
                                                       {"sign", "ynnnyyynnnnyy"},
                                                       {"lamb", "ynnnynnnnnnny"},
                                                       {"lion", "ynnnyyynnnnny"},
                                                       {"rmsprop", "ynnnyyynnnnyy"},
                                                       {"adagrad", "ynnnyyynnnnyy"},
                                                       {"clip_value", "ynnnyyynnnnyy"},
                                                       {"lars", "ynynynnyynnny"},
                                                       {"adafactor", "ynnnnnnnnnnny"},
                                                       {"muon", "ynnnyyynnnnny"},
                                                       {"muon_alone", "ynynyyyyynnny"},
                                                       {"muon_shaped", "ynynnyyyynnny"}};
  CHECK(std::size(known) == recipes().size());
  for (const auto& [name, expected] : known) {
    INFO(name);
    CHECK(signs(measure(update_of(with_recipe({}, recipe(name))), like())) == expected);
  }
}

TEST_CASE("predicates: every property can fail, and hold, by itself") {
  const auto measured = [](const MakeUpdate& make) { return signs(measure(make, like())); };
  CHECK(measured(rule(plain)) == "yyynyyyyyynyy");
  // a rate for every coordinate of the stream: linear, but no other property along that axis
  CHECK(measured(rule([](auto& g, auto&, auto& p) {
          if (p.role == Role::neutral) return g;
          Dims shape;
          shape.rank = g.rank();
          for (int i = 0; i < shape.rank; ++i) shape[i] = i == p.stream_dim ? g.size(i) : 1;
          return g * (reshape(arange(0, static_cast<double>(g.size(p.stream_dim)), 1, {DType::f64}), shape) + 1);
        })) == "yynnyyynnnnyy");
  // a rate that depends on the shape
  CHECK(measured(rule([](auto& g, auto&, auto&) { return g * std::sqrt(static_cast<double>(g.numel())); })) ==
        "yyynnyyyyynyy");
  // a rate that depends on the norm of the weights
  CHECK(measured(rule([](auto& g, auto& w, auto&) { return g * norm(w); })) == "ynynynnyyynny");
  // gradients without their mean along the stream: variant a2 then trains the same
  const Predicates centring = measure(
      rule([](auto& g, auto&, auto& p) { return p.role == Role::neutral ? g : contiguous(recentre(g, p.stream_dim)); }),
      like());
  CHECK(signs(centring) == "yynnnyyyyyyyy");
  CHECK(expectation(variant("a2"), centring).value == Verdict::equivalent);
  // w G^T w is the same step in any coordinates, so c1 trains the same
  const Predicates covariant = measure(rule([](auto& g, auto& w, auto& p) {
                                         if (p.role == Role::neutral) return g;
                                         if (g.rank() == 1) return w * sum(g * w);
                                         return matmul(w, matmul(transpose(g, 0, 1), w));
                                       }),
                                       like());
  CHECK(covariant(Property::covariant));
  CHECK(covariant(Property::any_width));
  CHECK_FALSE(covariant(Property::linear));
  CHECK(expectation(variant("c1"), covariant).value == Verdict::equivalent);
  // a tensor's step depends on another tensor's gradient
  CHECK(measured([](const std::vector<P>& parameters) -> Update {
          return [parameters] {
            const Tensor other = sum(square(parameters[0].tensor.grad()));
            for (const P& p : parameters) copy_into(p.tensor, detach(p.tensor) - p.tensor.grad() * other * 0.1);
          };
        })[12] == 'n');
  // a different step in every call
  int calls = 0;
  const Predicates restless = measure(rule([&](auto& g, auto&, auto&) { return g * (1 + 1e-3 * ++calls); }), like());
  CHECK_FALSE(restless(Property::repeats));
  CHECK(restless.at(Property::repeats).tolerance == 0);  // to the last bit
  for (const Variant& v : variants()) CHECK(expectation(v, restless).value != Verdict::equivalent);
}

TEST_CASE("predicates: one seed in three that says no is enough") {
  // gradients have sizes 1, 0.1 and 0.01; the limit affects one of them
  for (const double limit : {3.0, 0.02}) {
    const Predicates p = sgd_within(limit);
    CHECK_FALSE(p(Property::linear));
    CHECK_FALSE(p(Property::rotates));
  }
  CHECK(sgd_within(1e3)(Property::linear));
  const Predicates late = measure(rule([](auto& g, auto&, auto&) {  // not with the first seed
                                    return g * std::min(1.0, norm(g).item() / 0.3);
                                  }),
                                  like());
  CHECK_FALSE(late(Property::linear));
  CHECK_FALSE(late(Property::gradient_mean_unseen));
}

TEST_CASE("predicates: where nothing can be seen nothing is said") {
  const auto message = [](const char* part, const MakeUpdate& make) {
    CHECK_THROWS_WITH(measure(make, like()), Contains(part));
  };
  message("no writer moves", rule([](auto& g, auto&, auto&) { return g * 0; }));
  message("no reader moves", rule([](auto& g, auto&, auto& p) { return p.role == Role::reader ? g * 0 : g; }));
  message("expected finite", rule([](auto& g, auto&, auto&) { return g / 0; }));
  message("cannot be said", rule([](auto& g, auto& w, auto&) { return g * (norm(w) * 1e-10 + 1); }));
  message("expected a finite", rule([](auto& g, auto& w, auto&) {
            return g * (norm(w).item() > 5 ? NAN : 1);  // in some of the measurements
          }));
  CHECK_THROWS_WITH(measure(rule(plain), like(), 0), Contains("0 seeds"));
  CHECK_THROWS_WITH(measure(rule(plain), like(), 1, 0), Contains("0 steps"));
  // parameters without gradients: all are blind
  std::vector<P> blind = like();
  for (P& p : blind) p.blind_begin = 0, p.blind_end = p.tensor.size(0);
  CHECK_THROWS_WITH(measure(rule(plain), blind), Contains("no writer moves"));
}
