// Measures the directions that a model's loss cannot see: the directions of parameters that get no gradient, how far
// the mean of a zero-mean stream drifts in f32 and bf16, and how readers with zero row sums change that.
#pragma once

#include <string>
#include <vector>

#include "core/tensor_map.h"
#include "equivalence/judge/judgement.h"
#include "training/training_options.h"
#include "training/records/manifest.h"

namespace isonorm::equivalence {

struct AuditResult {
  // Invisible directions of a parameter: the mean of a writer along the stream (F3), the mean of a reader after a norm
  // without gain (F4), the biases of attention keys. A vector or matrix also has the mean along another axis if its
  // gradient is zero up to rounding. Examples are the head's mean over its outputs, which softmax ignores, and means
  // that a norm inside a branch removes.
  struct Row {
    std::string name;
    Dims shape;
    std::string invisible;                // "mean along dimension 0 and 1", "rows 64 to 127"; empty: none
    int64_t numbers = 0, directions = 0;  // how many numbers, and how many directions without gradient
    double gradient = 0;                  // |projection of the gradient on these directions| / |gradient|
    double bound = 0;                     // the rounding error of that: 64 d eps
  };
  std::vector<Row> rows;

  // Largest |mean| / rms over the rows of the rms_norm stream with recentred weights, at each norm.
  struct Drift {
    std::string norm;
    double f64, f32, bf16;
  };
  std::vector<Drift> drift;

  // Largest error of the output relative to its largest entry, with the stored readers and with zero row sums: in
  // f64, if the stream is shifted by the largest drift of bf16; and of the whole model in bf16.
  double shift = 0, shift_error = 0, shift_error_centred = 0;
  double bf16_error = 0, bf16_error_centred = 0;

  training::TrainingOptions options;
  training::Manifest manifest;
  double seconds = 0;
  // equivalent: no invisible direction has a gradient. undecided: no writer has a gradient at all. Else different.
  Verdict verdict = Verdict::different;
  bool measured = false;      // some writer has a gradient
  int64_t shown_context = 0;  // ids per example: the context, or fewer if a batch would have over kMostTokens tokens

  int64_t numbers() const;     // of all parameters
  int64_t directions() const;  // invisible ones
};

// Audits the Pre-LN model that `options` describe, in f64, on random ids or images of the model's sizes. weights: raw
// weights in any dtype; by default the initial ones. Throws if the weights do not fit, or if the model's first branch
// reads bare embeddings.
AuditResult audit(const training::TrainingOptions& options, const TensorMap& weights = {});

reports::Document document_of(const AuditResult& r);
// The JSON of the document.
const reports::Description& audit_description();

}  // namespace isonorm::equivalence
