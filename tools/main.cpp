// The program `isonorm`. Every failure is one line on stderr, "isonorm prove: what went wrong", and an exit code of its
// own (ending.h).
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <vector>

#include "core/error.h"
#include "core/kernels/kernel.h"
#include "core/system/foreign_text.h"
#include "distributed/world.h"
#include "tools/limits.h"
#include "tools/suggestion.h"
#include "tools/verb.h"

using namespace isonorm;
using namespace isonorm::tools;

namespace {

// `code`, where what was printed could be.
int finish(const std::string& who, int code) {
  std::cout.flush();  // CLI11 prints there
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout))
    return fail(who, "standard output cannot be written", kIo);
  return code;
}

// "prove, train or explain".
std::string listed(const std::vector<Verb>& verbs) {
  std::string names;
  for (size_t i = 0; i < verbs.size(); ++i)
    names += text(i == 0 ? "" : i + 1 == verbs.size() ? " or " : ", ", verbs[i].command->get_name());
  return names;
}

std::vector<std::string> names_of(const std::vector<Verb>& verbs) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs) names.push_back(verb.command->get_name());
  return names;
}

// What the parser could make nothing of, in the order of the command line (CLI11's own message has it backwards).
std::string not_expected(const CLI::App& app) {
  std::string words;
  for (const std::string& word : app.remaining(true)) words += text(" ", printable(word, 80));
  std::vector<std::string> options;
  for (const CLI::App* verb : app.get_subcommands())
    for (const std::string& word : words_of(*verb)) options.push_back(word);
  for (const std::string& word : app.remaining(true))
    if (const std::string hint = meant(word.substr(0, word.find('=')), options); !hint.empty()) words += hint;
  return text("not expected:", words);
}

int run(const Verb& verb, const std::string& who) {
  try {
    isa();  // where ISONORM_ISA is wrong this says so before any work
    if (distributed::one_of_several() && verb.command->get_name() != "train")
      throw UsageError("MPI has started it several times, which is for isonorm train");
    return finish(who, verb.run());
  } catch (const std::exception& e) {
    distributed::wait_to_tell(e);
    const int code = fail(who);
    distributed::end_all(code);
    return code;
  } catch (...) {
    return fail(who);
  }
}

int program(int argc, char** argv) {
  CLI::App app("Pre-LN, Pre-RMSNorm and Pre-CRMSNorm Transformers are one model: train them and see.", "isonorm");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 as expected, 1 not equivalent, 2 usage, 3 bad input, 4 input/output, 5 undecided, 6 a "
      "training's numbers are no longer finite, 70 no memory or threads, 130 interrupted.");
  const std::vector<Verb> verbs = {
      add_prove(app),  add_train(app),    add_explain(app), add_table(app),      add_experiment(app), add_convert(app),
      add_verify(app), add_hooks(app),    add_spec(app),    add_compare(app),    add_perturb(app),    add_audit(app),
      add_rotate(app), add_import(app),   add_export(app),  add_tokenize(app),   add_sample(app),     add_info(app),
      add_plot(app),   add_evaluate(app), add_lr_find(app), add_completion(app), add_man(app)};
  for (const Verb& verb : verbs) verb.command->set_version_flag("--version", kVersion);

  std::string who = "isonorm";
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // --help, --version
      app.exit(e);
      return finish(who, kOk);
    }
    std::string what = dynamic_cast<const CLI::ExtrasError*>(&e) ? not_expected(app) : e.what();
    if (argc < 2) what = text("a verb is missing: ", listed(verbs));
    for (const Verb& verb : verbs)
      if (verb.command->parsed()) who = text("isonorm ", verb.command->get_name());
    if (argc > 1 && argv[1][0] != '-' && who == "isonorm")
      what =
          text("there is no verb ", Shown{argv[1], '"'}, ", expected ", listed(verbs), meant(argv[1], names_of(verbs)));
    return fail(who, text(what, "; see ", who, " --help"), kUsage);
  }
  for (const Verb& verb : verbs)
    if (verb.command->parsed()) return run(verb, text("isonorm ", verb.command->get_name()));
  return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  libraries_have_started();
  guard_the_end();
  int code = kInternal;
  try {
    code = program(argc, argv);
  } catch (...) {
    code = fail("isonorm");
  }
  return regular_end(code);
}
