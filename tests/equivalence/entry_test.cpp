// Unusual beginnings and readers of a stream: a norm after a table, a module that rows with a mean enter, rows that are
// read side by side, several streams in one file. Compared with loops that spell out the formulas.
#include <algorithm>
#include <cmath>

#include "streams/coordinates.h"
#include "tests/equivalence/model_files.h"
#include "tests/support/same_bytes.h"

namespace {

constexpr TensorOptions kF64{DType::f64};
constexpr Form kForms[] = {Form::rms_norm, Form::crms_norm, Form::crms_isometric};
constexpr double kEps = 1e-3;
using Values = std::vector<double>;

const std::string kTable = R"({"width": 6, "norms": {"e": 1e-3, "n": 1e-3},
  "writers": {"table": {"dim": 1, "norm": "e"}, "out": 0}, "readers": {"in.weight": {"dim": 1, "norm": "n", "parts": 2}},
  "tied": {"table": {"head": "head.weight", "norm": "n"}}})";

TensorMap state() {
  manual_seed(6);
  TensorMap s;
  for (const auto& [name, shape] : std::vector<std::pair<std::string, Dims>>{{"table", {9, 6}},
                                                                             {"e.weight", {6}},
                                                                             {"e.bias", {6}},
                                                                             {"n.weight", {6}},
                                                                             {"n.bias", {6}},
                                                                             {"in.weight", {4, 12}},
                                                                             {"in.bias", {4}},
                                                                             {"out.weight", {6, 4}},
                                                                             {"out.bias", {6}}})
    s.add(name, randn(shape, kF64) * 0.4 + 0.3);
  return s;
}

streams::Plan placed(const std::string& json, const TensorMap& s, bool converted = false,
                     Form form = Form::layer_norm) {
  return streams::plan_in(streams::Layout::from_json(json), s, form, converted);
}

// (x - mean) / sqrt(mean (x - mean)^2 + eps), or without subtracting the mean; divides as if there were `more` zeros.
Values normed(Values x, bool centre, size_t more) {
  double mean = 0, square = 0;
  for (double v : x) mean += v / static_cast<double>(x.size());
  for (double& v : x) v -= centre ? mean : 0, square += v * v;
  for (double& v : x) v /= std::sqrt(square / static_cast<double>(x.size() + more) + kEps);
  return x;
}

Values row(const TensorMap& s, const std::string& name, int64_t i = 0) {
  const Tensor& t = s.at(name);
  const Values all = t.to_vector<double>();
  const auto width = static_cast<size_t>(t.size(-1)), at = static_cast<size_t>(i) * width;
  return {all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(at + width)};
}

}  // namespace

TEST_CASE("a norm behind a table: the table's rows are what the norm makes of them, the head is the table as it was") {
  const TensorMap s = state();
  const streams::Plan plan = placed(kTable, s);
  for (Form to : kForms) {
    INFO(name_of(to));
    const Conversion c = convert(s, plan, to);
    CHECK(c.state.find("e.weight") == nullptr);
    CHECK(c.state.find("e.bias") == nullptr);
    const Tensor stored = c.state.at("table"), whole = to == Form::rms_norm ? stored
                                                       : to == Form::crms_norm
                                                           ? streams::expand_writer(stored, 1)
                                                           : streams::from_basis(stored, 1, streams::kHelmert);
    for (int64_t i = 0; i < 9; ++i) {
      Values expected = normed(row(s, "table", i), true, 0);
      double mean = 0;
      for (size_t k = 0; k < 6; ++k) expected[k] = expected[k] * row(s, "e.weight")[k] + row(s, "e.bias")[k];
      for (double v : expected) mean += v / 6;
      for (size_t k = 0; k < 6; ++k)
        CHECK(std::abs(whole.to_vector<double>()[static_cast<size_t>(i) * 6 + k] - (expected[k] - mean)) < 1e-13);
    }
    if (to == Form::rms_norm) CHECK(largest(c.state.at("head.weight") - s.at("table") * s.at("n.weight")) < 1e-14);
    const streams::Plan again = placed(kTable, c.state, true, to);
    CHECK(compare_entries(s, plan, c.state, again).equivalent());
    CHECK(compare_streams(s, plan, c.state, again).size < 1e-12);
    Values all = stored.to_vector<double>();
    all[3] += 1e-6;
    const Tensor changed = from_span(std::span<const double>(all), stored.shape());
    CHECK_FALSE(compare_entries(s, plan, with_tensor(c.state, "table", changed), again).equivalent());
    CHECK(compare_streams(s, plan, with_tensor(c.state, "table", changed), again).size > 1e-7);
  }
}

TEST_CASE("the entry that differs most is named by its place in the tensor") {
  const TensorMap s = state();
  const streams::Plan plan = placed(kTable, s);
  for (const auto& [name, place] :
       {std::pair{"out.weight", Dims{3, 2}}, {"out.bias", Dims{4}}, {"in.weight", Dims{2, 9}}}) {
    INFO(name);
    Tensor changed = s.at(name).clone();
    int64_t at = 0;
    for (int i = 0; i < place.rank; ++i) at = at * changed.size(i) + place[i];
    changed.mutable_data<double>()[at] += 0.5;
    const EntryComparison found = compare_entries(s, plan, with_tensor(s, name, changed), plan);
    REQUIRE(found.largest);
    CHECK(found.largest->tensor == name);
    CHECK(found.largest->index == place);
    CHECK(found.share > 1);
  }
}

TEST_CASE("a norm after an embedding table: rounding is propagated through it") {
  const TensorMap s = state();
  const streams::Plan plan = placed(kTable, s);
  TensorMap rounded;
  for (const auto& [name, t] : s) rounded.add(name, t.to(DType::bf16));
  CHECK(compare_entries(s, plan, rounded, plan).relation == EntryComparison::Relation::second_rounded);
  CHECK(compare_entries(rounded, plan, s, plan).relation == EntryComparison::Relation::first_rounded);
  Values moved = rounded.at("table").to(DType::f64).to_vector<double>();
  const auto largest =
      std::max_element(moved.begin(), moved.begin() + 6, [](double a, double b) { return std::abs(a) < std::abs(b); });
  *largest *= 1 + 0x1p-4;  // at least 8 ulps
  const Tensor wrong = from_span(std::span<const double>(moved), {9, 6}).to(DType::bf16);
  CHECK_FALSE(compare_entries(s, plan, with_tensor(rounded, "table", wrong), plan).equivalent());
}

TEST_CASE("rows read side by side: each part has its norm's gain and bias, and the narrower rows") {
  const TensorMap s = state();
  const Values x = {0.3, -1.2, 0.8, 2.1, -0.4, 0.9}, y = {1.3, 0.2, -0.8, 0.1, 0.6, -2.9};
  const auto read = [](const TensorMap& t, const Values& a, const Values& b, size_t o) {
    double sum = row(t, "in.bias")[o];
    const Values w = row(t, "in.weight", static_cast<int64_t>(o));
    for (size_t k = 0; k < a.size(); ++k) sum += w[k] * a[k] + w[a.size() + k] * b[k];
    return sum;
  };
  const auto gained = [&](Values n) {
    for (size_t k = 0; k < 6; ++k) n[k] = n[k] * row(s, "n.weight")[k] + row(s, "n.bias")[k];
    return n;
  };
  const auto zero_mean = [](Values v, size_t kept) {
    double mean = 0;
    for (double a : v) mean += a / 6;
    for (double& a : v) a -= mean;
    return v.resize(kept), v;
  };
  // CRMSNorm divides by the sum of all six squares. The last entry is minus the sum of the others.
  const auto crms = [](const Values& v) {
    Values whole = v;
    whole.push_back(0);
    for (double a : v) whole[5] -= a;
    Values n = normed(whole, false, 0);
    return n.pop_back(), n;
  };
  const TensorMap rms = convert(s, placed(kTable, s), Form::rms_norm).state,
                  narrow = convert(s, placed(kTable, s), Form::crms_norm).state;
  CHECK(narrow.at("in.weight").shape() == Dims{4, 10});
  for (size_t o = 0; o < 4; ++o) {
    const double expected = read(s, gained(normed(x, true, 0)), gained(normed(y, true, 0)), o);
    CHECK(std::abs(read(rms, normed(zero_mean(x, 6), false, 0), normed(zero_mean(y, 6), false, 0), o) - expected) <
          1e-13);
    CHECK(std::abs(read(narrow, crms(zero_mean(x, 5)), crms(zero_mean(y, 5)), o) - expected) < 1e-13);
  }
  const streams::Plan plan = placed(kTable, s);
  const Conversion c = convert(s, plan, Form::crms_norm);
  const auto exchanged = [](const Tensor& w) {
    return cat({isonorm::narrow(w, 1, 5, 5), isonorm::narrow(w, 1, 0, 5)}, 1);
  };
  const TensorMap wrong = with_tensor(c.state, "in.weight", exchanged(c.state.at("in.weight")));
  CHECK_FALSE(compare_entries(s, plan, wrong, c.plan).equivalent());
  CHECK(compare_streams(s, plan, wrong, c.plan).size > 1e-2);
}

TEST_CASE("a stream that is recentred once: rows with a mean enter it, and the readers see no difference") {
  const TensorMap s = state();
  const std::string json = R"({"width": 6, "norms": {"n": 1e-3}, "writers": {"out": 0}, "recentre": "layers.0",
    "readers": {"in.weight": {"dim": 1, "norm": "n", "parts": 2}}, "not_on_stream": ["table", "e"]})";
  const streams::Plan plan = placed(json, s);
  for (Form to : kForms) {
    INFO(name_of(to));
    const Conversion c = convert(s, plan, to);
    CHECK(c.plan.recentred == "layers.0");
    CHECK(::same_bytes(c.state.at("e.weight"), s.at("e.weight")));
    std::map<std::string, double> of;
    CHECK(compare_streams(s, plan, c.state, c.plan, &of).size < 1e-12);
    CHECK(of.contains("layers.0"));
    streams::Plan silent = c.plan;
    silent.recentred.clear();
    CHECK_THROWS_WITH(compare_streams(s, plan, c.state, silent), Contains("is recentred at 'layers.0'"));
  }
}

TEST_CASE("several streams: a tensor belongs to one stream; a tensor of no stream is refused at the first stream") {
  TensorMap s;
  for (const auto& [name, t] : state())
    for (const char* of : {"a.", "b."}) s.add(of + name, t);
  const auto stream = [](const std::string& of) {
    return text(R"(")", of, R"(": {"width": 6, "norms": {")", of, R"(.n": 1e-3}, "writers": {")", of,
                R"(.out": 0}, "readers": {")", of, R"(.in.weight": {"dim": 1, "norm": ")", of,
                R"(.n", "parts": 2}}, "not_on_stream": [")", of, R"(.table", ")", of, R"(.e"]})");
  };
  const auto found = [&](const std::string& json) {
    return streams::streams_in(streams::Layout::streams_from_json(json), s, Form::layer_norm);
  };
  const std::string both = "{\"streams\": {" + stream("a") + ", " + stream("b") + "}}";
  const auto streams = found(both);
  REQUIRE(streams.size() == 2);
  CHECK(streams[1].name == "b");
  for (const streams::FileStream& one : streams) {
    CHECK(one.outline.size() == 9);
    for (const auto& [name, _] : one.outline) CHECK(name.starts_with(one.name + "."));
  }
  std::string twice = both;
  twice.replace(twice.rfind("\"b.e\""), 5, "\"a.e\"");
  CHECK_THROWS_WITH(found(twice), StartsWith("b: layout: tensor 'a.e.weight' is in stream 'a', too"));
  std::string less = both;
  less.replace(less.rfind(", \"b.e\""), 7, "");
  CHECK_THROWS_WITH(found(less), StartsWith("a: convert: tensor 'b.e.weight' of shape [6] is unexpected"));
  CHECK_THROWS_WITH(found("{\"width\": 6, \"streams\": {" + stream("a") + "}}"),
                    Contains("\"width\" is next to \"streams\""));
  CHECK_THROWS_WITH(found("{\"streams\": {" + stream("a") + ", " + stream("a") + "}}"),
                    Contains("\"a\" is there twice"));
  CHECK_THROWS_WITH(streams::Layout::from_json(both), Contains("several streams"));
}

TEST_CASE("mistakes in such descriptions are refused by name") {
  const TensorMap s = state();
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& says) {
    std::string json = kTable;
    REQUIRE(json.find(from) != std::string::npos);
    json.replace(json.find(from), from.size(), to);
    INFO(json);
    CHECK_THROWS_WITH(placed(json, s), Contains(says));
  };
  refused("\"norm\": \"e\"", "\"norm\": \"n\"", "so no reader may read through it");
  refused("\"width\"", "\"kept\": [\"e\"], \"width\"", "norm 'e' cannot keep its gain");
  refused("\"norm\": \"e\"", "\"norm\": \"x\"", "go through norm 'x', which is not there");
  refused("\"out\": 0", "\"out.bias\": 0, \"out.weight\": {\"dim\": 0, \"norm\": \"e\"}",
          "only an unscaled table [rows, width]");
  refused("\"dim\": 1, \"norm\": \"e\"", "\"norm\": \"e\"", "writer \"table\" has no \"dim\"");
  refused("\"parts\": 2", "\"parts\": 3", "does not have 3 x 6 entries along dimension 1");
  refused("\"parts\": 2", "\"parts\": 0", "reads 0 rows, expected 1 to 64");
  refused("\"width\"", "\"recentre\": \"layers.*\", \"width\"", "expected a single module");
  CHECK_THROWS_WITH(placed(kTable, s, false, Form::rms_norm), Contains("which is no LayerNorm"));
}
