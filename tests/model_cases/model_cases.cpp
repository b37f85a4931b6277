// The rows. An option gets a row of its own at the end of the list of its model.
#include <set>

#include "core/tensor.h"
#include "streams/transformer.h"
#include "tests/model_cases/model_case.h"
#include "tests/support/test_device.h"

namespace isonorm::test {
namespace {

using nn::Activation, nn::Positions, nn::Precision, nn::Initialisation;
using training::ModelOptions, training::NamedValue;
using Own = std::initializer_list<NamedValue>;
using Refused = std::map<Promise, const char*>;

nn::TransformerOptions small(nn::TransformerOptions t) {
  if (t.width == nn::TransformerOptions().width) t.width = 8;
  if (t.mlp_width == 0) t.mlp_width = 10;
  return t;
}

ModelOptions with(ModelOptions m, Own own) {
  for (const NamedValue& v : own) m.set(v);
  return m;
}
ModelOptions gpt(const nn::TransformerOptions& t = {}, Own own = {}) {
  return with(ModelOptions(training::kGpt, small(t), {{"vocab", 9}, {"context", 6}}), own);
}
ModelOptions vit(const nn::TransformerOptions& t = {}, Own own = {}) {
  return with(ModelOptions(training::kVit, small(t), {{"image", 4}, {"channels", 2}, {"patch", 2}, {"classes", 5}}),
              own);
}
ModelOptions translator(const nn::TransformerOptions& t = {}, Own own = {}) {
  return with(ModelOptions(training::kTranslator, small(t), {{"vocab", 9}, {"context", 5}}), own);
}

// Rows that an architecture of llama.cpp computes.
const std::set<std::string> kInLlamaCpp = {"gpt, pre_ln, affine",         "gpt, pre_ln, affine, tied",
                                           "gpt, parallel branches",      "gpt, parallel branches of one norm",
                                           "gpt, ALiBi, 4 heads",         "gpt, ALiBi, 6 heads",
                                           "gpt, gains that begin scaled"};

// Adds the refusals that follow from the row's name, kind and arrangement.
Refused with_common(Refused refused, const std::string& name, const ModelOptions& m) {
  if (!kInLlamaCpp.contains(name)) refused.insert({Promise::gguf, "no architecture of llama.cpp"});
  const nn::Arrangement& a = m.transformer().connection;
  const bool translates = &m.row() == &training::kTranslator;
  if (translates || !(a == nn::kPreLn)) refused.insert({Promise::onnx, "no graph is known of"});
  if (translates) refused.insert({Promise::tensor_parallel, "is cross-attention, which is not supported"});
  if (a.inner_norms) refused[Promise::tensor_parallel] = "inner norms";
  if (m.flag("tied") && m.transformer().affine) refused.insert({Promise::audit, "needs raw storage"});
  if (a.reads_embeddings) refused[Promise::audit] = "the first branch reads the embeddings themselves";
  return refused;
}

std::vector<ModelCase> all_cases() {
  std::vector<ModelCase> all;
  const auto add = [&](const std::string& name, const ModelOptions& m, const Refused& refused = {}) {
    const std::string whole = text(m.row().name, ", ", name);
    all.push_back({whole, m, with_common(refused, whole, m)});
  };
  for (const nn::Arrangement& a : nn::kArrangements) {
    const nn::TransformerOptions plain{.connection = a}, affine{.affine = true, .connection = a};
    const std::string name = a.name;
    add(name, gpt(plain));
    add(name + ", affine", gpt(affine));
    add(name + ", tied", gpt(plain, {{"tied", true}}));
    add(name + ", affine, tied", gpt(affine, {{"tied", true}}));
    add(name, vit(plain));
    add(name + ", affine, mean pooling", vit(affine, {{"mean_pool", true}}));
    add(name, translator(plain));
    // tests/fixtures/translate.safetensors has the same sizes.
    add(name + ", affine",
        translator({.width = 6, .heads = 2, .affine = true, .connection = a}, {{"decoder_depth", 5}}));
    add(name + ", affine, tied", translator(affine, {{"tied", true}, {"shared", true}}));
  }

  const Refused by_dropout{{Promise::convert, "before they are recentred"}, {Promise::audit, "use raw storage"}};
  const Refused by_scale{{Promise::tensor_parallel, "layer scale"}, {Promise::audit, "use raw storage"}};
  const Refused by_precision{{Promise::prove, "the precision is bf16"}};
  add("head width", gpt({.heads = 2, .head_width = 3}));
  add("shared keys", gpt({.head_width = 4, .kv_heads = 2}));
  add("one key head", gpt({.kv_heads = 1}), {{Promise::tensor_parallel, "4 heads, 1 of keys and values"}});
  add("two blocks", gpt({.depth = 2}));
  for (const Activation a :
       {Activation::gelu_tanh, Activation::relu, Activation::silu, Activation::swiglu, Activation::quick_gelu})
    add(name_of(a), gpt({.activation = a}));
  for (const Positions p : {Positions::rotary, Positions::rotary_halves, Positions::none})
    add(text(name_of(p), " positions"), gpt({.positions = p}));
  for (const int64_t heads : {4, 6})  // and no power of 2
    add(text("ALiBi, ", heads, " heads"),
        gpt({.heads = heads,
             .head_width = 2,
             .positions = Positions::alibi,
             .affine = true,
             .norm_bias = false,
             .bias = false}),
        {{Promise::tensor_parallel, "ALiBi"}});
  add("base of rotary positions", gpt({.head_width = 4, .positions = Positions::rotary, .rotary_base = 50}));
  add("share of rotary positions", gpt({.head_width = 4, .positions = Positions::rotary_halves, .rotary_share = 0.5}));
  for (const NormKind kind : {NormKind::layer, NormKind::rms})
    add(text(name_of(kind), " of queries and keys"), gpt({.head_width = 4, .qk_norm = kind, .affine = true}));
  const Positions halves = Positions::rotary_halves;
  add("parallel branches", gpt({.positions = halves, .parallel = true, .affine = true}));
  add("parallel branches of one norm",
      gpt({.positions = halves, .parallel = true, .shared_norm = true, .affine = true}, {{"head_bias", true}}));
  add("gains without biases", gpt({.affine = true, .norm_bias = false}));
  add("gains that begin scaled", gpt({.affine = true, .scaled_gains = true}));
  add("no biases", gpt({.bias = false}));
  add("biases of queries, keys and values alone", gpt({.bias = false, .qkv_bias = true}));
  add("eps", gpt({.eps = 1e-2}));
  add("no final norm", gpt({.final_norm = false}),
      {{Promise::forms, "different"}, {Promise::convert, "would see the stream's mean"}});
  add("RMSNorm", gpt({.affine = true, .norm = NormKind::rms}),
      {{Promise::convert, "norms of rows that keep their mean"}});
  add("no norms", gpt({.norm = NormKind::none}), {{Promise::convert, "a stream without norms"}});
  add("dropout", gpt({.branch = {.dropout = 0.2}}), by_dropout);
  add("stochastic depth", gpt({.branch = {.stochastic_depth = 0.3}}));
  add("layer scale", gpt({.affine = true, .branch = {.layer_scale = 0.5}}), by_scale);
  add("bf16 products", gpt({.precision = {Precision::bf16, Precision::full}}), by_precision);
  add("bf16 stream", gpt({.precision = {Precision::bf16, Precision::bf16}}), by_precision);
  for (const Initialisation i : {Initialisation::normal, Initialisation::scaled})
    add(text(name_of(i), " initial weights"), gpt({.initialisation = i}));
  add("odd width", gpt({.width = 7, .heads = 1}), {{Promise::tensor_parallel, "1 heads"}});
  add("offset of positions", gpt({}, {{"position_offset", 2}}));
  add("a head with a bias", gpt({}, {{"head_bias", true}}));
  add("LLaMA", gpt({.head_width = 4,
                    .kv_heads = 2,
                    .activation = Activation::swiglu,
                    .positions = Positions::rotary_halves,
                    .qk_norm = NormKind::layer,
                    .affine = true,
                    .norm_bias = false,
                    .bias = false,
                    .qkv_bias = true,
                    .initialisation = Initialisation::normal},
                   {{"tied", true}}));

  add("more patches", vit({}, {{"image", 14}}));
  add("the class token has a position", vit({}, {{"cls_position", true}}));
  add("causal, rotary", vit({.positions = Positions::rotary, .causal = true}, {{"mean_pool", true}}));
  add("SwiGLU, layer scale", vit({.activation = Activation::swiglu, .branch = {.layer_scale = 0.5}}), by_scale);
  add("dropout, stochastic depth", vit({.branch = {.dropout = 0.2, .stochastic_depth = 0.3}}), by_dropout);

  add("tables shared", translator({}, {{"shared", true}}));
  add("padding", translator({}, {{"pad", 3}}));
  add("shared keys, rotary",
      translator({.head_width = 4, .kv_heads = 2, .positions = Positions::rotary, .qk_norm = NormKind::rms}));
  add("layer scale, no positions", translator({.positions = Positions::none, .branch = {.layer_scale = 0.5}}),
      by_scale);
  return all;
}

}  // namespace

const std::vector<ModelCase>& model_cases() {
  static const std::vector<ModelCase> all = all_cases();
  return all;
}

Batch batch_of(const ModelCase& c, uint64_t seed) {
  Generator g{seed, 0};
  const training::ModelOptions& m = c.model;
  if (m.row().input == training::Input::images) {
    const int64_t side = m.number("image"), n = 3;
    return {randn({n, side, side, m.number("channels")}, {DType::f64}, g),
            randint(0, m.number("classes"), {n}, kCpu, g)};
  }
  const int64_t time = m.context(), vocab = m.number("vocab"), n = 2;
  const bool pairs = m.row().input == training::Input::pairs;
  const Tensor ids = randint(0, vocab, {n, pairs ? 2 * time : time}, kCpu, g);
  if (pairs) {  // one source is shorter than the other one; neither is padding alone
    int64_t* id = ids.mutable_data<int64_t>();
    const int64_t pad = m.number("pad");
    for (int64_t i = 0; i < ids.numel(); ++i)
      if (id[i] == pad) id[i] = (pad + 1) % vocab;
    for (int64_t i = time - 2; i < time; ++i) id[i] = pad;
  }
  return {ids, randint(0, vocab, {n, time}, kCpu, g)};
}

std::vector<streams::Form> forms_of(const ModelCase& c) {
  if (c.model.stream().form != streams::Form::layer_norm) return {c.model.stream().form};
  return streams::centred_forms();
}

}  // namespace isonorm::test
