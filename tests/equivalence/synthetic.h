// A synthetic proof with the shape of a real one: deviations grow like rounding errors, and negative controls deviate
// at once.
#pragma once

#include <cmath>
#include <cstdint>

#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/prove.h"
#include "streams/stream.h"
#include "training/records/training_result.h"

namespace isonorm::equivalence {

// A number in [0, 1) that depends only on (run, step).
inline double scatter(uint64_t run, uint64_t step) {
  uint64_t z = run * 0x9e3779b97f4a7c15u + step * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 30)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

inline double synthetic_loss(int step) {
  return 0.45 + 1.95 * std::exp(-step / 35.0) + 0.08 * (scatter(99, step) - 0.5);
}

// Deviations by rounding: `level` at step 0, growing tenfold within 100 steps.
inline Deviations rounding(uint64_t run, int steps, double level) {
  Deviations d;
  for (int t = 0; t < steps; ++t) {
    const double growth = std::pow(10.0, t / 100.0);
    d.loss.push_back(level * growth * (0.05 + scatter(3 * run, t)));
    d.gradient.push_back(8 * level * growth * (0.3 + scatter(3 * run + 1, t)));
    d.weight.push_back(4 * level * growth * (0.3 + scatter(3 * run + 2, t)));
  }
  return d;
}

// A negative control: the same function at step 0, with other gradients.
inline Deviations leaving(int steps, double level) {
  Deviations d;
  for (int t = 0; t < steps; ++t) {
    d.loss.push_back(t == 0 ? 2e-16 : level * t * t / 400);
    d.gradient.push_back(0.2 + 0.02 * t);
    d.weight.push_back(level * (t + 1) / 20);
  }
  return d;
}

inline RunResult synthetic_run(const Variant& v, Verdict expected, Deviations d) {
  RunResult run;
  run.form = name_of(v.form);
  run.variant = &v;
  run.expected = expected;
  run.parameters = run.form.starts_with("crms") ? 205434 : 206794;
  for (size_t t = 0; t < d.loss.size(); ++t)
    run.losses.push_back(synthetic_loss(static_cast<int>(t)) * (1 + d.loss[t]));
  run.deviations = std::move(d);
  return run;
}

inline ProofResult synthetic_proof(int steps = 200) {
  const Variant& reference = raw_variant(streams::Form::layer_norm);
  ProofResult proof;
  proof.options.training.steps = steps;
  proof.manifest = manifest_of(proof.options);
  proof.manifest.data_sha256 = std::string(64, 'a');
  proof.test_count = 10000;
  proof.seconds = 152.4;
  proof.reference = synthetic_run(reference, Verdict::equivalent, {});
  for (int t = 0; t < steps; ++t) proof.reference.losses.push_back(synthetic_loss(t));
  proof.reference.accuracy = 0.8123;
  for (uint64_t c = 0; c < 4; ++c) {
    proof.controls.push_back(synthetic_run(reference, Verdict::equivalent, rounding(c, steps, 2e-16)));
    proof.controls.back().seed = c + 1;
    proof.controls.back().accuracy = 0.8123;
    proof.controls.back().differing_predictions = 0;
  }
  uint64_t id = 10;
  for (const char* name : {"b", "c2", "c5"}) {
    proof.runs.push_back(synthetic_run(variant(name), Verdict::equivalent, rounding(id++, steps, 3e-16)));
    proof.runs.back().accuracy = 0.8123;
    proof.runs.back().differing_predictions = 0;
  }
  proof.negative_reference = synthetic_run(reference, Verdict::equivalent, {});
  for (int t = 0; t < kNegativeSteps; ++t) proof.negative_reference.losses.push_back(synthetic_loss(t));
  std::vector<RunResult> short_controls;
  for (uint64_t c = 0; c < 4; ++c)
    short_controls.push_back(synthetic_run(reference, Verdict::equivalent, rounding(20 + c, kNegativeSteps, 2e-16)));
  for (auto [name, level] : {std::pair{"projected_once", 0.04}, std::pair{"compressed_plain", 0.11}}) {
    proof.runs.push_back(synthetic_run(variant(name), Verdict::different, leaving(kNegativeSteps, level)));
    proof.runs.back().control = running_maximum(short_controls);
  }
  conclude(proof);
  return proof;
}

// A training of 200 steps that was resumed after step 10.
inline training::TrainingResult synthetic_training() {
  training::TrainingResult t;
  t.form = "crms_norm";
  t.options.steps = 200;
  t.options.model.stream().form = streams::Form::crms_norm;
  t.manifest = manifest_of(t.options);
  t.manifest.command = "isonorm train --model vit --form crms_norm";
  t.manifest.data_sha256 = std::string(64, 'b');
  t.parameters = 1234;
  t.first_step = 11;
  for (int step = 10; step < 200; ++step)
    t.steps.push_back({.step = step + 1, .lr = 1e-3, .loss = synthetic_loss(step), .gradient_norm = 0.5});
  t.evaluations = {{100, 1.25, 500, 1000}, {200, 0.5, 871, 1000}};
  t.seconds = 12;
  return t;
}

}  // namespace isonorm::equivalence
