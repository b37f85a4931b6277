// Files of models: every form is one function, and a change of a tensor is seen. ONNX and GGUF files have it, too.
#include "tests/model_cases/verbs.h"

using namespace isonorm;
using namespace isonorm::test;
using streams::Form;

TEST_CASE("models: a file is converted to every form and back, and verify sees a changed entry") {
  Generator g{7, 0};
  each_model(Promise::convert, [&](const ModelCase& c) {
    const training::ModelFile file = file_of(c);
    const Tensor inputs = batch_of(c).inputs, expected = naive_logits(c.model, file.state, inputs);
    training::ModelFile there;
    for (const Form to : streams::centred_forms()) {
      INFO(name_of(to));
      there = converted_exactly(file, to);
      CHECK(equivalent(file, there));
      check_close(equivalence::logits(there.description, there.state, inputs), expected, kRounding);
    }
    // There and back twice, as stored: the second round changes nothing.
    std::vector<TensorMap> compressed;
    for (training::ModelFile way = file; compressed.size() < 2;)
      for (const Form to : {Form::rms_norm, Form::crms_norm, Form::rms_norm, Form::layer_norm}) {
        way = converted(way, to);
        if (to == Form::crms_norm) compressed.push_back(way.state);
        if (to == Form::layer_norm) CHECK(equivalent(there, way));
      }
    for (const auto& [name, tensor] : compressed[0]) CHECK(nn::largest(tensor - compressed[1].at(name)) < 1e-14);
    // The mean of a writer's rows is free, unless the first branch or a head reads the embeddings themselves.
    const bool read =
        c.model.transformer().connection.reads_embeddings ||
        (c.model.flag("tied") && c.model.transformer().affine && c.model.enters(c.model.row().tied_table));
    for (const auto& [name, tensor] : file.state)
      if (c.model.enters(name)) CHECK(equivalent(with_tensor(file, name, tensor + 0.5), there) == !read);
    const auto parameters = streams::named_parameters(*training::ModelOptions(there.description).build());
    const auto random = [&](int64_t n) { return static_cast<size_t>(randint(0, n, {1}, kCpu, g).item()); };
    const streams::NamedParameter& p = parameters[random(std::ssize(parameters))];
    const auto at = static_cast<int64_t>(random(p.tensor.numel()));
    INFO(p.name << ", entry " << at);
    const bool blind = at >= p.blind_begin && at < p.blind_end;
    CHECK(equivalent(file, edited(there, p.name, [&](auto& v) { v[static_cast<size_t>(at)] += 1e-3; })) == blind);
    if (&c.model.row() != &training::kGpt || !c.model.flag("tied")) return;
    for (const streams::NamedParameter& q : parameters) {  // norms that keep their gains and biases
      if (q.name.find("norm") == std::string::npos || q.blind_end > q.blind_begin) continue;
      INFO(q.name);
      CHECK_FALSE(equivalent(file, with_tensor(there, q.name, there.state.at(q.name) + 0.01)));
    }
  });
}

TEST_CASE("models: an ONNX file computes the logits, as stored and in compressed form") {
  each_model(Promise::onnx, [](const ModelCase& c) {
    const training::ModelFile file = file_of(c);
    const Tensor inputs = batch_of(c).inputs, expected = naive_logits(c.model, file.state, inputs);
    for (const int64_t opset : onnx::kOpsets) check_close(onnx_logits(file, inputs, opset), expected, kRounding);
    if (!c.refused.contains(Promise::convert))
      check_close(onnx_logits(converted_exactly(file, Form::crms_norm), inputs, 23), expected, kRounding);
  });
}

TEST_CASE("models: the keys and tensors of a GGUF file give the logits") {
  each_model(Promise::gguf, [](const ModelCase& c) {
    training::ModelFile file = file_of(c);
    for (const auto& [name, tensor] : file.state) copy_into(tensor, tensor.to(DType::f32).to(DType::f64));
    const Tensor inputs = batch_of(c).inputs;
    const InGguf there = through_gguf(c, file);
    // The file's eps is in f32; the sums of squares are far above it.
    check_close(naive_logits(there.model, there.weights, inputs), naive_logits(c.model, file.state, inputs), 1e-10);
  });
}
