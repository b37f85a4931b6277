// E16. Figures 6 and 7 of the paper show losses that coincide; a proof on the same batches says how exactly.
#include <filesystem>

#include "core/printed.h"
#include "equivalence/text/proof_text.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "training/model_row.h"

namespace isonorm::papers {

using namespace equivalence;
namespace {

training::ModelOptions small_model(const training::ModelRow& row) {
  training::ModelOptions model(row, {.width = 32, .depth = 2, .heads = 4});
  model.fit({{"context", 32}, {"head_bias", true}});
  return model;
}

// options.data: a folder of images trains a ViT, anything else a GPT on text.
training::TrainingOptions small_training(const ExperimentOptions& options) {
  std::error_code ignored;
  training::TrainingOptions o;
  o.model = small_model(std::filesystem::is_directory(options.data, ignored) ? training::kVit : training::kGpt);
  o.data = options.data;
  o.letters = 0;
  o.seed = options.seed;
  o.device = options.device;
  o.batch = 8, o.lr = 5e-3, o.warmup = 10, o.steps = 100;
  return o;
}

// Runs a proof and reports it as an experiment.
ExperimentResult proved(const training::TrainingOptions& training, const ExperimentOptions& options) {
  const auto progress = [&](const StepInfo& info) {
    return !options.progress ||
           options.progress(text(name_of(info.phase), " ", info.step, "/", info.steps, "  deviation ",
                                 scientific(info.deviation), " (controls ", scientific(info.control_deviation), ")"));
  };
  const ProofResult proof = prove({.training = training}, progress);
  ExperimentResult r;
  if (proof.interrupted) throw ExperimentOptions::Stopped();
  r.confirmed = proof.equivalent();
  r.undecided = proof.verdict == Verdict::undecided;
  reports::Document d = document_of(proof);
  r.measured = closing(d);
  r.refuted = text(
      "one step at which loss, gradient or weights of a form exceed 30 times the controls' deviation, or by a negative "
      "control that stays below ",
      separation(proof.options.training.dtype), " times the controls' deviation");
  r.tables = std::move(d.tables);
  r.figures = std::move(d.figures);
  if (!training.data.empty()) r.data_sha256 = proof.manifest.data_sha256;
  return r;
}

}  // namespace

ExperimentResult trajectories(const ExperimentOptions& options) { return proved(small_training(options), options); }

// Figure 6, a ViT on Fashion-MNIST, and figure 7, a GPT on generated text.
ExperimentResult paper_curves(const ExperimentOptions& options) {
  ExperimentResult r;
  r.confirmed = true;
  for (const training::ModelRow* model : {&training::kVit, &training::kGpt}) {
    training::TrainingOptions o = small_training(options);
    o.model = small_model(*model), o.data = "";
    if (options.full) {
      nn::TransformerOptions& t = o.model.transformer();
      t.width = 96, t.depth = 4, t.heads = 6, o.batch = 32, o.steps = 600;
    }
    ExperimentResult one = proved(o, options);
    r.confirmed = r.confirmed && one.confirmed;
    r.undecided = r.undecided || one.undecided;
    r.measured += text(r.measured.empty() ? "" : " ", model->title, ": ", one.measured);
    r.refuted = one.refuted;
    for (reports::TextTable& table : one.tables) {
      table.heading = text(model->title, ": ", table.heading);
      r.tables.push_back(std::move(table));
    }
    for (reports::Figure& figure : one.figures) {
      figure.name = text(model->name, "-", figure.name);
      figure.heading = text(model->title, ": ", figure.heading);
      r.figures.push_back(std::move(figure));
    }
  }
  return r;
}

}  // namespace isonorm::papers
