// Modules: names, state, modes, errors, and the built-in models.
#include "streams/transformer.h"

#include "core/kernels/kernel.h"
#include "core/memory/allocator.h"
#include "nn/container.h"
#include "nn/parameter_free.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using streams::Form;
using streams::Role;
using streams::Stored;

namespace {
struct Net : Module {
  Linear& fc1 = add("fc1", Linear(4, 3));
  Linear& fc2 = add("fc2", Linear(3, 2, {.bias = false}));
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
};
}  // namespace

TEST_CASE("parameters are named by the path of their module, in order of declaration") {
  Net net;
  CHECK(names(net) == std::vector<std::string>{"fc1.weight", "fc1.bias", "fc2.weight"});
  CHECK(net.parameter_count() == 12 + 3 + 6);
  for (const Tensor& p : net.parameters()) CHECK(requires_grad(p));
}

TEST_CASE("errors name the module") {
  Sequential net(Linear(4, 3), Net());
  CHECK_THROWS_WITH(net(empty({2, 4})), Contains("1.fc1: linear: input [2, 3] does not fit weight [3, 4]"));
}

TEST_CASE("names are unique and have no dots") {
  struct Twice : Module {
    Twice() {
      add("a", Relu());
      add("a", Relu());
    }
  };
  struct Dotted : Module {
    Dotted() { add("a.b", Relu()); }
  };
  CHECK_THROWS_WITH(Twice(), Contains("'a' is taken"));
  CHECK_THROWS_WITH(Dotted(), Contains("dot"));
}

TEST_CASE("converting a module keeps handles alive") {
  Net net;
  const Tensor handle = net.parameters().front();
  net.to(DType::f64);
  CHECK(handle.dtype() == DType::f64);
  CHECK(requires_grad(handle));
  backward(sum(net(ones({1, 4}, {DType::f64}))));
  CHECK(handle.grad().dtype() == DType::f64);
}

TEST_CASE("dropout acts in training only") {
  Sequential net{Dropout(0.5)};
  const Tensor x = ones({1000});
  CHECK(amin(net(x)).item() == 0);
  net.eval();
  check_close(net(x), x, 0);
}

TEST_CASE("a model prepared for inference computes the same bits, of the weights it has") {
  GptOptions options{.vocab = 40, .context = 20, .tied = true, .transformer = {.width = 32, .depth = 2, .heads = 2}};
  Gpt gpt(options), other(options);
  const NoGrad no_grad;
  const Tensor ids = randint(0, 40, {2, 20});
  const std::vector<float> plain = gpt(ids).to_vector<float>(), changed = other(ids).to_vector<float>();
  const int64_t before = host_allocator().stats().current;
  gpt.prepare_inference();
  CHECK(host_allocator().stats().current == before);  // packing happens in the first product
  CHECK(gpt(ids).to_vector<float>() == plain);
  const int64_t kept = host_allocator().stats().current - before;
  CHECK((isa() == Isa::base ? kept == 0 : kept >= 4 * (2 * 12 * 32 * 32 + 40 * 32)));
  CHECK(gpt(ids).to_vector<float>() == plain);
  gpt.load_state_dict(other.state_dict());
  CHECK(gpt(ids).to_vector<float>() == changed);
  gpt.prepare_inference(false);
  CHECK(host_allocator().stats().current == before);
}

namespace {
// All mappings occur: writers, readers, gains folded into readers, a scale folded into writers, the tied head.
Gpt mapped_gpt() {
  Gpt gpt = streams::make<Gpt>(
      {.vocab = 20,
       .context = 16,
       .tied = true,
       .transformer = {.width = 16, .depth = 2, .heads = 2, .affine = true, .branch = {.layer_scale = 0.5}}},
      {.form = Form::crms_norm});
  for (const Tensor& p : gpt.parameters()) copy_into(p, randn(p.shape()));
  return gpt;
}
}  // namespace

TEST_CASE("a prepared model maps no parameter again until one is written to") {
  Gpt gpt = mapped_gpt();
  const Tensor ids = randint(0, 20, {2, 16});
  const auto bits = [&ids](Gpt& g) {
    const NoGrad no_grad;
    return g(ids).to_vector<float>();
  };
  Gpt other = clone(gpt);
  const std::vector<float> plain = bits(other);
  gpt.prepare_inference();
  CHECK(bits(gpt) == plain);

  const auto write_unseen = [](const Tensor& t) { ++*const_cast<float*>(t.data<float>()); };
  for (const NamedParameter& p : gpt.named_parameters()) {
    if (p.name.find("proj") == std::string::npos && p.name.find("fc") == std::string::npos) continue;
    INFO(p.name);
    const float before = *p.tensor.data<float>();
    write_unseen(p.tensor);
    CHECK(bits(gpt) == plain);
    *const_cast<float*>(p.tensor.data<float>()) = before;
  }
  for (const NamedParameter& p : gpt.named_parameters()) {
    INFO(p.name);
    gpt.prepare_inference();
    copy_into(p.tensor, randn(p.tensor.shape()));
    Gpt fresh = clone(gpt);
    CHECK(bits(gpt) == bits(fresh));
  }
}

TEST_CASE("a prepared model records gradients of its parameters, and follows them into another dtype") {
  Gpt gpt = mapped_gpt();
  gpt.prepare_inference();
  Gpt fresh = clone(gpt);
  const Tensor ids = randint(0, 20, {2, 16});
  for (Gpt* g : {&gpt, &fresh}) backward(sum(square((*g)(ids))));
  const std::vector<Tensor> mine = gpt.parameters(), theirs = fresh.parameters();
  for (size_t i = 0; i < mine.size(); ++i)
    CHECK(mine[i].grad().to_vector<float>() == theirs[i].grad().to_vector<float>());
  for (Gpt* g : {&gpt, &fresh}) g->to(DType::f64);
  const NoGrad no_grad;
  CHECK(gpt(ids).to_vector<double>() == fresh(ids).to_vector<double>());
}

TEST_CASE("the paper's ViT and GPT sizes have the parameters of its code") {
  // Counted from shapes, without building the large models.
  const auto count = [](const VitOptions& o) {
    const auto t = o.transformer.complete();
    const int64_t d = t.width, tokens = (o.image / o.patch) * (o.image / o.patch), inner = t.heads * t.head_width;
    const int64_t block = 3 * inner * d + 3 * inner + inner * d + d + 2 * t.mlp_width * d + t.mlp_width + d;
    return o.patch * o.patch * o.channels * d + d + tokens * d + d + t.depth * block + o.classes * d + o.classes;
  };
  CHECK(count(vit_preset("tiny")) == 5707624);
  CHECK(count(vit_preset("base")) == 86528488);
  CHECK(count(vit_preset("giant")) == 1844116200);
  CHECK(Vit(vit_preset("tiny")).parameter_count() == 5707624);
  const GptOptions xl = gpt_preset("xl");
  CHECK(xl.transformer.heads * xl.transformer.head_width == 3072);
  CHECK_THROWS_WITH(vit_preset("enormous"), Contains("enormous") && Contains("tiny"));
}

TEST_CASE("compressed streams save one coordinate of the width everywhere it is stored") {
  VitOptions o{.transformer = {.width = 16, .depth = 2, .heads = 2}};
  const int64_t raw = Vit(o).parameter_count();
  const Vit crms = streams::make<Vit>(o, {.form = Form::crms_norm});
  CHECK(crms.parameter_count() == raw);
  const Vit mapped = streams::make<Vit>(o, {.form = Form::crms_norm, .storage = Stored::mapped});
  int64_t axis = 0;  // number of parameter entries per coordinate of the stream
  for (const streams::NamedParameter& p : streams::named_parameters(crms))
    if (p.role != Role::neutral) axis += p.tensor.numel() / 16;
  CHECK(mapped.parameter_count() == raw - axis);
}

TEST_CASE("ids that are too many or too large are refused") {
  Gpt gpt({.vocab = 11, .context = 6, .transformer = {.width = 8, .depth = 2, .heads = 2}});
  CHECK_THROWS_WITH(gpt(from_vector<int64_t>({1, 2, 3, 4, 5, 6, 7}, {1, 7})), Contains("[1, 7]") && Contains("6"));
  CHECK_THROWS_WITH(gpt(from_vector<int64_t>({11}, {1, 1})), Contains("11"));
}
