// The verdict on two files: entries first, then outputs (verify.h).
#include <set>

#include "autograd/ops/create.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "equivalence/convert/state.h"
#include "equivalence/verify/up_to_rotation.h"
#include "equivalence/verify/verify.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using Relation = EntryComparison::Relation;

// Throws if the file does not hold the tensors of the model that it describes.
void check_of_model(const char* which, const TensorMap& expected, const TensorMap& state) {
  for (const auto& [name, tensor] : expected) {
    const Tensor* found = state.find(name);
    check(found != nullptr, "the ", which, " file describes a model with a tensor '", name, "' of shape ",
          tensor.shape(), ", which it does not hold");
    check(found->shape() == tensor.shape(), "the ", which, " file describes a model whose '", name, "' has shape ",
          tensor.shape(), ", and holds it with shape ", found->shape());
  }
}

// A model's plan. It is empty if the model has none (its norms belong to more than one stream, a layer scale breaks
// the form). Then every tensor is compared to the last bit.
streams::Plan plan_or_none(const nn::Module& model, const training::ModelOptions& options) {
  try {
    return streams::plan_of(model);
  } catch (const Error&) {
    streams::Plan none;
    none.form = streams::Form::none, none.width = options.transformer().width;
    return none;
  }
}

bool convertible(const TensorMap& outline, const streams::Plan& plan) {
  try {
    check_form(plan), check_plan(plan, outline);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The options that differ between two models, except options that act in training alone. If forms_too is false, the
// forms of the stream are coordinates of the same function; then also without the forms and the options that folding
// changes.
std::string different_options(const Metadata& a, const Metadata& b, bool forms_too) {
  std::set<std::string> free;
  if (!forms_too)
    free.insert({"model.form", "model.storage", "model.affine", "model.norm_bias", "model.bias", "model.qkv_bias",
                 "model.tied", "model.head_bias", "model.layer_scale", "model.centre_readers", "model.folded"});
  ShortList list;
  for (const auto& [key, value] : a) {
    const auto at = b.find(key);
    if (free.contains(key) || (at != b.end() && at->second == value) || training::is_training_only(key)) continue;
    list.add(key.substr(key.find('.') + 1), " ", value, " and ", at == b.end() ? "none" : at->second);
  }
  return list.str();
}

// True if both models take the same inputs.
bool same_inputs(const Metadata& a, const Metadata& b) {
  for (const char* key : {"model.vocab", "model.context", "model.image", "model.channels", "model.patch"})
    if (a.contains(key) && a.at(key) != b.at(key)) return false;
  return true;
}

std::string with_article(std::string_view title) {
  return text(std::string_view("AEIOU").find(title[0]) != std::string_view::npos ? "an " : "a ", title);
}

const char* relation_text(const EntryComparison& e) {
  switch (e.relation) {
    case Relation::identical:
      return "Every tensor is equal to the last bit.";
    case Relation::second_rounded:
      return "In the coordinates of the Pre-LN model every entry of the second is the first's, rounded once.";
    case Relation::first_rounded:
      return "In the coordinates of the Pre-LN model every entry of the first is the second's, rounded once.";
    case Relation::both_rounded:
      return "In the coordinates of the Pre-LN model every entry agrees as far as one rounding of each explains.";
    default:
      return "";
  }
}

}  // namespace

Judgement Verification::judgement() const {
  Judgement j;
  j.verdict = Verdict::different;
  if (entries.largest) j.first_difference = {.quantity = "tensor", .place = *entries.largest};
  if (!one_kind) {
    j.reason = text("they are different models: ", entries.reason, ".");
    return j;
  }
  std::string unlike;
  for (const Deviation& output : outputs)
    if (!output.explained()) unlike += text(unlike.empty() ? "" : " and ", output.what);
  const bool differ = entries.comparable && entries.finite && !entries.equivalent();
  if (options.empty() && entries.equivalent() && unlike.empty()) {
    const std::string how = entries.relation == Relation::through_a_form
                                ? text("Every entry of one is the other's after a conversion to ",
                                       name_of(entries.between), ", rounded there and once more.")
                                : relation_text(entries);
    j.verdict = Verdict::equivalent;
    j.reason =
        text("the two are one function. ",
             rotation.empty() ? how : "Up to a rotation of the stream every entry agrees as far as rounding explains.",
             entries.blind ? " Except entries that no function sees: in the bias of attention's keys." : "");
  } else if (may_be_rotated && differ && unlike.empty() && options.empty()) {
    j.verdict = Verdict::undecided;
    j.reason = text("the entries differ", rotation.empty() ? "" : " up to a rotation, too", ": ", entries.reason, ".",
                    rotation.empty() ? " A symmetry may connect the two; try --up-to rotation." : "");
  } else {
    if (entries.equivalent() && unlike.empty())
      j.reason = "the two are not one function.";
    else if (entries.equivalent())
      j.reason = text("every entry agrees, but not the ", unlike, ".");
    else if (!unlike.empty() || outputs.empty())
      j.reason = text("the two are not one function: ", entries.reason, ".");
    else
      j.reason = text("no ", outputs.front().what, " show it, but the entries differ: ", entries.reason,
                      entries.other_eps ? ". These outputs are too coarse to show it."
                                        : ". Units in another order would do that, and so would a change that these "
                                          "outputs are too coarse to show.");
    if (!options.empty()) j.reason += text(" Their options differ: ", options, ".");
  }
  return j;
}

Verification verify_models(const training::OpenModelFile& a, const training::OpenModelFile& b,
                           const std::vector<std::pair<std::string, Tensor>>& more, Device device,
                           bool up_to_rotation) {
  const training::ModelOptions first(a.description), second(b.description);
  training::check_carried(first.transformer()), training::check_carried(second.transformer());
  first.check_size(a.state.outline), second.check_size(b.state.outline);
  Verification v;
  if (&first.row() != &second.row()) {
    v.one_kind = false;
    v.entries.reason =
        text("the first is ", with_article(first.row().title), ", the second ", with_article(second.row().title));
    return v;
  }
  const std::unique_ptr<nn::Module> model_a = first.build(), model_b = second.build();
  check_of_model("first", model_a->state_dict(), a.state.outline);
  check_of_model("second", model_b->state_dict(), b.state.outline);
  const streams::Plan plan_a = plan_or_none(*model_a, first), plan_b = plan_or_none(*model_b, second);
  v.may_be_rotated = not_rotatable(plan_a, plan_b).empty();
  if (up_to_rotation) {
    RotationComparison c = compare_up_to_rotation(a.state, plan_a, b.state, plan_b, false);
    v.entries = std::move(c.entries), v.rotation = std::move(c.found);
  } else {
    v.entries = compare_entries(a.state, plan_a, b.state, plan_b);
  }
  const bool forms = v.may_be_rotated || (convertible(a.state.outline, plan_a) && convertible(b.state.outline, plan_b));
  // Options of the models, because one file may leave out a default that another file has.
  v.options = different_options(training::describe(*model_a), training::describe(*model_b), !forms);
  if (!v.entries.comparable || !same_inputs(first.description(), second.description())) return v;
  const auto compare = [&](const std::string& what, const Tensor& inputs) {
    v.outputs.push_back(compare_models(a.description, a.state, b.description, b.state, to(inputs, device), what));
  };
  compare(random_inputs_text(first), first.inputs(kRandomRows, 1));
  for (const auto& [what, inputs] : more) compare(what, inputs);
  return v;
}

void check_described(const Metadata& description, const streams::Plan& plan) {
  if (description.empty()) return;
  const training::ModelOptions options(description);
  const nn::TransformerOptions& t = options.transformer();
  training::check_carried(t);
  const streams::Form form = training::stored_form(options);
  check(form == plan.form, "spec: the file says that its tensors are in the form ", name_of(form), ", not ",
        name_of(plan.form));
  check(t.width == plan.width, "spec: the file says that its stream has width ", t.width, ", not ", plan.width);
  for (const streams::Plan::Norm& n : plan.norms)
    check(n.eps == t.eps, "spec: the file says that its eps is ", number_text(t.eps), ", norm '", n.name, "' has ",
          number_text(n.eps));
}

Verification verify_streams(const training::OpenModelFile& a, const streams::Plan& plan_a,
                            const training::OpenModelFile& b, const streams::Plan& plan_b, bool up_to_rotation) {
  check_described(a.description, plan_a);
  check_described(b.description, plan_b);
  Verification v;
  if (!a.description.empty() && !b.description.empty())
    v.options = different_options(training::ModelOptions(a.description).description(),
                                  training::ModelOptions(b.description).description(), false);
  v.may_be_rotated = not_rotatable(plan_a, plan_b).empty();
  const LazyState of_a = with_gains(a.state, plan_a), of_b = with_gains(b.state, plan_b);
  RotationComparison c;
  if (up_to_rotation)
    c = compare_up_to_rotation(of_a, plan_a, of_b, plan_b, true);
  else
    static_cast<StateComparison&>(c) = compare_states(of_a, plan_a, of_b, plan_b);
  v.entries = std::move(c.entries), v.rotation = std::move(c.found);
  if (v.entries.comparable && v.entries.finite) v.outputs.push_back(c.readers);
  return v;
}

}  // namespace isonorm::equivalence
