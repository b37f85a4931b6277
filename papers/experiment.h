// Experiments: a claim of a paper, a measurement small enough for a laptop, and the figure that would have refuted the
// claim. `isonorm experiment NAME` runs one; a new one is a function in papers/ and a row in
// experiment.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "reports/document.h"

namespace isonorm::papers {

struct ExperimentOptions {
  uint64_t seed = 1;
  std::string data = {};  // for those that train; empty: data made from the seed
  int seeds = 0;          // for those that repeat over many; 0: as many as they need
  bool full = false;      // for those that have a larger scale: minutes instead of seconds
  Device device = kCpu;   // where it is computed
  // Told now and then where the work is, by one thread at a time; false stops it.
  std::function<bool(const std::string&)> progress = {};
  // Asked between two steps, by any thread; true stops the work.
  std::function<bool()> stop = {};

  // To be called between two steps, and where there is news. Both throw Stopped, which Experiment::run() catches.
  struct Stopped {};
  void go_on() const {
    if (stop && stop()) throw Stopped();
  }
  void tell(const std::string& where) const {
    if (progress && !progress(where)) throw Stopped();
  }
  // train(i) for every i below `count`, which threads share, and tells how many of them are done.
  void train_all(size_t count, const std::function<void(size_t)>& train) const;
};

struct ExperimentResult {
  bool confirmed = false;
  bool undecided = false;     // too little was seen either way: neither confirmed nor refuted
  bool interrupted = false;   // as run() says: `progress` or `stop` stopped it, and nothing is concluded
  std::string measured = {};  // what was found, in one sentence with the deciding figures
  std::string refuted = {};   // what would have refuted the claim
  std::vector<reports::TextTable> tables = {};
  std::vector<reports::Figure> figures = {};
  std::string data_sha256 = {};  // where it read data
};

// What of ExperimentOptions it looks at (data, seeds, full; without kOnDevice it computes on the CPU), and whether the tests leave it out: where a verdict is one of
// this machine's speed, or takes a minute.
enum ExperimentTrait : unsigned { kReadsData = 1, kTakesSeeds = 2, kTakesFull = 4, kOnDevice = 8, kUntested = 16 };

struct Experiment {
  const char* name;
  const char* claim;  // one sentence
  const char* source;
  ExperimentResult (*measure)(const ExperimentOptions& options);
  unsigned traits = 0;  // of ExperimentTrait

  ExperimentResult run(const ExperimentOptions& options) const;

  bool has(ExperimentTrait t) const { return (traits & t) != 0; }
};

// All of them.
std::span<const Experiment> experiments();
// The one of that name. Throws listing the names.
const Experiment& find_experiment(std::string_view name);

// What it says, with every table and picture.
reports::Document document_of(const Experiment& experiment, const ExperimentOptions& options,
                              const ExperimentResult& result, double seconds);

}  // namespace isonorm::papers
