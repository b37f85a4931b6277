#include "equivalence/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/pieces.h"
#include "equivalence/judge/pairs.h"
#include "equivalence/reference/readings.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

// [.., n] in f64 as [rows, n].
Tensor rows_of(const std::string& name, const Tensor& x, int64_t n) {
  check(x.rank() >= 1 && x.size(-1) == n && x.numel() > 0, "reference: '", name, "' has shape ", x.shape(),
        ", expected rows of ", n);
  const Tensor rows = reshape(x.to(DType::f64), {x.numel() / n, n});
  check(std::isfinite(largest_entry(rows)), "reference: '", name, "' holds NaN or infinity");
  return rows;
}

class ReferenceCheck {
 public:
  ReferenceCheck(const LazyState& file, const streams::Plan& plan, const TensorMap& reference)
      : file_(file), plan_(plan), reference_(reference), readings_(file, plan) {
    check(!reference.empty(), "reference: it holds nothing, expected NAME.input and NAME.output of readers or writers");
    for (const auto& [name, tensor] : reference) {
      if (name.ends_with(".seen") || name.ends_with(".reads") || name.ends_with(".enters") ||
          name.starts_with("program."))
        continue;  // stream_sum.h
      const size_t dot = name.rfind('.');
      const std::string of = name.substr(0, dot), end = dot == std::string::npos ? "" : name.substr(dot);
      check(end == ".input" || end == ".output", "reference: '", name,
            "' is called neither NAME.input nor NAME.output");
      const std::string partner = of + (end == ".input" ? ".output" : ".input");
      check(reference.find(partner), "reference: '", name, "' has no '", partner, "'");
      open_.insert(of);
    }
    for (const streams::Plan::Writer& w : plan.writers) biases_.insert(bias_of_writer(plan, w));
  }

  ReferenceFindings run() {
    std::vector<Unit> held;
    for (const Unit& u : units_of(file_.outline, plan_, 1))
      if (count(u)) held.push_back(u);
    check(open_.empty(), "reference: '", open_.empty() ? "" : *open_.begin(),
          "' is not the weight of a reader or writer in the description");
    for (const Unit& u : held) hold(u);
    return findings_;
  }

 private:
  bool is_named(const std::string& name) const { return reference_.find(name + ".input") != nullptr; }

  // Counts the readers and writers of the unit. True if the reference has any.
  bool count(const Unit& u) {
    bool any = false;
    const auto add = [&](const std::string& name, int64_t& all, int64_t& held) {
      const bool named = open_.erase(name) > 0;
      ++all, held += named, any = any || named;
    };
    for (const streams::Plan::Reader& r : u.plan.readers) add(r.name, findings_.readers, findings_.readers_held);
    for (const streams::Plan::Writer& w : u.plan.writers)
      if (!biases_.contains(w.name)) add(w.name, findings_.writers, findings_.writers_held);
    return any;
  }

  void hold(const Unit& u) {
    TensorMap state;
    for (const std::string& name : u.names) state.add(name, file_.read(name));
    for (const streams::Plan::Writer& w : u.plan.writers) {
      if (!is_named(w.name)) continue;
      const Tensor& weight = state.at(w.name);
      const bool ids = !is_floating(reference_.at(w.name + ".input").dtype());
      compare(w.name, weight.numel() / weight.size(w.dim), readings_.of_writer(state, w, ids));
    }
    for (const streams::Plan::Reader& r : u.plan.readers) {
      if (!is_named(r.name)) continue;
      floating(r.name + ".input");
      compare(r.name, plan_.stored_width(), readings_.of_reader(state, r));
    }
  }

  const Tensor& floating(const std::string& name) const {
    const Tensor& t = reference_.at(name);
    check(is_floating(t.dtype()), "reference: '", name, "' has dtype ", t.dtype(), ", expected a floating one");
    return t;
  }

  // Inputs [rows, n], or ids [rows].
  Tensor inputs_of(const std::string& name, int64_t n) const {
    const Tensor& x = reference_.at(name);
    return is_floating(x.dtype()) ? rows_of(name, x, n) : flatten(x.to(DType::i64));
  }

  void compare(const std::string& name, int64_t n, const std::vector<Reading>& readings) {
    const std::string input = name + ".input", output = name + ".output";
    const Tensor &x = reference_.at(input), &y = floating(output);
    check(!is_floating(x.dtype()) || x.dtype() == y.dtype(), "reference: '", input, "' has dtype ", x.dtype(), ", '",
          output, "' ", y.dtype(), ": expected the one in which the program computed");
    const Tensor inputs = inputs_of(input, n);
    const ExpectedOutput expected = [&] {
      const Scope scope(input);
      return readings[0].of(inputs);
    }();
    const Tensor rows = rows_of(output, y, expected.value.size(1));
    check(rows.shape() == expected.value.shape(), "reference: '", output, "' has ", rows.size(0), " rows, '", input,
          "' ", expected.value.size(0));
    const Furthest found = furthest(rows, expected, y.dtype());
    if (found.share > findings_.share) {
      const double scale = largest_entry(rows);
      findings_.furthest = {.what = name, .size = found.off / scale, .bound = found.bound / scale};
      findings_.share = found.share;
    }
    for (size_t i = 1; i < readings.size(); ++i) {
      const double share = shown(rows, inputs, readings[i], y.dtype());
      if (share >= findings_.power) continue;
      findings_.power = share, findings_.unseen = name, findings_.reading = readings[i].how;
    }
  }

  struct Furthest {
    double share = 0, off = 0, bound = 0;
  };

  // The entry of outputs [rows, m] that uses most of its bound.
  static Furthest furthest(const Tensor& rows, const ExpectedOutput& expected, DType dtype) {
    const double bound = expected.bound(dtype);
    const std::vector<double> off = abs(rows - expected.value).to_vector<double>(),
                              size = expected.size.to_vector<double>();
    Furthest most;
    for (size_t i = 0; i < off.size(); ++i) {
      if (off[i] == 0) continue;
      double share = off[i] / (bound * size[i]);
      if (std::isnan(share)) share = std::numeric_limits<double>::infinity();
      if (share > most.share) most = {share, off[i], bound * size[i]};
    }
    return most;
  }

  // Returns by what factor the outputs exceed the rounding bound around what a wrong interpretation of the tensor would
  // give. Stops at the first rows that exceed the bound, usually the first row.
  static double shown(const Tensor& rows, const Tensor& inputs, const Reading& reading, DType dtype) {
    double share = 0;
    const int64_t all = rows.size(0);
    for (int64_t done = 0, count = 1; done < all && !(share > 1); done += count, count *= 2) {
      count = std::min(count, all - done);
      const ExpectedOutput expected = reading.of(narrow(inputs, 0, done, count));
      share = std::max(share, furthest(narrow(rows, 0, done, count), expected, dtype).share);
    }
    return share;
  }

  const LazyState& file_;
  const streams::Plan& plan_;
  const TensorMap& reference_;
  std::set<std::string> open_;    // names in the reference that are not used yet
  std::set<std::string> biases_;  // of writers
  const Readings readings_;
  ReferenceFindings findings_;
};

}  // namespace

bool ReferenceFindings::agrees() const { return share <= 1; }
bool ReferenceFindings::equivalent() const { return agrees() && power > 1; }

TensorMap load_reference(const std::string& path) {
  const Bytes file = open_bytes(path);
  return is_zip(file) ? load_npz(file) : load_safetensors(file);
}

ReferenceFindings check_reference(const LazyState& file, const streams::Plan& plan, const TensorMap& reference) {
  NoGrad no_grad;
  return ReferenceCheck(file, plan, reference).run();
}

}  // namespace isonorm::equivalence
