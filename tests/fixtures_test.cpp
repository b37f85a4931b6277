// Values and gradients of single ops against PyTorch's (tests/fixtures/torch_ops.py), in f64 and in f32.
#include "tests/support/catch.h"

#include <cmath>
#include <map>
#include <set>

#include "autograd/engine.h"
#include "autograd/ops/pointwise.h"
#include "io/safetensors.h"
#include "tests/fixtures/op_table.h"

using namespace isonorm;
using namespace isonorm::fixtures;

namespace {

using Fixtures = std::map<std::string, Tensor>;

Fixtures read_fixtures() {
  Fixtures all;
  for (const auto& [name, tensor] : load_safetensors("tests/fixtures/ops.safetensors")) all.emplace(name, tensor);
  return all;
}

// Entries `<name>/<what>0`, `<name>/<what>1`, ...
Tensors numbered(const Fixtures& all, const std::string& name, const std::string& what) {
  Tensors found;
  for (int i = 0;; ++i) {
    const auto at = all.find(name + "/" + what + std::to_string(i));
    if (at == all.end()) return found;
    found.push_back(at->second);
  }
}

// "op/variant" of every entry "op/variant/in0".
std::vector<std::string> case_names(const Fixtures& all) {
  std::vector<std::string> names;
  for (const auto& [key, tensor] : all)
    if (key.ends_with("/in0")) names.push_back(key.substr(0, key.size() - 4));
  return names;
}

const Call* find_call(const std::string& name) {
  const auto& table = op_table();
  auto at = table.find(name);
  if (at == table.end()) at = table.find(name.substr(0, name.find('/')));
  return at == table.end() ? nullptr : &at->second;
}

// f64: 1e-12 of the largest entry. f32 inputs are exactly those of the fixture, so only our own rounding counts: 16 eps
// for the handful of operations in a row and the elementary functions among them, times the root of the longest sum a
// case of that size can hold.
double tolerance(DType dtype, int64_t longest) {
  return dtype == DType::f64 ? 1e-12 : 16 * epsilon(DType::f32) * std::sqrt(static_cast<double>(longest));
}

void compare(const std::string& what, const Tensor& ours, const Tensor& theirs, double relative) {
  INFO(what);
  REQUIRE(ours.shape() == theirs.shape());
  CHECK(is_floating(ours.dtype()) == is_floating(theirs.dtype()));
  const std::vector<double> a = ours.to_vector<double>(), b = theirs.to_vector<double>();
  double largest = 0, worst = 0;
  for (double x : b) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  CHECK(worst <= (is_floating(theirs.dtype()) ? relative * largest : 0));
}

void run_case(const Fixtures& all, const std::string& name, const Call& call, DType dtype) {
  Tensors inputs = numbered(all, name, "in");
  Tensors wanted, expected;
  int64_t longest = 1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    longest = std::max(longest, inputs[i].numel());
    if (is_floating(inputs[i].dtype())) inputs[i] = detach(inputs[i].to(dtype));
    const auto grad = all.find(name + "/grad" + std::to_string(i));
    if (grad == all.end()) continue;
    wanted.push_back(require_grad(inputs[i]));
    expected.push_back(grad->second);
  }
  const double relative = tolerance(dtype, longest);
  const Tensors outputs = call(inputs), out = numbered(all, name, "out");
  REQUIRE(outputs.size() == out.size());
  for (size_t i = 0; i < out.size(); ++i) compare("output " + std::to_string(i), outputs[i], out[i], relative);
  if (wanted.empty()) return;
  Tensors cotangents = numbered(all, name, "cotangent");
  for (size_t i = 0; i < cotangents.size(); ++i) cotangents[i] = to(cotangents[i], outputs[i].dtype());
  const Tensors grads = grad(outputs, wanted, cotangents);
  for (size_t i = 0; i < grads.size(); ++i) {
    CHECK(grads[i].dtype() == dtype);
    compare("gradient " + std::to_string(i), grads[i], expected[i], relative);
  }
}

}  // namespace

TEST_CASE("values and gradients of every op equal PyTorch's") {
  const Fixtures all = read_fixtures();
  const std::vector<std::string> names = case_names(all);
  REQUIRE(names.size() > 200);
  for (const std::string& name : names)
    for (DType dtype : {DType::f64, DType::f32}) {
      INFO(name << " in " << name_of(dtype));
      const Call* call = find_call(name);
      REQUIRE(call != nullptr);
      run_case(all, name, *call, dtype);
    }
}

TEST_CASE("every entry of the op table answers a fixture") {
  std::set<std::string> known;
  for (const std::string& name : case_names(read_fixtures())) {
    known.insert(name);
    known.insert(name.substr(0, name.find('/')));
  }
  for (const auto& [name, call] : op_table()) {
    INFO(name);
    CHECK(known.contains(name));
  }
}
