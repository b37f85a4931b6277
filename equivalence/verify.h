// Are two checkpoints one function? Both models run in f64 on the same inputs; what rounding explains is measured, not
// guessed: it is what moving every weight by one unit in the last place does.
#pragma once

#include <map>

#include "equivalence/convert.h"
#include "equivalence/convertible.h"
#include "equivalence/model_file.h"

namespace isonorm::equivalence {

// A largest relative deviation, and what one ulp does to the first of the two. Rounding moves a weight by half a unit
// at most, the control by a whole one; both run in f64 and nothing trains, so four times the control leaves room enough
// (0.1 to 0.6 of it were seen).
struct Agreement {
  double deviation = 0;
  double control = 0;
  DType dtype = DType::f64;                           // whose unit in the last place the control moved the weights by
  double bound() const;                               // of a deviation that rounding explains (criterion.h)
  bool same() const { return deviation <= bound(); }  // false for NaN
};

// The conversion of a described model: the new options, a state with every parameter that they ask for, and its
// description.
struct ModelConversion {
  Conversion conversion;
  Metadata description;
};

struct ModelConversionOptions {
  std::optional<DType> dtype;  // of the result's tensors; as before where not set
  bool inference = false;      // leave out dropout on branches, which mapped weights cannot follow in training
};

// As convert(), for a file with a description. Raw weights of whatever form are the Pre-LN model's.
// Throws as convert() does, and where the file's tensors are not those of the model that it describes, or dropout acts
// on its branches.
ModelConversion convert_model(const ModelFile& file, nn::StreamForm to, const ModelConversionOptions& options = {});

// The logits of a described model in f64 with this state.
Tensor logits(const Metadata& description, const TensorMap& state, const Tensor& inputs);

// max |logits_a - logits_b| / max |logits_a| on the same inputs, with a control of two moved copies of `a` in `dtype`.
// Throws where the models do not take the same inputs or give logits of different shapes.
Agreement compare_models(const Metadata& description_a, const TensorMap& a, const Metadata& description_b,
                         const TensorMap& b, const Tensor& inputs, DType dtype);

// The same seen from the stream (stream_check.h); where `of` is not null it gets each tensor's deviation.
Agreement compare_streams(const TensorMap& a, const Layout& layout_a, const TensorMap& b, const Layout& layout_b,
                          DType dtype, std::map<std::string, double>* of = nullptr);

// The coarsest floating dtype of a state; f64 where it has none.
DType coarsest(const TensorMap& state);

}  // namespace isonorm::equivalence
