// What a model's loss cannot see, measured: which directions of which parameters get no gradient, how far the mean of a
// zero-mean stream drifts in f32 and bf16, and what zero-row-sum readers change about it.
#pragma once

#include <string>
#include <vector>

#include "core/tensor_map.h"
#include "training/training_options.h"
#include "training/records/manifest.h"

namespace isonorm::equivalence {

struct AuditResult {
  // Invisible directions of a parameter: the mean of a writer along the stream (F3), that of a reader behind a norm
  // without gain (F4), the biases of attention keys. Of a vector or matrix also the mean along another axis, where its
  // gradient is zero to rounding: of the head over its outputs, which softmax does not see; of what a norm inside of a
  // branch reads.
  struct Row {
    std::string name;
    Dims shape;
    std::string invisible;                // "mean along dimension 0 and 1", "rows 64 to 127"; empty: none
    int64_t numbers = 0, directions = 0;  // how many numbers, how many of them directions without gradient
    double gradient = 0;                  // |projection of the gradient on those directions| / |gradient|
    double bound = 0;                     // what rounding explains: 64 d eps
  };
  std::vector<Row> rows;

  // Largest |mean| / rms over the rows of the rms_norm stream with recentred weights, as each norm reads it.
  struct Drift {
    std::string norm;
    double f64, f32, bf16;
  };
  std::vector<Drift> drift;

  // Largest error of the output relative to its largest entry, with readers as they are and with zero row sums:
  // of a shift of the stream by the largest drift in bf16, in f64; and of the whole model in bf16.
  double shift = 0, shift_error = 0, shift_error_centred = 0;
  double bf16_error = 0, bf16_error_centred = 0;

  training::TrainingOptions options;
  training::Manifest manifest;
  double seconds = 0;
  bool as_expected = false;  // no invisible direction has a gradient
  int64_t shown_context =
      0;  // ids in an example: the context, or fewer if `batch` rows that long have over kMostTokens tokens

  int64_t numbers() const;     // of all parameters
  int64_t directions() const;  // invisible ones
};

// Audits the Pre-LN model that `options` describe, in f64, on made inputs (random ids or images), with initial or given
// weights (raw ones, in any dtype). Images are of `shape`, by default Fashion-MNIST's; gpt's alphabet is
// options.vocab. Throws where the weights do not fit.
AuditResult audit(const training::TrainingOptions& options, const TensorMap& weights = {});

reports::Document document_of(const AuditResult& r);

}  // namespace isonorm::equivalence
