// The audit compared with theory for a small model, and its detection of faults.
#include "equivalence/compare/audit.h"

#include "tests/equivalence/room.h"
#include "tests/support/markup.h"
#include "training/model_options.h"

namespace {

TrainingOptions small(bool affine = false) {
  return {.model = {kGpt,
                    {.width = 16, .depth = 2, .heads = 2, .mlp_width = 32, .affine = affine},
                    {{"vocab", 13}, {"context", 8}}},
          .data = {},
          .batch = 3};
}

const AuditResult::Row& row(const AuditResult& r, const std::string& name) {
  const auto at = std::ranges::find(r.rows, name, &AuditResult::Row::name);
  REQUIRE(at != r.rows.end());
  return *at;
}

using Rows = std::vector<std::vector<double>>;

// Rank by elimination with full pivoting. Entries below 1e-9 of the largest count as 0.
int64_t rank(Rows rows) {
  double largest = 0;
  for (int64_t found = 0;; ++found) {
    size_t row = 0, column = 0;
    double pivot = 0;
    for (size_t i = static_cast<size_t>(found); i < rows.size(); ++i)
      for (size_t j = 0; j < rows[i].size(); ++j)
        if (std::abs(rows[i][j]) > pivot) pivot = std::abs(rows[i][j]), row = i, column = j;
    largest = std::max(largest, pivot);
    if (pivot <= 1e-9 * largest) return found;
    std::swap(rows[static_cast<size_t>(found)], rows[row]);
    const std::vector<double>& top = rows[static_cast<size_t>(found)];
    for (size_t i = static_cast<size_t>(found) + 1; i < rows.size(); ++i) {
      const double factor = rows[i][column] / top[column];
      for (size_t j = 0; j < top.size(); ++j) rows[i][j] -= factor * top[j];
    }
  }
}

}  // namespace

TEST_CASE("audit: invisible directions are counted and measured") {
  const AuditResult r = audit(small());
  INFO(to_text(document_of(r), false));
  CHECK(r.verdict == Verdict::equivalent);
  CHECK(row(r, "blocks.1.attn.qkv.bias").directions == 16);
  CHECK(row(r, "head.weight").directions == 13 + 16 - 1);  // the means of rows, and the shift that softmax ignores
  CHECK(row(r, "blocks.0.attn.qkv.weight").gradient > 0);  // rounding errors: so it was measured
  CHECK(row(r, "blocks.0.attn.qkv.weight").gradient < 1e-12);
  // Writers: tables 13 + 8, per block proj 16 + 1 and fc2 32 + 1. Readers: qkv 48, fc1 32, head 13. Key biases 16. The
  // head's shift 15.
  CHECK(r.directions() == 13 + 8 + 2 * (17 + 33) + 2 * (48 + 32) + 13 + 2 * 16 + 15);
}

TEST_CASE("audit: finds every direction that the gradients of many batches leave out") {
  for (const nn::Arrangement& connection : {nn::kPreLn, nn::kSubLn}) {
    const nn::TransformerOptions t{.width = 4, .depth = 1, .heads = 2, .mlp_width = 6, .connection = connection};
    const TrainingOptions o{.model = {kGpt, t, {{"vocab", 5}, {"context", 6}}}, .data = {}, .batch = 4};
    const AuditResult r = audit(o);
    CHECK(r.verdict == Verdict::equivalent);
    const auto model = build_model(o, {});
    model->to(DType::f64);
    std::map<std::string, Rows> gradients;
    Generator draw{7, 0};
    for (int batch = 0; batch < 60; ++batch) {
      const Tensor ids = randint(0, 5, {4, 6}, kCpu, draw), targets = randint(0, 5, {4, 6}, kCpu, draw);
      for (const Tensor& p : model->parameters()) set_grad(p, {});
      backward(cross_entropy((*model)(ids), targets));
      for (const streams::NamedParameter& p : streams::named_parameters(*model))
        gradients[p.name].push_back(p.tensor.grad().to_vector<double>());
    }
    for (auto& [name, rows] : gradients) {
      if (name.find("qkv") != std::string::npos) continue;  // another matrix follows the values
      INFO(connection.name << " " << name);
      CHECK(row(r, name).numbers - row(r, name).directions == rank(rows));
    }
  }
}

TEST_CASE("audit: bf16 drifts, zero-row-sum readers make its error of second order") {
  const AuditResult r = audit(small());
  REQUIRE(r.drift.size() == 5);
  CHECK(r.drift[0].norm == "blocks.0.norm1");
  for (const auto& d : r.drift) {
    CHECK(d.f64 < 1e-14);
    CHECK(d.f32 < 1e-5);
    CHECK(d.bf16 > 1e-5);
    CHECK(d.bf16 < 5e-2);
  }
  CHECK(r.shift_error > 1e-5);
  CHECK(r.shift_error_centred < r.shift_error / 20);
  CHECK(r.bf16_error < 0.2);
  CHECK(r.bf16_error_centred < 0.2);
}

TEST_CASE("audit: readers after a learned gain have no invisible direction; weights must fit") {
  const AuditResult r = audit(small(true));
  CHECK(r.verdict == Verdict::equivalent);
  CHECK(row(r, "head.weight").directions == 16);  // the shift that softmax ignores
  TensorMap wrong;
  wrong.add("token.weight", empty({13, 16}));
  CHECK_THROWS_WITH(audit(small(), wrong), Contains("missing"));
}

TEST_CASE("audit: a gradient that should be zero and is not is reported") {
  AuditResult r = audit(small());
  CHECK_THAT(closing(document_of(r)), StartsWith("Equivalent. No invisible direction has a gradient: of ") &&
                                          Contains(" directions without gradient"));
  r.rows[0].gradient = 1e-3;
  r.verdict = Verdict::different;
  const reports::Document d = document_of(r);
  CHECK_THAT(closing(d), StartsWith("Different: token.weight has a gradient of 1.0e-03"));
  CHECK(d.tables[0].rows.size() == r.rows.size());
  for (size_t i = 0; i < r.rows.size(); ++i) {  // each number is in its column
    const auto& row = d.tables[0].rows[i];
    if (r.rows[i].directions == 0) continue;
    CHECK(*row[4].value == r.rows[i].directions);
    CHECK(row[5].text.ends_with("%"));
    CHECK(*row[6].value == r.rows[i].gradient);
    CHECK(*row[7].value == r.rows[i].bound);
  }
  CHECK(test::unstyled(to_html(d)) == std::set<std::string>());
}

TEST_CASE("audit: weights that let no gradient through are undecided") {
  const auto model = build_model(small(), {.form = Form::layer_norm});
  TensorMap weights = nn::clone(model->state_dict());
  fill(weights.at("head.weight"), 0);
  const AuditResult r = audit(small(), weights);
  CHECK(r.verdict == Verdict::undecided);
  CHECK_THAT(closing(document_of(r)), StartsWith("Undecided. Nothing was measured"));
}

TEST_CASE("audit: a tied table is a writer") {
  const AuditResult plain =
      audit({.model = {kGpt, {.width = 12, .depth = 1, .heads = 2}, {{"vocab", 5}, {"context", 6}, {"tied", true}}},
             .data = {},
             .batch = 2});
  CHECK(plain.verdict == Verdict::equivalent);
  CHECK(plain.rows.front().name == "token.weight");
  CHECK(plain.rows.front().directions == 5);
}

TEST_CASE("audit: an encoder-decoder's hidden directions, in both streams") {
  const AuditResult r = audit(
      {.model = {kTranslator, {.width = 8, .depth = 4, .heads = 2, .mlp_width = 12}, {{"vocab", 5}, {"context", 6}}},
       .data = {},
       .letters = 5,
       .batch = 4});
  CHECK(r.verdict == Verdict::equivalent);
  // A writer's slice and a reader's slice each have one undetermined direction of 8. Key biases are undetermined.
  for (const auto& [name, directions] : {std::pair{"source.weight", 5},      // one for each id
                                         {"encoder.0.attn.proj.weight", 8},  // one for each column
                                         {"decoder.3.cross.q.weight", 8},    // one for each row
                                         {"decoder.3.cross.kv.weight", 16},
                                         {"decoder.3.cross.kv.bias", 8}})
    CHECK(row(r, name).directions == directions);
}
