// Parameters that are one tensor in one model and several in the other, or have another shape: fused and separate
// attention projections, a convolution as a linear layer.
#include "autograd/fused/attention.h"
#include "autograd/ops/images.h"
#include "autograd/ops/shape.h"
#include "equivalence/compare/compare.h"
#include "equivalence/explain/compare_tensors.h"
#include "nn/linear.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/equivalence/room.h"

namespace {

const std::vector<std::string> kSeparate = {"q", "k", "v"};

// Causal attention of two heads, with one projection or three; "wrong" exchanges queries and keys.
struct Attention : nn::Module {
  std::vector<nn::Linear*> projections;
  nn::Linear &out = add("out", nn::Linear(8, 8)), &head = add("head", nn::Linear(8, 4));
  bool wrong;
  Attention(bool fused, bool w = false) : wrong(w) {
    if (fused)
      projections = {&add("qkv", nn::Linear(8, 24))};
    else
      for (const std::string& name : kSeparate) projections.push_back(&add(name, nn::Linear(8, 8)));
    to(DType::f64);
  }
  Tensor forward(const Tensor& x) override {
    std::vector<Tensor> parts;
    for (nn::Linear* p : projections) parts.push_back((*p)(x));
    if (wrong) std::swap(parts[0], parts[1]);
    const Tensor packed = parts.size() == 1 ? parts[0] : cat(parts, -1);
    return head(mean(out(packed_attention(packed, 2, {.causal = true})), {1}));
  }
};

const ParameterMap kSplit = ParameterMap().split("qkv.*", {"q.*", "k.*", "v.*"});
const ParameterMap kConcat = ParameterMap().concat({"q.*", "k.*", "v.*"}, "qkv.*");

Examples sequences(int64_t point) {
  Generator g{9, static_cast<uint64_t>(point) << 20};
  return {randn({3, 5, 8}, {DType::f64}, g), randint(0, 4, {3}, kCpu, g)};
}

Comparison gradients(bool fused_first, const ParameterMap& map, bool wrong = false) {
  manual_seed(2);
  Attention a(fused_first), b(!fused_first, wrong);
  return compare_gradients(a, b, map, cross_entropy_of, sequences, {.points = 2, .may_be_identical = true});
}

template <class O, class Options> MakeOptimizer optimizer(const Options& options) {
  return [=](const std::vector<Tensor>& p) { return std::make_unique<O>(p, options); };
}

struct Patches : nn::Module {
  bool convolution;
  nn::Parameter& kernel;
  nn::Linear& head = add("head", nn::Linear(6, 4));
  explicit Patches(bool c)
      : convolution(c), kernel(add_parameter("kernel", randn(c ? Dims{6, 2, 2, 3} : Dims{6, 12}))) {
    to(DType::f64);
  }
  Tensor forward(const Tensor& x) override {
    if (convolution) return head(mean(relu(conv2d(x, kernel(), {}, {.stride = 2})), {1, 2}));
    return head(mean(relu(linear(patchify(x, 2), kernel())), {1}));
  }
};

}  // namespace

TEST_CASE("joined parameters: fused and separate projections of attention have the same gradients, either way round") {
  for (const auto& [fused_first, map] : {std::pair(true, kSplit), {false, kConcat}}) {
    const Comparison c = gradients(fused_first, map);
    INFO(c.sentence());
    CHECK(c.equivalent());
    const Comparison wrong = gradients(fused_first, map, fused_first);  // in the separate model, which can be wrong
    if (fused_first) CHECK(wrong.verdict == Verdict::different);
  }
}

TEST_CASE("joined parameters: SGD, with momentum or without, and Adam commute with a split and a concatenation") {
  const MakeOptimizer optimizers[] = {optimizer<optim::Sgd>(optim::SgdOptions{.lr = 0.1}),
                                      optimizer<optim::Sgd>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9}),
                                      optimizer<optim::AdamW>(optim::AdamWOptions{.lr = 1e-2})};
  for (const MakeOptimizer& make : optimizers)
    for (const bool fused_first : {true, false}) {
      const auto model = [](bool fused) { return [=] { return std::make_unique<Attention>(fused); }; };
      manual_seed(2);
      const Comparison c =
          compare_trajectories(model(fused_first), model(!fused_first), fused_first ? kSplit : kConcat,
                               cross_entropy_of, make, sequences, {.clip = 1, .may_be_identical = true});
      INFO(c.sentence());
      CHECK(c.equivalent());
    }
}

TEST_CASE("joined parameters: a convolution and a linear layer of its patches, through a reshape") {
  const ParameterMap flat = ParameterMap().add("kernel", "kernel", {{.map = "reshape", .shape = {6, 12}}});
  const ParameterMap image = ParameterMap().add("kernel", "kernel", {{.map = "reshape", .shape = {6, 2, 2, 3}}});
  for (const bool convolution : {true, false}) {
    manual_seed(2);
    Patches a(convolution), b(!convolution);
    const auto images = [](int64_t point) {
      Generator g{9, static_cast<uint64_t>(point) << 20};
      return Examples{randn({4, 6, 6, 3}, {DType::f64}, g), randint(0, 4, {4}, kCpu, g)};
    };
    const Comparison c = compare_gradients(a, b, convolution ? flat : image, cross_entropy_of, images, {.points = 2});
    INFO(c.sentence());
    CHECK(c.equivalent());
  }
}

TEST_CASE("joined parameters: values are carried over in their order") {
  Attention fused(true), separate(false);
  const Route route = *kSplit.route("qkv.weight");
  CHECK(route.partners() == std::vector<std::string>{"q.weight", "k.weight", "v.weight"});
  std::vector<Tensor> parts;
  for (nn::Linear* p : separate.projections) parts.push_back(detach(p->weight));
  const Tensor joined = Partner(route, "qkv.weight", {}).read(parts);
  REQUIRE(joined.shape() == Dims{24, 8});
  for (int64_t i = 0; i < 3; ++i) CHECK(equal(narrow(joined, 0, 8 * i, 8), parts[static_cast<size_t>(i)]));

  const Route part = *kConcat.route("k.weight");
  CHECK(part.name == "qkv.weight");
  const auto shapes = [](const std::string&) { return std::optional(Dims{8, 8}); };
  const Partner keys(part, "k.weight", shapes);
  const Tensor whole = arange(0, 24 * 8, 1, {DType::f64}).reshape({24, 8});
  CHECK(equal(keys.read({whole}), narrow(whole, 0, 8, 8)));
  keys.write(zeros({8, 8}, {DType::f64}), {whole});
  CHECK(sum(narrow(whole, 0, 8, 8)).item() == 0);
  CHECK(whole.to_vector<double>()[63] == 63);
  CHECK(whole.to_vector<double>()[128] == 128);
}

TEST_CASE("joined parameters: what does not fit is named, with both sizes") {
  const auto said = [](bool fused_first, const ParameterMap& map) {
    try {
      return gradients(fused_first, map).sentence();
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  CHECK_THAT(
      said(true, ParameterMap().split("qkv.*", {"q.*", "k.*"})),
      Contains("different: qkv.weight becomes [24, 8], the second model's q.weight + k.weight has shape [16, 8]"));
  CHECK_THAT(
      said(true, ParameterMap().split("qkv.weight", {"q.weight", "k.weight", "v.bias"})),
      Contains("the parts of q.weight + k.weight + v.bias cannot be joined along dimension 0: one is f64 [8, 8], one "
               "f64 [8]"));
  CHECK_THAT(said(true, ParameterMap().split("qkv.*", {"q.*", "k.*", "w.*"})),
             Contains("the second model has no parameter w.weight, which qkv.weight of the first becomes"));
  CHECK_THAT(said(false, ParameterMap().concat({"q.*", "k.*"}, "qkv.*")),
             Contains("q.weight + k.weight together have size 16 along dimension 0, qkv.weight has shape [24, 8]"));
  CHECK_THAT(said(false, ParameterMap().concat({"q.*", "k.*", "w.*"}, "qkv.*")),
             Contains("q.weight is joined with w.weight, which the first does not have"));
  CHECK_THAT(said(false, ParameterMap().concat({"q.*", "k.*", "v.*"}, "qkv.*", 1)),
             Contains("together have size 24 along dimension 1, qkv.weight has shape [24, 8]"));
  CHECK_THAT(said(true, ParameterMap(kSplit).add("heads.*", "head.*")),
             Contains("different: the map's rule 'heads.*' -> 'head.*' fits no parameter of the first model, or only"));
  CHECK(gradients(true, ParameterMap(kSplit).leave_out("out.mask")).equivalent());  // only in files
  CHECK_THROWS_WITH((Route{"w", {{.map = "reshape", .shape = {5, 5}}}}.forward(ones({4, 6}))),
                    Contains("reshape of [4, 6] to [5, 5], which has 25 entries instead of 24"));
  CHECK_THROWS_WITH(ParameterMap().concat({"q.*", "k"}, "qkv.*"),
                    Contains("different numbers of * in 'q.* + k' -> 'qkv.*'"));
  CHECK_THROWS_WITH(ParameterMap().split("qkv", {}), Contains("'qkv' is split into nothing"));
  CHECK_THROWS_WITH(ParameterMap().concat({}, "qkv"), Contains("nothing is joined to 'qkv'"));
}

TEST_CASE("joined parameters: from JSON") {
  const ParameterMap map = ParameterMap::from_json(
      R"([{"a": "*.qkv.*", "b": ["*.q.*", "*.k.*", "*.v.*"], "dim": 1, "map": "transpose"},
          {"a": ["*.gate", "*.up"], "b": "*.both"},
          {"a": "conv", "map": "reshape", "shape": [6, 12]}])");
  const Route split = *map.route("0.qkv.weight"), joined = *map.route("0.up");
  CHECK(split.partner_name() == "0.q.weight + 0.k.weight + 0.v.weight");
  CHECK(split.dim == 1);
  CHECK(split.legs[0].map == "transpose");
  CHECK(joined.name == "0.both");
  CHECK(joined.before == std::vector<std::string>{"0.gate"});
  CHECK(joined.after.empty());
  CHECK(map.route("conv")->forward(Dims{6, 2, 2, 3}) == Dims{6, 12});
  for (const auto& [json, part] :
       {std::pair(R"([{"a": ["x", "y"], "b": ["u", "v"]}])", "2 names become 2 in 'x + y' -> 'u + v'"),
        {R"([{"a": ["x", "y"]}])", "the rule for 'x' has no new name"},
        {R"([{"a": "x", "b": []}])", "the rule for 'x' has no new name"},
        {R"([{"a": "x", "map": "reshape", "shape": [1, 1, 1, 1, 1, 1, 1, 1, 1]}])", "rank is over the limit of 8"},
        {R"([{"a": "x", "b": ["y", ""]}])", "a name is empty in 'x' -> 'y + '"}}) {
    INFO(json);
    CHECK_THROWS_WITH(ParameterMap::from_json(json), Contains(part));
  }
}

TEST_CASE("joined parameters: files of tensors are compared part by part") {
  manual_seed(5);
  const Tensor q = randn({3, 4}), k = randn({5, 4}), gradient = randn({8, 4});
  TensorMap separate, fused;
  separate.add("0.q", q), separate.add("0.k", k);
  separate.add("0.q.grad", narrow(gradient, 0, 0, 3)), separate.add("0.k.grad", narrow(gradient, 0, 3, 5));
  fused.add("0.qk", cat({q, k}, 0)), fused.add("0.qk.grad", gradient);
  const ParameterMap split = ParameterMap().split("*.qk", {"*.q", "*.k"}),
                     concat = ParameterMap().concat({"*.q", "*.k"}, "*.qk");
  CHECK(compare_tensors(fused, separate, split).identical);
  const TensorsComparison parts = compare_tensors(separate, fused, concat);
  INFO(parts.sentence());
  CHECK(parts.identical);
  CHECK(parts.rows.size() == 4);

  TensorMap wrong;
  wrong.add("0.qk", cat({q, k * 1.01}, 0)), wrong.add("0.qk.grad", gradient);
  const TensorsComparison r = compare_tensors(separate, wrong, concat);
  REQUIRE(r.first_difference);
  CHECK(r.rows.size() == 4);
  CHECK_THAT(r.sentence(), Contains("1 of 4 tensors differs"));
  CHECK_THAT(compare_tensors(fused, separate, ParameterMap().split("*.qk", {"*.k", "*.q"})).sentence(),
             Contains("different"));
  CHECK_THAT(compare_tensors(fused, wrong, ParameterMap().add("*.fc", "*.linear")).sentence(),
             Contains("the map's rule '*.fc' -> '*.linear' fits no tensor of the first, or only"));
  CHECK(ParameterMap().add("*.fc", "*.a").add("0.*", "1.*").add("0.fc", "0.b").unused({"0.fc", "0.q"}) ==
        "'0.fc' -> '0.b'");  // the first rule takes 0.fc
  CHECK_THAT(compare_tensors(separate, fused, ParameterMap().concat({"*.q", "*.k"}, "*.qk", 1)).sentence(),
             Contains("together have size 8 along dimension 1, 0.qk has shape [8, 4]"));
}
