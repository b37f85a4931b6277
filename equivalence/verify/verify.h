// Are two checkpoints one function? Every entry is compared in one form (compare_entries.h), and then both run in f64
// on the same inputs. The rounding of these outputs is measured, not guessed: every weight is moved by one unit in the
// last place of its own format.
#pragma once

#include <map>

#include "equivalence/convert/convert.h"
#include "equivalence/judge/judgement.h"
#include "equivalence/verify/compare_entries.h"
#include "streams/stream.h"
#include "training/model_file.h"

namespace isonorm::equivalence {

// The deviation of outputs that are computed in f64, with the bound 4 control + 64 eps of f64. Rounding moves a weight
// by at most half a unit, and the control moves it by a whole one. Nothing trains, so four times the control is enough
// (0.1 to 0.6 times the control were seen).
Deviation output_deviation(std::string what, double size, double control, NumberFormat format = DType::f64);

// The conversion of a described model: the new model's state with all its parameters, and its description.
struct ModelConversion {
  Conversion conversion;
  Metadata description;
};

struct ModelConversionOptions {
  std::optional<NumberFormat> dtype;  // of the result's tensors; by default each keeps its own
  bool inference = false;             // leaves out dropout on branches, which mapped weights cannot have in training
};

// The plan of a described model's conversion.
struct ModelPlan {
  streams::Plan source, result;  // of the model, and of the converted model
  Metadata description;          // of the converted model
  TensorMap outline;             // of its tensors, in their order
};
// Throws if the tensors do not match the described model, or if it has dropout on its branches and `inference`, which
// leaves it out, is false.
ModelPlan plan_conversion(const Metadata& description, const TensorMap& outline, streams::Form to, bool inference);

// Like convert(), for a file with a description. Raw weights of any form are the Pre-LN model's. Throws like convert(),
// if the file's tensors do not match the described model, or if the model has dropout on its branches and
// options.inference is false.
ModelConversion convert_model(const training::ModelFile& file, streams::Form to,
                              const ModelConversionOptions& options = {});

// The logits of a described model in f64 with this state.
Tensor logits(const Metadata& description, const TensorMap& state, const Tensor& inputs);

// output_deviation() of max |logits_a - logits_b| / max |logits_a| on the same inputs, in blocks of rows. what: of the
// result. The controls are two copies of each
// model with every tensor moved by an ulp of its dtype, or of the partner's dtype if that is coarser. The largest
// control counts, so the verdict does not depend on the order of the two. The six models run one after another: in
// memory are one model in f64, and two models' logits of some rows, which take about the memory of a model. Throws if
// the models do not take the same inputs, or give logits of different shapes.
Deviation compare_models(const Metadata& description_a, const LazyState& a, const Metadata& description_b,
                         const LazyState& b, const Tensor& inputs, std::string what = "logits");

// The findings about two states: every entry, and the readers' outputs for random rows.
struct StateComparison {
  EntryComparison entries;
  Deviation readers;
  std::map<std::string, double> deviations = {};  // by tensor, in the readers' outputs
};

// The states need not fit into memory: pieces of both are compared (pieces.h), and of each state only one unit's
// tensors are in memory. All of these throw if a state does not fit its plan.
//
// Compares entries (compare_entries.h). If no rule holds, A is converted to each form in its own dtypes. The result
// counts as exact, except that a single value of each slice may have been rounded the other way. Then the same is tried
// with B. If either is not convertible, tensors are compared as stored, and their norms must be of the same kind. If
// A's plan has a rotation, both are compared in the coordinates of B (up_to_rotation.h), and other forms are not
// tried.
EntryComparison compare_entries(const LazyState& a, const streams::Plan& plan_a, const LazyState& b,
                                const streams::Plan& plan_b);
// Compares readers (reader_check.h). If `of` is not null, it gets each tensor's deviation.
Deviation compare_streams(const LazyState& a, const streams::Plan& plan_a, const LazyState& b,
                          const streams::Plan& plan_b, std::map<std::string, double>* of = nullptr);
// Both at once; readers only if entries are comparable. Throws if a mapped tensor is not finite.
StateComparison compare_states(const LazyState& a, const streams::Plan& plan_a, const LazyState& b,
                               const streams::Plan& plan_b);

// The findings about two files. They are equivalent if every entry and every output is.
struct Verification {
  std::string options;   // the options that differ between the two models, by name
  bool one_kind = true;  // false: they are models of two kinds (a GPT and a ViT), and nothing was compared
  EntryComparison entries;
  std::vector<Deviation> outputs = {};  // "logits of random inputs", "readers of random rows"
  bool may_be_rotated = false;          // by forms and norms, one could be a rotation of the other
  std::string rotation = {};  // the line about the rotation, if entries were compared up to one (up_to_rotation.h)

  // undecided: entries differ, and a rotation of the stream may connect the two.
  Judgement judgement() const;
  bool equivalent() const { return judgement().equivalent(); }
  std::string sentence() const { return judgement().sentence(); }
};

// Compares entries, then logits of random inputs that contain every id and position, then logits of `more`. Models run
// on `device`, entries are compared on the CPU. up_to_rotation: compares entries by compare_up_to_rotation(). Throws if
// a description is missing or does not belong to its file.
Verification verify_models(const training::OpenModelFile& a, const training::OpenModelFile& b,
                           const std::vector<std::pair<std::string, Tensor>>& more = {}, Device device = kCpu,
                           bool up_to_rotation = false);
// Compares entries, then the readers' outputs for random rows; also options, if both files have a description. Throws
// like check_described(), check_plan() and check_values().
Verification verify_streams(const training::OpenModelFile& a, const streams::Plan& plan_a,
                            const training::OpenModelFile& b, const streams::Plan& plan_b, bool up_to_rotation = false);
// Throws if the file's description, if it has one, contradicts the plan in the form of its stream, its width or its
// eps.
void check_described(const Metadata& description, const streams::Plan& plan);

inline constexpr uint64_t kControls = 2;   // copies of each side with every tensor moved by an ulp
inline constexpr int64_t kRandomRows = 4;  // number of random inputs, unless ModelOptions::inputs() needs more or fewer
// "logits of random inputs"; if the context is longer than ModelOptions::shown_context(), with the number of positions.
std::string random_inputs_text(const training::ModelOptions& options);

}  // namespace isonorm::equivalence
