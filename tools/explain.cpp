// isonorm explain NORM ROW: forward and backward of a norm, step by step with numbers.
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "core/system/terminal.h"
#include "streams/stream.h"
#include "equivalence/services/explanation.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"

namespace isonorm::tools {
namespace {

struct ExplainOptions {
  std::string norm, row, gradient, json;
  double eps = 1e-5;
};

// Reads "1, -2.5,3e2"; `what` is named in errors.
std::vector<double> numbers(const std::string& list, const char* what) {
  std::vector<double> values;
  for (size_t at = 0; at <= list.size();) {
    size_t end = list.find(',', at);
    if (end == std::string::npos) end = list.size();
    std::string word = list.substr(at, end - at);
    word.erase(0, word.find_first_not_of(" +"));
    word.erase(word.find_last_not_of(' ') + 1);
    double v = 0;
    if (!read_number(word, v) || !std::isfinite(v))
      throw UsageError(text(what, ": ", Shown{word, '"'}, " is not a finite number"));
    values.push_back(v);
    at = end + 1;
  }
  return values;
}

int run_explain(const ExplainOptions& o, const CLI::App& command) {
  check_outputs({{"--json", o.json}}, {});
  const std::vector<double> x = numbers(o.row, "ROW");
  std::vector<double> dy(x.size());
  dy[0] = 1;
  if (!o.gradient.empty()) dy = numbers(o.gradient, "--grad");
  if (dy.size() != x.size()) throw UsageError(text("--grad: ", dy.size(), " numbers for a row of ", x.size()));
  const services::Explanation found = services::explain(o.norm, x, dy, o.eps);
  print_text(found.text);
  write_json(o.json, services::explain_schema()(found), found.text, command);
  return kOk;
}

}  // namespace

Verb add_explain(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("explain", "Print a norm's forward and backward step by step, with the numbers");
  auto o = std::make_shared<ExplainOptions>();
  const std::string norms = streams::listed(streams::layer_norm_forms(), " or ");
  command->add_option("NORM", o->norm, norms)->required()->check([norms](const std::string& name) {
    for (streams::Form known : streams::layer_norm_forms())
      if (name == name_of(known)) return std::string();
    return text("there is no norm ", Shown{name, '"'}, ", expected ", norms);
  });
  command
      ->add_option("ROW", o->row,
                   "the row, as \"1,2,3\"; crms_norm and crms_isometric take the stored row, one entry shorter")
      ->required();
  command->add_option("--grad", o->gradient, "gradient of the result, as long as the row (default: 1,0,0,...)");
  add_number(*command, "eps", o->eps, "added to the mean square inside the root");
  add_json(*command, o->json);
  command->footer(exit_codes("0 printed"));
  return {command, [o, command] { return run_explain(*o, *command); }, {&services::explain_schema()}};
}

}  // namespace isonorm::tools
