// A description compared with a program's results. The program is spelled out here, in its own precision.
#include "equivalence/reference/reference.h"

#include "equivalence/verify/file_conversion.h"
#include "tests/equivalence/gpt2_program.h"
#include "tests/equivalence/room.h"

namespace {

// The program's weights, and their plan by the true description or another one.
const TensorMap& weights() {
  static const TensorMap made = state();
  return made;
}
streams::Plan by(const std::string& spec = gpt2_spec(kWidth)) {
  return streams::plan_in(streams::Layout::from_json(spec), weights(), Form::layer_norm);
}

// Checks the program's reference of one tensor, with inputs multiplied by `size`.
ReferenceFindings of_rows(const streams::Plan& plan, const std::string& name, double size, DType dtype) {
  TensorMap reference;
  const TensorMap whole = program(weights(), dtype);
  const Tensor x = whole.at(name + ".input") * size;
  reference.add(name + ".input", x);
  // For a writer: y = x W + b, in the program's precision.
  Tensor y = matmul(x.to(DType::f64), weights().at(name).to(DType::f64)).to(dtype);
  const std::string bias = streams::bias_beside(name);
  if (weights().find(bias)) y = y + weights().at(bias).to(dtype);
  reference.add(name + ".output", y);
  return check_reference(weights(), plan, reference);
}

}  // namespace

TEST_CASE("reference: the program's outputs agree, in each precision") {
  const streams::Plan plan = by();
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    INFO(name_of(dtype));
    const ReferenceFindings f = check_reference(weights(), plan, program(weights(), dtype));
    INFO(f.furthest.what << " " << f.furthest.size << " of " << f.furthest.bound);
    CHECK(f.equivalent());
    CHECK(f.share > 1e-3);  // the bound is not so wide that it detects nothing
    CHECK(f.readers == 3);
    CHECK(f.readers_held == 3);
    CHECK(f.writers == 4);
    CHECK(f.writers_held == 4);
  }
  TensorMap some;
  for (const auto& [name, tensor] : program(weights(), DType::f32))
    if (name.starts_with("lm_head") || name.starts_with("wpe")) some.add(name, tensor);
  const ReferenceFindings f = check_reference(weights(), plan, some);
  CHECK((f.equivalent() && f.readers_held == 1 && f.writers_held == 1 && f.readers == 3 && f.writers == 4));
}

TEST_CASE("reference: a converted model is held to the same in its own coordinates") {
  const TensorMap reference = program(weights(), DType::f64);
  const streams::Plan plan = by();
  for (Form form : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
    const Conversion c = convert(weights(), plan, form);
    const streams::Stream stream(form, kWidth);
    TensorMap mapped;
    for (const auto& [name, tensor] : reference) {
      if (name.starts_with("w") || name.starts_with("program."))
        continue;  // rows of a table are compared to the last bit
      const bool writes = name.find("c_proj") != std::string::npos;
      mapped.add(name, writes == name.ends_with(".output") ? stream.map_writer(tensor, tensor.rank() - 1) : tensor);
    }
    const ReferenceFindings f = check_reference(c.exact, c.plan, mapped);
    INFO(name_of(form) << ": " << f.furthest.what << " " << f.furthest.size << " of " << f.furthest.bound);
    CHECK(f.equivalent());
    CHECK(f.readers_held == 3);
  }
}

TEST_CASE("reference: finds mistakes of a description that no tensor shows") {
  const TensorMap exact = program(weights(), DType::f64), coarse = program(weights(), DType::f32),
                  coarsest = program(weights(), DType::bf16);
  const std::string right = gpt2_spec(kWidth);
  struct Fault {
    std::string spec, tensor;
    bool in_f64_alone = false;
  };
  const std::string mlp = R"({"dim": 0, "norm": "h.*.ln_2")";
  const std::vector<Fault> faults = {
      {replaced(right, R"(attn.c_proj.weight": 1)", R"(attn.c_proj.weight": 0)"), "h.0.attn.c_proj.weight"},
      {replaced(replaced(replaced(right, "ln_1\"}", "ln_x\"}"), "ln_2\"}", "ln_1\"}"), "ln_x\"}", "ln_2\"}"), "h.0."},
      {replaced(right, R"("h.*.ln_1": "1e-5")", R"("h.*.ln_1": "1.001e-5")"), "h.0.attn.c_attn.weight", true},
      {replaced(right, R"("ln_f": "1e-5")", R"("ln_f": "1e-6")"), "lm_head.weight", true},
      {replaced(right, R"("ln_f": "1e-5")", R"("ln_f": "10")"), "lm_head.weight"},
      {replaced(replaced(right, mlp, mlp + R"(, "bias": "none")"), R"("tied")",
                R"("others": ["h.0.mlp.c_fc.bias"], "tied")"),
       "h.0.mlp.c_fc.weight"},
  };
  for (const Fault& fault : faults) {
    INFO(fault.spec);
    const streams::Plan plan = by(fault.spec);
    // Only the reference shows the fault.
    FileConversion conversion(weights(), plan, Form::crms_norm);
    REQUIRE(conversion.check([] { return true; }));
    CHECK((conversion.exact().equivalent() && conversion.stored()->equivalent()));
    std::vector<const TensorMap*> references = {&exact};
    if (!fault.in_f64_alone) references.insert(references.end(), {&coarse, &coarsest});
    for (const TensorMap* reference : references) {
      const ReferenceFindings f = check_reference(weights(), plan, *reference);
      CHECK_FALSE(f.equivalent());
      CHECK_THAT(f.furthest.what, Contains(fault.tensor));
      CHECK(f.furthest.size > f.furthest.bound);
    }
  }
}

TEST_CASE("reference: rows that show nothing are no agreement, whatever the size that hides it") {
  const streams::Plan plan = by();
  const std::string square = "h.0.attn.c_proj.weight";
  for (DType dtype : {DType::f64, DType::f32}) {
    for (double size : {0.0, 1e-30, 1e-320}) {  // the bias dominates the product
      const ReferenceFindings f = of_rows(plan, square, size, dtype);
      INFO(name_of(dtype) << " " << size << ": " << f.furthest.what << " " << f.furthest.size << " of "
                          << f.furthest.bound);
      CHECK(f.agrees());
      CHECK_FALSE(f.equivalent());
      CHECK(f.unseen == square);
      CHECK(f.reading == "with dim 0");
    }
    const ReferenceFindings f = of_rows(plan, square, 1e30, dtype);  // the product dominates the bias
    CHECK(f.agrees());
    CHECK_FALSE(f.equivalent());
    CHECK(f.reading == "without its bias");
    CHECK(of_rows(plan, square, 1, dtype).equivalent());
    CHECK(of_rows(plan, square, 1, dtype).power > 100);
  }
  // The same with a wrong description that agrees only for that reason.
  const streams::Plan wrong = by(replaced(gpt2_spec(kWidth), R"(attn.c_proj.weight": 1)", R"(attn.c_proj.weight": 0)"));
  for (double size : {0.0, 1e-30}) {
    const ReferenceFindings f = of_rows(wrong, square, size, DType::f64);
    CHECK(f.agrees());
    CHECK_FALSE(f.equivalent());
    CHECK(f.reading == "with dim 1");
  }
  CHECK_FALSE(of_rows(wrong, square, 1, DType::f64).agrees());
}

TEST_CASE("reference: of a reader the norm is shown by rows that it does not make 0") {
  const TensorMap whole = program(weights(), DType::f64);
  const streams::Plan plan = by();
  const std::string reader = "h.0.mlp.c_fc.weight";
  const auto held = [&](const TensorMap& file, double size) {
    TensorMap reference;
    const Tensor x = whole.at(reader + ".input") * size;
    reference.add(reader + ".input", x);
    // A (gain n(x) + bias) + b with n(x) = (x - mean) / sqrt(variance + 1e-5).
    const Tensor centred = x - mean(x, {-1}, true);
    const Tensor n = centred / sqrt(mean(square(centred), {-1}, true) + 1e-5);
    const auto f64 = [&](const std::string& name) { return file.at(name).to(DType::f64); };
    const Tensor read = n * f64("h.0.ln_2.weight") + f64("h.0.ln_2.bias");
    reference.add(reader + ".output", matmul(read, f64(reader)) + f64("h.0.mlp.c_fc.bias"));
    return check_reference(file, plan, reference);
  };
  CHECK(held(weights(), 1).equivalent());
  CHECK(held(weights(), 1e6).equivalent());
  // Rows of 0 do not show the gains, but they show the norms' biases.
  CHECK(held(weights(), 0).equivalent());
  TensorMap without, plain;
  for (const auto& [name, tensor] : weights()) {
    const bool norm = name.find("ln_") != std::string::npos, bias = name.ends_with("bias");
    without.add(name, norm && bias ? tensor * 0.0 : tensor);
    plain.add(name, bias ? tensor * 0.0 : norm ? tensor * 0.0 + 1.0 : tensor);
  }
  const ReferenceFindings f = held(without, 0);
  CHECK(f.agrees());
  CHECK_FALSE(f.equivalent());
  CHECK_THAT(f.reading, Contains("through norm 'h.0.ln_1'") || Contains("through norm 'ln_f'"));
  CHECK(held(without, 1).equivalent());
  // Norms that are the same function may be exchanged, and a bias of 0 may be left out.
  CHECK(held(plain, 1).equivalent());
  CHECK(std::isinf(held(plain, 1).power));
}

TEST_CASE("reference: rounding that hides another axis of a reader is that of the weights along it") {
  TensorMap file, reference;
  file.add("table", ones({1, 2}, {DType::f64})), file.add("in.weight", from_vector<double>({1, 1, 0, 1e-6}, {2, 2}));
  const std::string spec = R"({"width": 2, "norms": {"n": 1e-5}, "writers": {"table": 1},
                               "readers": {"in.weight": {"dim": 1, "norm": "n"}}})";
  const streams::Plan plan = streams::plan_in(streams::Layout::from_json(spec), file, Form::layer_norm);
  // The norm of (c + 1, c - 1) is +-1 / sqrt(1 + eps), and the rounding error of c may be as large as the 1.
  constexpr double c = 1e15;
  reference.add("in.weight.input", from_vector<double>({c + 1, c - 1}, {1, 2}));
  reference.add("in.weight.output", from_vector<double>({0, -1e-6 / std::sqrt(1 + 1e-5)}, {1, 2}));
  const ReferenceFindings f = check_reference(file, plan, reference);
  CHECK(f.agrees());
  CHECK_FALSE(f.equivalent());
  CHECK(f.reading == "with dim 0");
}

TEST_CASE("reference: one row that shows the mistake is enough, in any position") {
  const streams::Plan plan = by();
  const std::string square = "h.0.attn.c_proj.weight", bias = "h.0.attn.c_proj.bias";
  const auto f64 = [&](const std::string& name) { return weights().at(name).to(DType::f64); };
  for (int64_t shows = 0; shows < kRows; ++shows) {
    const Tensor x = zeros({kRows, kWidth}, {DType::f64});
    fill(narrow(x, 0, shows, 1), 1);
    TensorMap reference;
    reference.add(square + ".input", x);
    reference.add(square + ".output", matmul(x, f64(square)) + f64(bias));
    CHECK(check_reference(weights(), plan, reference).equivalent());
  }
}

TEST_CASE("reference: a bias that a description does not name has to show") {
  const std::string writer = "h.0.mlp.c_proj.weight", bias = "h.0.mlp.c_proj.bias";
  const streams::Plan plan = by(replaced(replaced(gpt2_spec(kWidth), R"(, "h.*.mlp.c_proj.bias": 0)", ""), R"("tied")",
                                         R"("not_on_stream": ["h.0.mlp.c_proj.bias"], "tied")"));
  CHECK_FALSE(of_rows(plan, writer, 1, DType::f64).agrees());
  const ReferenceFindings f = of_rows(plan, writer, 1e30, DType::f64);
  CHECK(f.agrees());
  CHECK_FALSE(f.equivalent());
  CHECK(f.reading == "with the bias '" + bias + "'");
}

TEST_CASE("reference: refused contents") {
  const TensorMap good = program(weights(), DType::f32);
  const streams::Plan plan = by();
  const std::string reader = "h.0.mlp.c_fc.weight", writer = "h.0.mlp.c_proj.weight", table = "wte.weight";
  const auto refused = [&](const std::string& of, const Tensor& x, const Tensor& y, const char* says) {
    INFO(says);
    TensorMap reference;
    if (x.defined()) reference.add(of + ".input", x);
    if (y.defined()) reference.add(of + ".output", y);
    CHECK_THROWS_WITH(check_reference(weights(), plan, reference), Contains(says));
  };
  const Tensor x = good.at(reader + ".input"), y = good.at(reader + ".output");
  const Tensor ids = from_vector<int64_t>({1}, {1}), row = zeros({1, kWidth});
  refused(reader, {}, {}, "holds nothing");
  refused(reader, x, {}, "'h.0.mlp.c_fc.weight.input' has no 'h.0.mlp.c_fc.weight.output'");
  refused(reader, {}, y, "has no 'h.0.mlp.c_fc.weight.input'");
  refused("h.0.mlp.c_fc", x, y, "'h.0.mlp.c_fc' is not the weight of a reader or writer");
  refused("h.0.mlp.c_proj.bias", x, y, "'h.0.mlp.c_proj.bias' is not the weight of a reader");
  refused("h.0.ln_1.weight", x, y, "'h.0.ln_1.weight' is not the weight of a reader");
  refused(reader, narrow(x, 2, 0, 5), y, "shape [1, 7, 5], expected rows of 24");
  refused(reader, x, narrow(y, 2, 0, 5), "shape [1, 7, 5], expected rows of 96");
  refused(reader, x, narrow(y, 1, 0, 5), "has 5 rows, 'h.0.mlp.c_fc.weight.input' 7");
  refused(reader, narrow(x, 1, 0, 0), narrow(y, 1, 0, 0), "shape [1, 0, 24]");
  refused(writer, x, y, "shape [1, 7, 24], expected rows of 96");
  refused(reader, x + NAN, y, "input' holds NaN");
  refused(reader, x, y + INFINITY, "output' holds NaN or infinity");
  refused(reader, x, y.to(DType::f64), "has dtype f32, 'h.0.mlp.c_fc.weight.output' f64");
  refused(reader, ids, y, "has dtype i64, expected a floating one");
  refused(table, from_vector<int64_t>({30}, {1}), row, "30");
  refused(table, from_vector<int64_t>({-1}, {1}), row, "-1");
  refused(table, ids, row.to(DType::i64), "has dtype i64, expected a floating one");
  const LazyState no_numbers(weights(), [&](const std::string& name) { return weights().at(name) + NAN; });
  CHECK_FALSE(check_reference(no_numbers, plan, good).equivalent());
  TensorMap strange;
  strange.add("what", x);
  CHECK_THROWS_WITH(check_reference(weights(), plan, strange), Contains("neither NAME.input nor NAME.output"));
}
