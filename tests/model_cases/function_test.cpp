// Logits and gradients equal the formulas in single ops, in every form of the stream, at once and token by token.
#include "autograd/engine.h"
#include "io/safetensors.h"
#include "nn/encoder_decoder.h"
#include "nn/gpt.h"
#include "nn/modes.h"
#include "tests/model_cases/model_case.h"
#include "tests/support/same_bytes.h"

using namespace isonorm;
using namespace isonorm::test;
using nn::largest;
using streams::Form;

namespace {

// The logits, after a backward that adds to the gradients of the parameters.
Tensor differentiated(const Tensor& logits) {
  Generator g{8, 0};
  backward(sum(logits * randn(logits.shape(), {DType::f64}, g)));
  return detach(logits);
}

// The form of the row's own model.
streams::StreamOptions own_form(const ModelCase& c) { return {.form = c.model.stream().form}; }

}  // namespace

TEST_CASE("models: logits and gradients equal the formulas in single ops") {
  // Pre-LN before Post-LN, defined here: a pending branch output meets a connection that does not add it itself.
  const nn::Arrangement own{
      "pre_then_post",
      [](int64_t width, const nn::ConnectionOptions& norms, const nn::BlockPlace& place) {
        return (place.index == 0 ? nn::block_of<nn::PreNorm> : nn::block_of<nn::PostNorm>)(width, norms, place);
      },
      nn::last_of<nn::PreNorm>};
  std::vector<ModelCase> all = model_cases();
  all.push_back({"gpt, pre_then_post",
                 {training::kGpt, {.width = 8, .affine = true, .connection = own}, {{"vocab", 9}, {"context", 6}}}});
  for (ModelCase& c : all)
    for (const Form form : {c.model.stream().form, Form::uncentred_rms_norm}) {
      INFO(c.name << ", " << name_of(form));
      c.model.stream().form = form;
      const std::unique_ptr<nn::Module> model = drawn(c, {.form = form});
      model->eval();
      TensorMap weights;
      for (const nn::NamedParameter& p : model->named_parameters())
        weights.add(p.name, require_grad(detached::clone(p.tensor)));
      const Tensor inputs = batch_of(c).inputs, expected = differentiated(naive_logits(c.model, weights, inputs));
      check_close(differentiated((*model)(inputs)), expected, kRounding);
      const nn::TransformerOptions t = c.model.complete().transformer();
      const int64_t keys = t.heads * t.head_width, shared = t.kv_heads * t.head_width;
      double scale = 1;
      for (const auto& [name, w] : weights) scale = std::max(scale, largest(w.grad()));
      for (const nn::NamedParameter& p : model->named_parameters()) {
        INFO(p.name);
        const Tensor g = p.tensor.grad();
        CHECK(largest(g - weights.at(p.name).grad()) <= 2 * kRounding * scale);
        if (p.blind_end > p.blind_begin)  // softmax ignores a number that is added to all scores of a query
          CHECK(largest(narrow(g, 0, p.blind_begin, p.blind_end - p.blind_begin)) <= 2 * kRounding * scale);
        else if (p.name.ends_with("qkv.bias"))
          CHECK(largest(narrow(g, 0, keys, shared)) > 1e4 * kRounding * scale);
      }
    }
}

TEST_CASE("models: translators have PyTorch's logits and gradients with every arrangement") {
  const TensorMap fixture = load_safetensors("tests/fixtures/translate.safetensors");  // torch_translate.py
  const Tensor ids = cat({fixture.at("source"), fixture.at("target")}, 1), labels = fixture.at("labels");
  size_t compared = 0;
  for (const ModelCase& c : model_cases()) {
    const std::string arrangement = c.model.transformer().connection.name;
    if (c.name != "translator, " + arrangement + ", affine") continue;
    INFO(c.name);
    ++compared;
    const std::unique_ptr<nn::Module> model = drawn(c, own_form(c));
    const std::vector<nn::NamedParameter> parameters = model->named_parameters();
    TensorMap weights;
    for (const nn::NamedParameter& p : parameters) weights.add(p.name, fixture.at("weight/" + p.name));
    model->load_state_dict(weights);
    const Tensor logits = (*model)(ids), loss = cross_entropy(logits, labels);
    check_close(logits, fixture.at(arrangement + "/logits"), 1e-12);
    check_close(loss, fixture.at(arrangement + "/loss"), 1e-13);
    backward(loss);
    // The fixture has, for each gradient, the sum of squares and the sum of entries times cosines of their positions.
    const TensorMap sums = nn::below(fixture, arrangement + "/sums/");
    CHECK(sums.size() == parameters.size());
    double all = 0;
    for (const auto& [name, sum] : sums) all += sum.to_vector<double>()[0];
    for (const nn::NamedParameter& p : parameters) {
      INFO(p.name);
      const std::vector<double> g = p.tensor.grad().to_vector<double>(), expected = sums.at(p.name).to_vector<double>();
      double squares = 0, along = 0;
      for (size_t i = 0; i < g.size(); ++i) squares += g[i] * g[i], along += g[i] * std::cos(static_cast<double>(i));
      CHECK(std::abs(squares - expected[0]) <= 1e-11 * all);
      CHECK(std::abs(along - expected[1]) <= 1e-11 * std::sqrt(all * static_cast<double>(g.size())));
    }
  }
  CHECK(compared == std::size(nn::kArrangements));
}

TEST_CASE("models: without blocks a model computes, or its arrangement is refused") {
  for (const ModelCase& c : model_cases()) {
    const nn::Arrangement& a = c.model.transformer().connection;
    if (c.name != text("gpt, ", a.name)) continue;
    INFO(c.name);
    training::ModelOptions m = c.model;
    m.transformer().depth = 0;
    if (a.reads_embeddings)
      CHECK_THROWS_WITH(
          m.make(), text("transformer: depth 0 with connections ", a.name, ", which have norms only in their blocks"));
    else
      CHECK_NOTHROW((*m.make())(batch_of(c).inputs));
  }
}

TEST_CASE("models: every form of the stream gives the same logits and gradients") {
  for (const ModelCase& c : model_cases())
    for (const Form form : forms_of(c)) {
      INFO(c.name << ", " << name_of(form));
      const std::unique_ptr<nn::Module> reference = drawn(c, own_form(c)), other = drawn(c, {.form = form}, 9);
      const Tensor inputs = batch_of(c).inputs;
      if (c.refused.contains(Promise::forms)) {
        other->load_state_dict(reference->state_dict());
        CHECK(relative_deviation((*other)(inputs), (*reference)(inputs)) > 1e-3);
        continue;
      }
      nn::check_same_function(*reference, *other, kRounding, [&](nn::Module& m) {
        manual_seed(8);  // dropout draws the same masks in all forms
        return differentiated(m(inputs));
      });
    }
}

TEST_CASE("models: writers and readers hide the directions that their roles name, and no others") {
  // A writer may be shifted by a constant along the stream, and a reader behind a norm without gain by a constant along
  // its rows. Every neutral matrix that touches the stream changes the logits by such a shift.
  for (const ModelCase& c : model_cases()) {
    const nn::TransformerOptions& t = c.model.transformer();
    if (t.branch.layer_scale > 0 || c.refused.contains(Promise::forms)) continue;  // a scaled shift is not constant
    for (const Form form : forms_of(c)) {
      if (form == Form::uncentred_rms_norm || form == Form::none) continue;
      const std::unique_ptr<nn::Module> model = drawn(c, {.form = form});
      model->eval();
      const NoGrad no_grad;
      const Tensor inputs = batch_of(c).inputs, before = (*model)(inputs);
      for (const streams::NamedParameter& p : streams::named_parameters(*model)) {
        INFO(c.name << ", " << name_of(form) << ", " << p.name);
        const bool neutral = p.role == streams::Role::neutral;
        const bool touches = c.model.enters(p.name) || p.name.ends_with("attn.qkv.weight") || !neutral;
        if (!touches) continue;
        const Tensor kept = detached::clone(p.tensor);
        Dims shape = p.tensor.shape();
        shape[neutral ? shape.rank - 1 : p.stream_dim] = 1;
        copy_into(p.tensor, kept + randn(shape, {DType::f64}));
        const double moved = largest((*model)(inputs)-before);
        copy_into(p.tensor, kept);
        const bool reads =
            p.role == streams::Role::reader || (c.model.flag("tied") && p.name == c.model.row().tied_table);
        if (neutral || (t.affine && reads))
          CHECK(moved > 1e4 * kRounding);
        else
          CHECK(moved < kRounding);
      }
    }
  }
}

TEST_CASE("models: decoding token by token with a KV cache gives the rows of the whole sequence") {
  const NoGrad no_grad;
  for (const ModelCase& c : model_cases())
    for (const Form form : {own_form(c).form, forms_of(c).back()}) {
      if (c.model.row().input == training::Input::images) continue;
      INFO(c.name << ", " << name_of(form));
      const std::unique_ptr<nn::Module> model = drawn(c, {.form = form});
      model->eval();
      const int64_t time = c.model.context();
      const Tensor inputs = batch_of(c).inputs;
      nn::DecodingCache cache;
      std::vector<Tensor> rows;
      if (auto* gpt = dynamic_cast<nn::Gpt*>(model.get())) {
        rows.push_back(gpt->features(narrow(inputs, 1, 0, 2), &cache));
        for (int64_t i = 2; i < time; ++i) rows.push_back(gpt->features(narrow(inputs, 1, i, 1), &cache));
        check_close(cat(rows, 1), gpt->features(inputs), kRounding);
        CHECK(cache.time() == time);
        continue;
      }
      auto& translator = dynamic_cast<nn::EncoderDecoder&>(*model);
      const Tensor target = narrow(inputs, 1, time, time);
      const nn::Encoded encoded = translator.encode(narrow(inputs, 1, 0, time));
      for (int64_t i = 0; i < time; ++i) rows.push_back(translator.decode(encoded, narrow(target, 1, i, 1), &cache));
      check_close(cat(rows, 1), translator.decode(encoded, target), kRounding);
    }
}

TEST_CASE("models: blocks that are computed again in the backward give the same bits") {
  for (const ModelCase& c : model_cases()) {
    INFO(c.name);
    const std::unique_ptr<nn::Module> kept = drawn(c, own_form(c)), again = drawn(c, own_form(c));
    nn::recompute(*again);
    const auto run = [&](nn::Module& m) {
      manual_seed(4);
      return differentiated(m(batch_of(c).inputs));
    };
    CHECK(same_bytes(run(*again), run(*kept)));
    for (size_t i = 0; i < kept->parameters().size(); ++i)
      CHECK(same_bytes(again->parameters()[i].grad(), kept->parameters()[i].grad()));
  }
}
