#include "benchmarks/serve.h"

#include <cstdio>
#include <iostream>
#include <sstream>

#include "core/error.h"
#include "core/kernels/isa_choice.h"
#include "core/system/blas.h"
#include "core/system/parallel.h"
#include "training/records/manifest.h"
#include "training/training_options.h"

namespace isonorm::bench {
namespace {

void say(const nlohmann::json& line) {
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

}  // namespace

void serve(nlohmann::json ready, const Work& work) {
  ready["event"] = "ready";
  say(ready);
  for (std::string line, verb; std::getline(std::cin, line);) {
    std::istringstream words(line);
    words >> verb;
    if (verb == "end") return;
    int times = 0;
    check(verb == "go" && words >> times && times > 0, "expected \"go N WORK\" or \"end\", got \"", line, "\"");
    std::vector<std::string> rest;
    for (std::string word; words >> word;) rest.push_back(word);
    say(work(times, rest));
  }
}

nlohmann::json environment() {
  const training::Manifest m = training::manifest_of({});
  const BlasInfo blas = blas_info();
  return {{"cpu", m.cpu},
          {"threads", num_threads()},
          {"instructions", m.instructions},
          {"blas", m.blas_version},
          {"core", m.blas_core},
          {"compiler", m.compiler},
          {"version", "isonorm " + m.version},
          {"core_bits", blas.vector_bits},
          {"cpu_bits", vector_bits(this_processor())},
          {"products", m.products}};
}

}  // namespace isonorm::bench
