// The program `isonorm`. Every failure is one line on stderr, "isonorm prove: what went wrong", with its own exit code
// (ending.h).
#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "core/error.h"
#include "core/kernels/kernel.h"
#include "core/system/foreign_text.h"
#include "core/system/terminal.h"
#include "core/system/warning.h"
#include "distributed/world.h"
#include "tools/pipes.h"
#include "tools/help.h"
#include "tools/limits.h"
#include "tools/output.h"
#include "tools/verb.h"

using namespace isonorm;
using namespace isonorm::tools;

namespace {

constexpr size_t kHelpWidth = 80;  // without a terminal

// Flushes standard output and returns `code`. Throws as flush_output().
int finish(int code) {
  flush_output();
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

// The words that the parser did not expect, in the order of the command line (CLI11's own message reverses it).
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

// Runs `work`, which returns an exit code. Reports its error once, and ends all ranks started by MPI. If memory ran
// out, the message ends with `more`.
int report_errors(const std::string& who, const std::function<int()>& work, const char* more = "") {
  try {
    set_warning_handler([&who](const std::string& line) {
      if (!distributed::one_of_several() || distributed::world().rank() == 0) fail(who, line, kOk);
    });
    return finish(work());
  } catch (const std::exception& e) {
    const std::string rank = distributed::wait_to_tell(e);
    const int code = fail(who, rank, more);
    distributed::end_all(code);
    return code;
  } catch (...) {
    return fail(who, "", more);
  }
}

// Returns true in rank 0 and in a single process. Throws if the ranks were started with different commands, since one
// rank would then wait forever.
bool first_of_ranks(const std::string& asked) {
  if (!distributed::one_of_several()) return true;
  distributed::world().check_same(asked, "command");
  return distributed::world().rank() == 0;
}

// Advice for a command that trains: how to use less memory.
const char* less_memory(const Verb& verb) {
  const bool trains = verb.command->get_option_no_throw("--accumulate");
  return trains ? "; a smaller --batch or a larger --accumulate takes less" : "";
}

int run_verb(const Verb& verb) {
  isa();  // reports a wrong ISONORM_ISA before any work
  const std::string name = verb.command->get_name();
  first_of_ranks(name);
  if (distributed::one_of_several() && name != "train")
    throw UsageError("MPI has started several processes, which only isonorm train supports");
  return verb.run();
}

// Prints the help or the version that was asked for.
int print(const CLI::App& app, const std::string& who, const CLI::Success& asked) {
  const std::string said = asked.get_name() == "CallForVersion" ? text(asked.what(), "\n") : app.help();
  if (first_of_ranks(text(who, ' ', asked.get_name()))) print_text(said);
  return kOk;
}

// If an option is given several times, its last value counts, so that a script can append values to a command. Options
// with lists of values (--stop) keep all.
void let_the_last_win(CLI::App& command) {
  using Policy = CLI::MultiOptionPolicy;
  for (CLI::Option* option : command.get_options()) {
    const bool one = option->get_items_expected_max() == 1 && option->get_multi_option_policy() == Policy::Throw;
    if ((one && !option->get_positional()) || is_flag(*option)) option->multi_option_policy(Policy::TakeLast);
  }
}

void add_help(CLI::App& app) {
  app.set_help_flag("-h,--help", "print this help")->group("Help");
  app.set_version_flag("--version", kVersion, "print the version")->group("Help");
}

int program(int argc, char** argv) {
  CLI::App app("Pre-LN, Pre-RMSNorm and Pre-CRMSNorm Transformers are one model: train them and see.", "isonorm");
  app.formatter_fn([](const CLI::App* asked, const std::string&, CLI::AppFormatMode) {
    const size_t width = line_width(stdout);
    return help_text(help_of(*asked), width > 0 ? width : kHelpWidth);
  });
  add_help(app);
  app.require_subcommand(1);
  app.footer(
      "If an option is given several times, its last value counts; lists, such as --stop WORD, keep all values.\n"
      "A file named - is standard input if it is read, and standard output if it is written; everything else that is "
      "printed then goes to standard error.\n"
      "Exit codes: 0 as expected, 1 not equivalent, 2 usage, 3 bad input, 4 input/output, 5 undecided, 6 "
      "numbers are not finite, 70 no memory or threads, 130 interrupted.");
  std::vector<Verb> verbs = {
      add_prove(app),  add_train(app),    add_explain(app), add_table(app),     add_experiment(app), add_convert(app),
      add_verify(app), add_hooks(app),    add_spec(app),    add_compare(app),   add_perturb(app),    add_audit(app),
      add_rotate(app), add_import(app),   add_export(app),  add_tokenize(app),  add_sample(app),     add_info(app),
      add_plot(app),   add_evaluate(app), add_lr_find(app), add_completion(app)};
  verbs.push_back(add_man(app, verbs));
  for (const Verb& verb : verbs) {
    add_help(*verb.command);
    let_the_last_win(*verb.command);
    take_dashes(*verb.command);
  }

  std::string who = "isonorm";
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    for (const Verb& verb : verbs)
      if (verb.command->parsed()) who = text("isonorm ", verb.command->get_name());
    if (const auto* asked = dynamic_cast<const CLI::Success*>(&e))  // --help, --version
      return report_errors(who, [&] { return print(app, who, *asked); });
    std::string what = dynamic_cast<const CLI::ExtrasError*>(&e) ? not_expected(app) : e.what();
    if (argc < 2) what = text("a verb is missing: ", listed(verbs));
    if (argc > 1 && argv[1][0] != '-' && who == "isonorm")
      what =
          text("there is no verb ", Shown{argv[1], '"'}, ", expected ", listed(verbs), meant(argv[1], names_of(verbs)));
    return report_errors(who, [&]() -> int { throw UsageError(what); });
  }
  for (const Verb& verb : verbs)
    if (verb.command->parsed())
      return report_errors(
          text("isonorm ", verb.command->get_name()), [&] { return run_verb(verb); }, less_memory(verb));
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
  drop_unchecked_profile();
  return regular_end(code);
}
