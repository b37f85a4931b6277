// The stream as the sum of its writers' outputs: what a program's own rows reveal about a description.
#include "equivalence/reference/stream_sum.h"

#include "autograd/methods.h"
#include "autograd/ops/shape.h"
#include "equivalence/reference/reference.h"
#include "tests/equivalence/gpt2_program.h"
#include "tests/equivalence/model_files.h"

namespace {

const TensorMap& weights() {
  static const TensorMap made = state();
  return made;
}

streams::Plan layout_of(const std::string& spec, const TensorMap& weights) {
  return streams::plan_in(streams::Layout::from_json(spec), weights, Form::layer_norm);
}

// The check of the true description with these rows.
StreamSum sum_of(const TensorMap& rows) { return check_stream_sum(weights(), gpt2_plan(weights(), kWidth), rows); }

TensorMap without(const TensorMap& all, const std::string& begin) {
  TensorMap some;
  for (const auto& [name, tensor] : all)
    if (!name.starts_with(begin)) some.add(name, tensor);
  return some;
}

}  // namespace

TEST_CASE("stream sum: every reader reads the sum of the earlier writers, in each precision") {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    INFO(name_of(dtype));
    const StreamSum s = sum_of(program(weights(), dtype));
    INFO(s.wrong << s.open);
    CHECK(s.wrong == "");
    CHECK(s.closed() == (dtype != DType::bf16));
    CHECK((s.readers == 3 && s.summed == 3 && s.writers == 4 && s.seen == 4));
    // In f64 the sums are computed as in the program. Otherwise the bound must not be so wide that it detects nothing.
    CHECK((dtype == DType::f64 || s.share > 1e-2));
    CHECK(s.share <= 1);
  }
}

TEST_CASE("stream sum: what no single tensor shows of a description") {
  const std::string right = gpt2_spec(kWidth);
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    INFO(name_of(dtype));
    const TensorMap rows = program(weights(), dtype);
    // Positions described as off the stream: every single tensor agrees, but the conversion would be another function.
    const streams::Plan lacks = layout_of(replaced(replaced(right, R"("wpe.weight": 1, )", ""), R"("tied")",
                                                   R"("not_on_stream": ["wpe.weight"], "tied")"),
                                          weights());
    const TensorMap others = without(rows, "wpe");
    CHECK(check_reference(weights(), lacks, others).equivalent());
    const StreamSum s = check_stream_sum(weights(), lacks, others);
    CHECK_THAT(s.wrong, Contains("'h.0.attn.c_attn.weight' reads are not the sum") && Contains("no writer of the"));
    // A factor on a branch's output, as in some programs.
    const std::string written = "h.0.mlp.c_proj.weight.output", last = "lm_head.weight.input";
    const TensorMap scaled = with_tensor(rows, last, rows.at(last) - rows.at(written) * 0.75);
    CHECK_THAT(sum_of(scaled).wrong,
               Contains("'lm_head.weight' reads") && Contains("0.25 times what 'h.0.mlp.c_proj.weight' wrote"));
    // A norm on the stream (Post-LN, or after the embeddings).
    const Tensor x = rows.at(last).to(DType::f64);
    const Tensor normed = (x - mean(x, {-1}, true)) / 3.0;
    CHECK_THAT(sum_of(with_tensor(rows, last, normed.to(dtype))).wrong, Contains("'lm_head.weight'"));
    // One wrong entry in one row.
    Tensor moved = rows.at(last).to(DType::f64) + 0.0;
    moved(0, 3, 5) = moved(0, 3, 5).item() + 0.5;
    CHECK_FALSE(sum_of(with_tensor(rows, last, moved.to(dtype))).wrong.empty());
    CHECK_FALSE(sum_of(with_tensor(rows, last, rows.at(last) + NAN)).wrong.empty());
  }
}

TEST_CASE("stream sum: a reference that does not show the whole stream leaves it open") {
  const TensorMap rows = program(weights(), DType::f32);
  const auto opened = [&](const TensorMap& reference) {
    const StreamSum s = sum_of(reference);
    CHECK(s.wrong == "");
    CHECK_FALSE(s.closed());
    return s.open;
  };
  CHECK_THAT(opened(without(rows, "lm_head")), Contains("no rows that 'lm_head.weight' reads"));
  CHECK_THAT(opened(without(without(rows, "lm_head"), "h.0.mlp.c_proj")), Contains("'lm_head.weight'"));
  // A writer of zeros is not detected, nor is a writer whose output is below the rounding errors of the others.
  const std::string name = "h.0.mlp.c_proj.weight.output", last = "lm_head.weight.input";
  for (double size : {0.0, 1e-12}) {
    const TensorMap small =
        with_tensor(with_tensor(rows, name, rows.at(name) * size), last, rows.at("h.0.mlp.c_fc.weight.input"));
    CHECK_THAT(opened(small), Contains("what 'h.0.mlp.c_proj.weight' wrote"));
  }
}

TEST_CASE("stream sum: what sees the stream and is not in the description refutes it") {
  const TensorMap rows = program(weights(), DType::f32);
  const Tensor x = rows.at("h.0.mlp.c_fc.weight.input");
  const auto seen = [&](const Tensor& t) {
    TensorMap more = rows;
    more.add("probe.seen", t);
    return sum_of(more);
  };
  CHECK_THAT(seen(x).wrong, Contains("'probe' sees the stream, the sum of what 3 writers wrote"));
  CHECK_THAT(seen(rows.at("wte.weight.output")).wrong, Contains("'probe' sees the stream, the sum of what 1 writers"));
  CHECK(seen(rows.at("h.0.attn.c_proj.weight.input")).closed());  // a tensor inside a branch
  CHECK(seen(x * 0.0).closed());
  TensorMap reads = rows;
  reads.add("probe.reads", x);
  CHECK_THAT(sum_of(reads).wrong, Contains("'probe' reads the rows of a norm"));
  // Not rows of the stream: another width, empty, a single number, ids.
  for (const Tensor& other : {zeros({3, 7}), zeros({0, kWidth}), zeros(Dims{}), zeros({3, kWidth}, {DType::i64})})
    CHECK(seen(other).closed());
}

TEST_CASE("stream sum: the program itself shows that nothing else reads the stream or its norms") {
  for (DType dtype : {DType::f64, DType::f32}) {
    const TensorMap rows = program(weights(), dtype);
    const Tensor y = rows.at("program.output");
    for (const char* name : {"program.shifted", "program.rescaled"}) {
      CHECK_THAT(sum_of(without(rows, name)).open, Contains("does not show what else reads the stream"));
      CHECK(sum_of(with_tensor(rows, name, y * (1 + 4 * epsilon(dtype)))).closed());
      for (const Tensor& moved : {y * 1.013, y + NAN})
        CHECK_THAT(sum_of(with_tensor(rows, name, moved)).wrong,
                   Contains("something that the description lacks reads the stream"));
      CHECK_THROWS_WITH(sum_of(with_tensor(rows, name, zeros({3}, {dtype}))), Contains(text("'", name, "'")));
    }
  }
}

TEST_CASE("stream sum: a writer that was not recorded is no contradiction") {
  const TensorMap rows = without(program(weights(), DType::f32), "h.0.attn.c_proj");
  const StreamSum s = sum_of(rows);
  CHECK(s.wrong == "");
  CHECK_THAT(s.open, Contains("no rows that 'h.0.attn.c_proj.weight' wrote"));
}

TEST_CASE("stream sum: a class token, patches and positions that nothing calls") {
  // The class token before the patches, after them, or added to all rows: rounding must not decide which it is.
  const auto [place, seed] =
      GENERATE(table<int, uint64_t>({{0, 3}, {1, 3}, {2, 3}, {0, 4}, {1, 4}, {2, 4}, {0, 5}, {1, 5}, {2, 5}}));
  CAPTURE(place, seed);
  Generator g{seed, 0};
  const int64_t d = 10, patches = GENERATE(1, 4), images = 3;
  const auto random = [&](const Dims& shape) { return randn(shape, {DType::f64}, g); };
  TensorMap weights, reference;
  weights.add("cls", random({1, 1, d})), weights.add("pos", random({1, patches + 1, d}));
  weights.add("patch.weight", random({d, 6})), weights.add("patch.bias", random({d}));
  weights.add("norm.weight", random({d})), weights.add("norm.bias", random({d}));
  weights.add("head.weight", random({5, d}));
  const std::string spec = R"({"width": 10, "norms": {"norm": "1e-6"},
    "writers": {"cls": 2, "pos": 2, "patch": 0}, "readers": {"head.weight": {"dim": 1, "norm": "norm"}}})";
  const Tensor cls = expand(weights.at("cls"), {images, 1, d});
  const Tensor y = random({images, place == 2 ? patches + 1 : patches, d});
  reference.add("patch.weight.input", random({images, y.size(1), 6})), reference.add("patch.weight.output", y);
  const Tensor x = (place == 0 ? cat({cls, y}, 1) : place == 1 ? cat({y, cls}, 1) : y + cls) + weights.at("pos");
  reference.add("head.weight.input", x), reference.add("head.weight.output", random({images, patches + 1, 5}));
  for (const char* name : {"program.output", "program.shifted", "program.rescaled"}) reference.add(name, x);
  const streams::Plan plan = layout_of(spec, weights);
  const StreamSum s = check_stream_sum(weights, plan, reference);
  INFO(s.wrong << s.open);
  CHECK(s.closed());
  CHECK((s.writers == 3 && s.seen == 3));
  CHECK_FALSE(
      check_stream_sum(weights, plan, with_tensor(reference, "head.weight.input", x - weights.at("pos"))).closed());
}
