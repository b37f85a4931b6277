// The program's commands for files and proofs, as Python functions.
#include "python/bindings.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "core/system/failures.h"
#include "equivalence/lockstep/prove.h"
#include "equivalence/services/conversion.h"
#include "equivalence/services/proof_options.h"
#include "equivalence/services/verification.h"
#include "equivalence/text/proof_text.h"
#include "streams/stream.h"
#include "training/run/given.h"

namespace isonorm::python {
namespace {

namespace nb = nanobind;
using namespace services;

// Long work for Python. It runs without the GIL, until it is done, Ctrl-C is pressed, or a Python callback raises.
class Work {
 public:
  // Runs f() without the GIL. f must call stopped() now and then, from the same thread, and may end by throwing
  // Interrupted. Then raises what was raised there, including KeyboardInterrupt.
  template <class F> auto run(F&& f) {
    try {
      auto result = [&] {
        const nb::gil_scoped_release unlocked;
        return f();
      }();
      tell();
      return result;
    } catch (const Interrupted&) {
      tell();
      throw;
    }
  }

  // True if the work should stop: Ctrl-C was pressed, or `callback` raised. Calls callback() with the GIL held.
  template <class F> bool stopped(F&& callback) {
    const nb::gil_scoped_acquire lock;
    try {
      if (!raised_) callback();
      if (!raised_ && PyErr_CheckSignals() != 0) throw nb::python_error();
    } catch (nb::python_error& e) {
      raised_.emplace(std::move(e));
    }
    return raised_.has_value();
  }
  bool stopped() {
    return stopped([] {});
  }

 private:
  // Raises the exception that stopped() caught, if any; the result of the work is then dropped. Also notices a signal
  // that came after the last call of stopped().
  void tell() {
    stopped();
    if (!raised_) return;
    nb::python_error raised = std::move(*raised_);
    throw raised;
  }

  std::optional<nb::python_error> raised_;
};

// Returns the result as JSON.
std::string convert_file(const std::string& in, const std::string& out, const std::string& to, const std::string& from,
                         const std::string& spec, const std::string& reference, const std::string& dtype,
                         const std::string& data, const std::string& fold, double eps, bool inference) {
  streams::form_named(to);
  if (!from.empty()) streams::form_named(from);
  if (!dtype.empty()) training::check_names("dtype", {dtype}, "f32, f64, bf16, f16");
  training::check_names("fold", {fold}, "all, none");
  Work work;
  ConvertOptions o;
  o.in = in, o.out = out, o.from = from, o.to = to, o.spec = spec, o.reference = reference;
  o.dtype = dtype, o.data = data, o.fold = fold, o.eps = eps, o.inference = inference, o.quiet = true;
  o.print = [](const std::string&) {};
  o.stop = [&] { return work.stopped(); };
  const Converted found = work.run([&] {
    check_files(files_of(o));
    return convert(o);
  });
  return to_json(convert_schema()(found), found.text);
}

// Returns the result as JSON.
std::string verify_files(const std::string& a, const std::string& b, const std::string& spec, const std::string& data,
                         const std::string& up_to) {
  if (!up_to.empty() && up_to != "rotation")
    throw UsageError(text("up_to: \"", up_to, "\" is not \"rotation\", the one symmetry that is known"));
  Work work;
  const VerifyOptions options{
      .a = a, .b = b, .spec = spec, .data = data, .up_to = up_to, .stop = [&] { return work.stopped(); }};
  const Verified found = work.run([&] {
    check_files(files_of(options));
    return verify(options);
  });
  return to_json(verify_schema()(found), found.shown());
}

nb::dict said(const equivalence::StepInfo& info) {
  nb::dict d;
  d["phase"] = name_of(info.phase), d["step"] = info.step, d["steps"] = info.steps, d["loss"] = info.loss;
  d["deviation"] = info.deviation, d["control_deviation"] = info.control_deviation, d["done"] = info.done;
  return d;
}

// Returns the result as JSON.
std::string prove(const std::vector<std::string>& forms, int controls, const training::Given& given,
                  nb::object progress) {
  equivalence::ProofOptions o;
  if (!forms.empty()) o.forms = forms;
  o.controls = controls;
  for (const auto& [name, word] : given)
    if (!is_of_proofs(name)) throw UsageError(text(name, " is not an option of a proof"));
  training::set_training_options(o.training, given);
  check_proof(o);
  Work work;
  const auto go_on = [&](const equivalence::StepInfo& info) {
    return !work.stopped([&] {
      if (!progress.is_none()) progress(said(info));
    });
  };
  const equivalence::ProofResult proof = work.run([&] { return equivalence::prove(o, go_on); });
  return to_json(equivalence::document_of(proof));
}

}  // namespace

void bind_files(nb::module_& m) {
  m.def("convert", &convert_file, nb::arg("path_in"), nb::arg("path_out"), nb::arg("form"), nb::kw_only(),
        nb::arg("source"), nb::arg("spec"), nb::arg("reference"), nb::arg("dtype"), nb::arg("data"), nb::arg("fold"),
        nb::arg("eps"), nb::arg("inference"));
  m.def("verify", &verify_files, nb::arg("path_a"), nb::arg("path_b"), nb::kw_only(), nb::arg("spec"), nb::arg("data"),
        nb::arg("up_to"));
  m.def("prove", &prove, nb::arg("forms"), nb::arg("controls"), nb::arg("options"), nb::arg("progress").none());
}

}  // namespace isonorm::python
