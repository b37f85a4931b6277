// Experiments: each has a claim of a paper, a measurement small enough for a laptop, and a condition that would refute
// the claim. `isonorm experiment NAME` runs one. A new experiment is a function in papers/, its name below and a row in
// experiment.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "reports/result.h"

namespace isonorm::papers {

struct ExperimentOptions {
  uint64_t seed = 1;
  std::string data = {};  // text file or image folder to read; empty: generated text or Fashion-MNIST
  int seeds = 0;          // number of repetitions, for experiments that take it; 0: the experiment's default
  bool full = false;      // the larger scale, if there is one: minutes instead of seconds
  Device device = kCpu;   // the device that computes
  // Called repeatedly with the progress, by one thread at a time. Returns false to stop.
  std::function<bool(const std::string&)> progress = {};
  // Called between two steps, by any thread. Returns true to stop.
  std::function<bool()> stop = {};

  // Experiments call these between two steps and when there is progress. Both throw Stopped, which Experiment::run()
  // catches.
  struct Stopped {};
  void go_on() const {
    if (stop && stop()) throw Stopped();
  }
  void tell(const std::string& where) const {
    if (progress && !progress(where)) throw Stopped();
  }
  // Calls train(i) for every i below `count`, spread over threads, and reports how many are done.
  void train_all(size_t count, const std::function<void(size_t)>& train) const;
};

struct ExperimentResult {
  bool confirmed = false;
  bool undecided = false;     // too little evidence either way: neither confirmed nor refuted
  bool interrupted = false;   // set by run(): `progress` or `stop` stopped it, and nothing is concluded
  std::string measured = {};  // the finding: one sentence with the deciding figures
  std::string refuted = {};   // the condition that would have refuted the claim
  std::vector<reports::TextTable> tables = {};
  std::vector<reports::Figure> figures = {};
  std::string data_sha256 = {};  // if it read data
};

// The members of ExperimentOptions that the experiment uses: data, seeds, full, device (without kOnDevice it runs on
// the CPU). kUntested: the tests skip it, because its verdict depends on the machine's speed or it takes a minute.
enum ExperimentTrait : unsigned { kReadsData = 1, kTakesSeeds = 2, kTakesFull = 4, kOnDevice = 8, kUntested = 16 };

using Measure = ExperimentResult(const ExperimentOptions& options);

struct Experiment {
  const char* name;
  const char* claim;  // one sentence
  const char* source;
  Measure* measure;
  unsigned traits = 0;  // ExperimentTrait, combined by |

  ExperimentResult run(const ExperimentOptions& options) const;

  bool has(ExperimentTrait t) const { return (traits & t) != 0; }
};

// The functions of the rows. Each is described where it is defined.
Measure invariance, trajectories, paper_curves, paper_speed, norm_cost, conversion, peri_ln_forms, olmo2_forms,
    hyper_connection_forms, qk_norm_forms, pointwise_forms, sharded_norms, tensor_parallel, zero_memory, controls,
    last_gradient, first_gradient, gradient_profile, stream_growth, collapse, bounded_update, stop_gradient, warm_up,
    zoo, perplexity, recurrent_norms, recurrent_centre, image_norms, translator_norms, precision;

// All experiments.
std::span<const Experiment> experiments();
// Finds the experiment with this name. If there is none, throws an error that lists the names.
const Experiment& find_experiment(std::string_view name);

// The report: claim, verdict, tables and figures.
reports::Document document_of(const Experiment& experiment, const ExperimentOptions& options,
                              const ExperimentResult& result, double seconds);
// The result as JSON.
const reports::Description& experiment_description();

}  // namespace isonorm::papers
