// Are two checkpoints one function? Every entry is compared in one form (compare_entries.h), and then both run in f64
// on the same inputs; what rounding explains there is measured, not guessed: it is what moving every weight by one unit
// in the last place of its own format does.
#pragma once

#include <map>

#include "equivalence/convert/convert.h"
#include "equivalence/convert/convertible.h"
#include "equivalence/verify/compare_entries.h"
#include "streams/stream.h"
#include "training/model_file.h"

namespace isonorm::equivalence {

// A largest relative deviation, and what one ulp does to either of the two. Rounding moves a weight by half a unit
// at most, the control by a whole one; both run in f64 and nothing trains, so four times the control leaves room enough
// (0.1 to 0.6 of it were seen).
struct Agreement {
  double deviation = 0;
  double control = 0;
  NumberFormat format = DType::f64;  // the coarsest format of a weight that the control moved by an ulp
  double bound() const;              // the largest deviation that rounding explains (criterion.h)
  bool same() const;                 // false for NaN
};

// The conversion of a described model: the new options, a state with every parameter that they ask for, and its
// description.
struct ModelConversion {
  Conversion conversion;
  Metadata description;
};

struct ModelConversionOptions {
  std::optional<NumberFormat> dtype;  // of the result's tensors; as before where not set
  bool inference = false;             // leave out dropout on branches, which mapped weights cannot follow in training
};

// What a conversion of a described model is to do.
struct ModelPlan {
  streams::Placement layout, result;  // of the model and of what it becomes
  Metadata description;               // of that
  TensorMap outline;                  // of its tensors, in their order
};
// Throws where the tensors are not those of the described model, or where dropout acts on its branches and `inference`,
// which leaves it out, is not asked for.
ModelPlan plan_conversion(const Metadata& description, const TensorMap& outline, streams::Form to, bool inference);

// As convert(), for a file with a description. Raw weights of whatever form are the Pre-LN model's.
// Throws as convert() does, and where the file's tensors are not those of the model that it describes, or dropout acts
// on its branches.
ModelConversion convert_model(const training::ModelFile& file, streams::Form to,
                              const ModelConversionOptions& options = {});

// The logits of a described model in f64 with this state.
Tensor logits(const Metadata& description, const TensorMap& state, const Tensor& inputs);

// max |logits_a - logits_b| / max |logits_a| on the same inputs, in blocks of rows; the control are two copies of
// each with every tensor moved by an ulp of its dtype, or of its partner's in the other where that is coarser, and the
// larger counts: the verdict does not ask which comes first. The six models run one after another: one in f64 is in memory,
// and of two the logits of some rows, as many as the model has numbers. Throws where the models do not take the same inputs
// or give logits of different shapes.
Agreement compare_models(const Metadata& description_a, const LazyState& a, const Metadata& description_b,
                         const LazyState& b, const Tensor& inputs);

// What was found about two states: every entry, and what the readers see of random rows.
struct StateComparison {
  EntryComparison entries;
  Agreement readers;
  std::map<std::string, double> deviations = {};  // of each tensor, in what the readers see
};

// The states need not fit into memory: pieces of both are compared (pieces.h), and of each state the tensors of one unit are
// there. Each of these throws where a state does not fit its layout.
//
// Entries (compare_entries.h). Where no rule holds, A is converted to each form with the dtypes that it has, and what that
// gives counts as exact, but that one value of a slice may have been rounded the other way; then B. Where one of the two is not
// convertible, tensors are compared as they are stored, and their norms must be of one kind. Where A's layout has a rotation,
// both are compared in the coordinates of B (up_to_rotation.h), and by no other form.
EntryComparison compare_entries(const LazyState& a, const streams::Placement& layout_a, const LazyState& b,
                                const streams::Placement& layout_b);
// Readers (reader_check.h); where `of` is not null it gets each tensor's deviation.
Agreement compare_streams(const LazyState& a, const streams::Placement& layout_a, const LazyState& b,
                          const streams::Placement& layout_b, std::map<std::string, double>* of = nullptr);
// Both at once; readers, where entries are comparable. Throws where what is mapped is not finite.
StateComparison compare_states(const LazyState& a, const streams::Placement& layout_a, const LazyState& b,
                               const streams::Placement& layout_b);

// What was found about two files, and the one verdict: the same where every entry is, and every output too.
struct Verification {
  std::string options;   // in which the two models differ, by name
  bool one_kind = true;  // false: they are models of two rows (a GPT and a ViT), and nothing was compared
  EntryComparison entries;
  std::vector<std::pair<std::string, Agreement>> outputs = {};  // with what they are of
  bool may_be_rotated = false;  // by their forms and norms one could be a rotation of the other
  std::string rotation = {};    // up to which entries were compared (up_to_rotation.h)

  bool same() const;
  std::string sentence() const;  // "Same: ...", "Different: ...", "Not shown: ...", and why
};

// Entries, then logits of random inputs in which every id and position occurs, then those of `more`: models run on
// `device`, entries are compared on the CPU.
// up_to_rotation: entries as compare_up_to_rotation() does. Throws where a description is missing or is not of its file.
Verification verify_models(const training::OpenModelFile& a, const training::OpenModelFile& b,
                           const std::vector<std::pair<std::string, Tensor>>& more = {}, Device device = kCpu,
                           bool up_to_rotation = false);
// Entries, then what the readers see of random rows; options too, where both files have a description. Throws as
// check_described, check_layout and check_values.
Verification verify_streams(const training::OpenModelFile& a, const streams::Placement& layout_a,
                            const training::OpenModelFile& b, const streams::Placement& layout_b,
                            bool up_to_rotation = false);
// Throws where the description that a file has, if any, contradicts the layout: in the form of its stream, its width or
// its eps.
void check_described(const Metadata& description, const streams::Placement& layout);

inline constexpr uint64_t kControls = 2;   // copies of each side with every tensor moved by an ulp
inline constexpr int64_t kRandomRows = 4;  // of random inputs, unless ModelOptions::inputs() needs more or fewer
// "logits of random inputs"; if the context is longer than ModelOptions::shown_context(), with the number of positions.
std::string random_inputs_text(const training::ModelOptions& options);

}  // namespace isonorm::equivalence
