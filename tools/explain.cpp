// isonorm explain NORM ROW: forward and backward of a norm, step by step with numbers.
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "core/system/terminal.h"
#include "equivalence/services/explanation.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"

namespace isonorm::tools {
namespace {

struct ExplainOptions {
  std::string norm, row, gradient, gain, bias, json;
  double eps = 1e-5;
  bool gradcheck = false;
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
  std::vector<double> dz(x.size());
  dz[0] = 1;
  if (!o.gradient.empty()) dz = numbers(o.gradient, "--grad");
  if (dz.size() != x.size()) throw UsageError(text("--grad: ", dz.size(), " numbers for a row of ", x.size()));
  services::ExplainOptions more{.gradcheck = o.gradcheck};
  if (!o.gain.empty()) more.gain = numbers(o.gain, "--gain");
  if (!o.bias.empty()) more.bias = numbers(o.bias, "--bias");
  const services::Explanation found = services::explain(o.norm, x, dz, o.eps, more);
  print_text(found.text);
  write_json(o.json, services::explain_schema()(found), found.text, command);
  return kOk;
}

}  // namespace

Verb add_explain(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("explain", "Print a norm's forward and backward step by step, with the numbers");
  auto o = std::make_shared<ExplainOptions>();
  const std::string norms = services::explained_norms();
  command->add_option("NORM", o->norm, norms)->required()->check([norms](const std::string& name) {
    return services::is_explained(name) ? std::string()
                                        : text("there is no norm ", Shown{name, '"'}, ", expected ", norms);
  });
  command
      ->add_option(
          "ROW", o->row,
          "the row, as \"1,2,3\"; crms_norm and crms_isometric take the stored row, one entry shorter; batch_norm "
          "takes one channel's values over the batch")
      ->required();
  command->add_option("--grad", o->gradient, "gradient of the result, as long as the row (default: 1,0,0,...)");
  command->add_option("--gain", o->gain, "gain, as long as the row; one number for batch_norm (default: 1)");
  command->add_option("--bias", o->bias, "bias, likewise (default: 0)");
  command->add_flag("--gradcheck", o->gradcheck,
                    "also print the error of two-point differences by their step, in f64 and f32");
  add_number(*command, "eps", o->eps, "added to the mean square inside the root");
  add_json(*command, o->json);
  command->footer(exit_codes("0 printed"));
  return {command, [o, command] { return run_explain(*o, *command); }, {&services::explain_schema()}};
}

}  // namespace isonorm::tools
