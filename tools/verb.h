// A verb of the program `isonorm`: its options on the command line, what runs after parsing, and what --json writes.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "equivalence/judge/judgement.h"
#include "reports/result.h"
#include "tools/ending.h"

namespace isonorm::tools {

// kOk if equivalent, kNotEquivalent if different, kUndecided.
constexpr int exit_code(equivalence::Verdict v) {
  using equivalence::Verdict;
  return v == Verdict::equivalent ? kOk : v == Verdict::different ? kNotEquivalent : kUndecided;
}

struct Verb {
  CLI::App* command;
  std::function<int()> run;                               // returns the exit code; may throw Error and UsageError
  std::vector<const reports::Description*> results = {};  // of --json
};

Verb add_prove(CLI::App& app);
Verb add_train(CLI::App& app);
Verb add_explain(CLI::App& app);
Verb add_table(CLI::App& app);
Verb add_experiment(CLI::App& app);
Verb add_convert(CLI::App& app);
Verb add_rotate(CLI::App& app);
Verb add_verify(CLI::App& app);
Verb add_hooks(CLI::App& app);
Verb add_spec(CLI::App& app);
Verb add_compare(CLI::App& app);
Verb add_perturb(CLI::App& app);
Verb add_audit(CLI::App& app);
Verb add_import(CLI::App& app);
Verb add_export(CLI::App& app);
Verb add_tokenize(CLI::App& app);
Verb add_sample(CLI::App& app);
Verb add_info(CLI::App& app);
Verb add_plot(CLI::App& app);
Verb add_evaluate(CLI::App& app);
Verb add_lr_find(CLI::App& app);
Verb add_completion(CLI::App& app);
Verb add_man(CLI::App& app, const std::vector<Verb>& verbs);  // `verbs`: all, when it runs

// "isonorm 0.1.0 (cde5b3a9)", with the commit where the build knew it; the build writes it.
extern const char* const kVersion;

}  // namespace isonorm::tools
