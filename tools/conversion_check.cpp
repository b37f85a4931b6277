// Whether the options of a conversion fit each other and the files.
#include <filesystem>

#include "tools/conversion.h"
#include "tools/ending.h"
#include "tools/model_data.h"
#include "tools/output.h"
#include "tools/rotation.h"

namespace isonorm::tools {

int run_convert(const ConvertOptions& o) {
  const bool folder = std::filesystem::is_directory(o.in), described = folder || !o.spec.empty();
  if (!described && !o.reference.empty()) throw UsageError("--reference needs --spec, which it is to check");
  if (!described && o.fold != "all") throw UsageError("--fold needs --spec: a described model has no place for gains");
  const bool gains = o.unit_gains || !o.as.empty();
  if (gains && !folder) throw UsageError("--unit-gains and --as need IN to be a folder");
  if (gains && (o.to != "rms_norm" || o.fold != "all"))
    throw UsageError("--unit-gains and --as need --to rms_norm and --fold all: a narrower stream has no stock class");
  if (described && !o.data.empty()) throw UsageError("--data needs a model to run, which --spec does not give");
  check_outputs({{.option = "OUT", .path = folder ? "" : o.out, .binary = true}}, {{"IN", o.in},
                                                                                   {"--spec", o.spec},
                                                                                   {"--reference", o.reference},
                                                                                   data_input(o.data),
                                                                                   {"--basis", basis_file(o.basis)}});
  return run_conversion(o);
}

}  // namespace isonorm::tools
