#include "tools/verb.h"
namespace isonorm::tools {
Verb add_train(CLI::App& app) {
  return {app.add_subcommand("train"), [] { return 0; }};
}
}  // namespace isonorm::tools
