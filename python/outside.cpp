// Comparisons of models that Python runs.
#include "python/bindings.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "autograd/ops/create.h"
#include "equivalence/compare/points.h"
#include "equivalence/explain/hypotheses.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/training.h"

namespace isonorm::python {
namespace {

namespace nb = nanobind;
using namespace equivalence;

DType dtype_named(const std::string& name) {
  for (DType d : {DType::f64, DType::f32})
    if (name == name_of(d)) return d;
  throw nb::value_error(("compare: dtype is " + name + ", expected f64 or f32").c_str());
}

std::vector<Tensor> tensors(nb::handle list) {
  std::vector<Tensor> all;
  for (nb::handle t : list) all.push_back(nb::cast<Tensor>(t));
  return all;
}

// A model that another program runs, in the form that the library's comparisons need: losses, gradients, weights.
// Its numbers come from a Python object:
//   differentiate() -> (loss, [Tensor])       a gradient for each name, in the reference's coordinates
//   update() -> ([Tensor], [Tensor], [name])  weights; the reference's weights in their form (None: they have it);
//                                             names
//   noise_here([Tensor]) -> [Tensor]          for weights that are computed from the reference's: u8, 1 for entries
//                                             that depend on an entry that only noise has moved. The argument holds
//                                             these marks for the reference
// A point needs no update().
class Outside : public Training {
 public:
  // plain: the number of leading weights that correspond to the reference's entry by entry. Throws ValueError if
  // `dtype` is neither f64 nor f32.
  Outside(nb::object side, const std::vector<std::string>& names, DType dtype, size_t plain);

  void differentiate(const training::Examples&) override;
  void update(double) override;
  nn::Module& model() override { return model_; }

 protected:
  Tensor reference_weight(const Training& reference, size_t i) const override {
    return expected_.empty() ? Training::reference_weight(reference, i) : expected_[i];
  }
  std::string weight_name(const Training&, size_t i) const override { return weight_names_[i]; }
  Tensor noise_here(const Training& reference, size_t i) const override;

 private:
  struct Empty : nn::Module {  // carries the dtype
    explicit Empty(DType dtype);
  };

  nb::object side_;
  Empty model_;
  size_t plain_;
  std::vector<Tensor> expected_;  // empty: the reference's weights as they are
  std::vector<std::string> weight_names_;
  mutable std::vector<Tensor> noise_;  // for the weights from plain_ on; computed on demand
};

Outside::Empty::Empty(DType dtype) { add_parameter("none", zeros({0}, {dtype})); }

Outside::Outside(nb::object side, const std::vector<std::string>& names, DType dtype, size_t plain)
    : side_(std::move(side)), model_(dtype), plain_(plain) {
  for (const std::string& name : names) {
    streams::NamedParameter p;
    p.name = name;
    parameters_.push_back(p);
  }
  noise_share_ = 1000 * epsilon(dtype);
  least_share_ = kLeastShare;
}

void Outside::differentiate(const training::Examples&) {
  const nb::object given = side_.attr("differentiate")();
  loss_ = nb::cast<double>(given[0]);
  begin_step();
  gradients_ = tensors(given[1]);
  check(gradients_.size() == parameters_.size(), "compare: ", gradients_.size(), " tensors for ", parameters_.size(),
        " names");
}

void Outside::update(double) {
  const nb::object given = side_.attr("update")();
  weights_ = tensors(given[0]);
  expected_ = given[1].is_none() ? std::vector<Tensor>() : tensors(given[1]);
  weight_names_ = nb::cast<std::vector<std::string>>(given[2]);
  noise_.clear();
}

Tensor Outside::noise_here(const Training& reference, size_t i) const {
  if (i < plain_) return Training::noise_here(reference, i);
  if (noise_.empty()) {
    nb::list of_reference;
    for (const Tensor& noise : reference.moved_by_noise()) of_reference.append(noise);
    if (of_reference.size() == 0) return {};
    noise_ = tensors(side_.attr("noise_here")(of_reference));
  }
  return noise_.at(i - plain_);
}

// Compares points: the implementation of the Python class Points. Each side is an object with differentiate().
class PythonPoints {
 public:
  PythonPoints(const std::string& dtype, int points) : dtype_(dtype_named(dtype)), points_(dtype_, points, true) {}

  // gradients_decide: no verdict rests on outputs alone.
  void note(int point, const nb::list& sides, const std::vector<std::string>& names, std::vector<std::string> outputs,
            const std::vector<std::string>& buffers, bool gradients_decide) {
    const size_t first_buffer = outputs.size() + 1;  // after the loss
    outputs.insert(outputs.end(), buffers.begin(), buffers.end());
    std::vector<ComparedTensor> compared = compared_tensors(sides, names, outputs);
    for (size_t k = 1; k <= outputs.size(); ++k) {
      compared[k].secondary = gradients_decide;
      if (k >= first_buffer) compared[k].quantity = "buffer";
    }
    points_.note(point, compared);
  }
  double share(const nb::list& sides, const std::vector<std::string>& names, const std::vector<std::string>& outputs) {
    return points_.worst(compared_tensors(sides, names, outputs)).share(dtype_);
  }
  bool differs() const { return points_.differs(); }
  Comparison judgement() { return points_.judgement(); }

 private:
  // sides: the reference, the run, then the controls; each is a pair (object with the outputs, object with the
  // gradients).
  std::vector<ComparedTensor> compared_tensors(const nb::list& sides, const std::vector<std::string>& names,
                                               const std::vector<std::string>& outputs) const {
    std::vector<ComparedTensor> compared;
    for (const char* quantity : {"output", "gradient"}) {
      const bool of_outputs = compared.empty();
      const std::vector<std::string>& list = of_outputs ? outputs : names;
      std::vector<std::unique_ptr<Outside>> all;
      std::vector<const Training*> controls;
      for (nb::handle side : sides) {
        all.push_back(std::make_unique<Outside>(nb::borrow(side[of_outputs ? 0 : 1]), list, dtype_, 0));
        all.back()->differentiate({});
        if (all.size() <= 2) continue;
        all.front()->note_control(*all.back(), false);
        controls.push_back(all.back().get());
      }
      if (of_outputs) compared.push_back(compared_loss(*all[1], *all[0], controls));
      for (ComparedTensor& s : compared_gradients(*all[1], *all[0], controls, quantity))
        compared.push_back(std::move(s));
    }
    return compared;
  }

  DType dtype_;
  Points points_;
};

using Names = std::vector<std::string>;

// Adds a training that Python runs to a lockstep.
void add(Lockstep& all, nb::handle side, const Names& names, DType dtype, size_t plain, RunResult& record,
         bool control = false) {
  all.add(std::make_unique<Outside>(nb::borrow(side), names, dtype, plain), record, control);
}

// Runs `steps` steps of a lockstep.
void run(Lockstep& all, int steps) {
  for (int step = 0; step < steps; ++step) {
    all.step({}, 0);
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

// Trains right() = [reference, run, controls...] for `steps` steps. Before that, trains wrong() = ([reference,
// controls...], [negative controls]) for the steps of a negative control, so that both groups are not in memory
// together. Judges as compare_trajectories() does.
Comparison train_together(const nb::callable& right, const nb::callable& wrong, const Names& names,
                          const std::string& dtype_name, size_t plain, int steps) {
  const DType dtype = dtype_named(dtype_name);
  std::vector<RunResult> wrong_runs;
  {
    const nb::object made = wrong();
    const nb::object sides = made[0], wrong_sides = made[1];
    RunResult reference;
    std::vector<RunResult> controls(nb::len(sides) - 1);
    wrong_runs.resize(nb::len(wrong_sides));
    Lockstep all;
    add(all, sides[0], names, dtype, names.size(), reference);
    for (size_t c = 0; c < controls.size(); ++c) add(all, sides[c + 1], names, dtype, names.size(), controls[c], true);
    for (size_t w = 0; w < wrong_runs.size(); ++w) add(all, wrong_sides[w], names, dtype, names.size(), wrong_runs[w]);
    run(all, kNegativeSteps);
  }
  const nb::object sides = right();
  RunResult reference, of_run;
  of_run.may_be_identical = true;
  std::vector<RunResult> controls(nb::len(sides) - 2);
  Lockstep all;
  add(all, sides[0], names, dtype, names.size(), reference);
  for (size_t c = 0; c < controls.size(); ++c) add(all, sides[c + 2], names, dtype, names.size(), controls[c], true);
  add(all, sides[1], names, dtype, plain, of_run);
  run(all, steps);
  return judge(of_run, controls, wrong_runs, all, dtype);
}

// The known mistake that explains why the tensor `name` differs, from everything else that was recorded; empty if none
// does.
std::string cause(const std::string& name, double tolerance, const std::string& dtype,
                  const std::map<std::string, std::pair<Tensor, Tensor>>& tensors) {
  std::map<Recorded, Pair> pairs;
  for (const auto& [of, ab] : tensors)
    if (ab.first.shape() == ab.second.shape()) pairs[recorded(of)] = {of, ab.second, ab.first, largest_entry(ab.first)};
  const auto find = [&](const Recorded& r) -> std::optional<Pair> {
    const auto at = pairs.find(r);
    return at == pairs.end() ? std::nullopt : std::optional(at->second);
  };
  const std::optional<Pair> pair = find(recorded(name));
  if (!pair) return "";
  Evidence e{.pair = *pair, .what = recorded(name), .tolerance = tolerance, .eps = epsilon(dtype_named(dtype))};
  e.find = find;
  return explain(e).sentence;
}

// A tensor that differs, with its deviation and bound: relative to its largest entry, or to its size as a whole.
nb::dict dict_of(const Deviation& t) {
  nb::dict d;
  d["quantity"] = t.what, d["tensor"] = t.where.tensor, d["deviation"] = t.size, d["bound"] = t.bound;
  d["as_a_whole"] = t.as_a_whole;
  return d;
}

nb::object first_difference_of(const Comparison& c) {
  if (!c.first_difference) return nb::none();
  nb::dict d;
  nb::list index, tensors;
  for (int64_t i : c.first_difference->place.index) index.append(i);
  d["tensor"] = c.first_difference->place.tensor, d["deviation"] = c.first_difference->place.deviation,
  d["bound"] = 0.0;
  d["as_a_whole"] = false;
  for (const Deviation& t : c.first_difference->deviations) {
    tensors.append(dict_of(t));
    if (t.where.tensor == c.first_difference->place.tensor &&
        std::string_view(c.first_difference->quantity).starts_with(t.what))
      d.update(dict_of(t));
  }
  d["step"] = c.first_difference->step, d["quantity"] = c.first_difference->quantity, d["tensors"] = tensors;
  d["index"] = nb::tuple(index), d["a"] = c.first_difference->place.reference, d["b"] = c.first_difference->place.value;
  return d;
}

}  // namespace

void bind_comparison(nb::module_& m) {
  nb::class_<Comparison>(m, "Comparison", "The library's judgement of a comparison.")
      .def_prop_ro(
          "verdict", [](const Comparison& c) { return name_of(c.verdict); },
          "'equivalent', 'different' or 'undecided'.")
      .def_ro("reason", &Comparison::reason)
      .def_ro("deviation", &Comparison::deviation, "The largest, over all that was compared, of the second model.")
      .def_ro("control", &Comparison::control, "The same of the first model moved by one ulp.")
      .def_ro("detectable", &Comparison::detectable, "A factor of 1 + detectable of any tensor would be detected.")
      .def_prop_ro(
          "horizon", [](const Comparison& c) { return c.horizon.steps; }, "Number of steps that are judged.")
      .def_prop_ro("first_difference", &first_difference_of,
                   "The first point or step that differs, and the entry furthest off; or None.");
  nb::class_<PythonPoints>(m, "Points", "Points until the first that differs (equivalence/compare/points.h).")
      .def(nb::init<const std::string&, int>(), nb::arg("dtype"), nb::arg("points"))
      .def("note", &PythonPoints::note, nb::arg("point"), nb::arg("sides"), nb::arg("names"), nb::arg("outputs"),
           nb::arg("buffers"), nb::arg("gradients_decide"))
      .def("share", &PythonPoints::share, nb::arg("sides"), nb::arg("names"), nb::arg("outputs"),
           "The part of its bound that the second side uses.")
      .def_prop_ro("differs", &PythonPoints::differs)
      .def("judgement", &PythonPoints::judgement);
  m.attr("NEGATIVE_STEPS") = kNegativeSteps;
  m.def(
      "bound", [](double control, const std::string& dtype) { return bound(control, dtype_named(dtype)); },
      nb::arg("control"), nb::arg("dtype"), "30 control + 64 eps: the largest deviation that rounding explains.");
  m.def(
      "largest_bound", [](const std::string& dtype) { return largest_bound(dtype_named(dtype)); }, nb::arg("dtype"),
      "The largest bound that detects mistakes: 1e-5 in f64, 1e-2 in f32.");
  m.def(
      "moved_by_one_ulp",
      [](const Tensor& x, uint64_t seed, uint64_t stream) { return moved_by_ulps(x, seed, stream); }, nb::arg("x"),
      nb::arg("seed"), nb::arg("stream"),
      "A copy with every entry but zeros moved by one unit in the last place, up or down at random. f64, f32, bf16.");
  m.def(
      "deviation",
      [](const Tensor& x, const Tensor& reference) {
        return deviation({{"", x, reference, largest_entry(reference)}});
      },
      nb::arg("x"), nb::arg("reference"),
      "max |x - reference| / max |reference|; 0 if they are equal, NaN if one has NaN. Raises ValueError if the "
      "shapes differ.");
  m.def("cause", &cause, nb::arg("name"), nb::arg("tolerance"), nb::arg("dtype"), nb::arg("tensors"),
        "The known mistake that explains the difference of this tensor; empty if none does.\n\n"
        "tensors: {name: (a, b)}, by the names of equivalence/explain/recorded.h, of f64 or f32.");
  m.def("train_together", &train_together, nb::arg("right"), nb::arg("wrong"), nb::arg("names"), nb::arg("dtype"),
        nb::arg("plain"), nb::arg("steps"), "As compare_trajectories(), of models that Python trains.");
}

}  // namespace isonorm::python
