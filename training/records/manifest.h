// Manifest: what a result depends on beside its own options, so that a reader can repeat it or see why a repetition
// differs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "reports/document.h"

namespace isonorm::training {

struct TrainingOptions;

using OptionList = std::vector<std::pair<std::string, std::string>>;  // names on the command line and values

struct Manifest {
  std::string verb = "train";  // or "prove": what the options belong to
  std::string version;         // of isonorm
  std::string compiler;        // "GNU 12.2.0"
  std::string flags;           // that the library was compiled with
  std::string instructions;    // base, avx2 or avx512: the kernels in use
  std::string blas_core;       // OpenBLAS's name of the CPU whose kernels it chose
  std::string blas_flavour;    // "openmp", "pthread" or "sequential"
  std::string blas_version;    // "OpenBLAS 0.3.21"
  int threads = 0;
  std::string cpu;  // its model name
  uint64_t seed = 0;
  std::string dtype;
  OptionList options;       // every option, defaults filled in
  std::string init_sha256;  // of the file whose weights a training began with; empty: of none
  std::string earlier;      // options that steps before had otherwise: "to step 300 with --steps 300"; empty: none
  std::string data_sha256;  // over the data files, in the order in which they are read; hexadecimal
};

// Every option with its value, defaults filled in; only those that the model has (patch or context).
OptionList option_list(const TrainingOptions& options);

// The manifest of a training on this machine, except data_sha256 (see io/sha256.h).
Manifest manifest_of(const TrainingOptions& options);
// The same, with the form and the dtype in which activations are kept among the options.
Manifest manifest_of(const TrainingOptions& options, const std::string& form, DType activations);

// "isonorm train --model vit ...", every option written out, quoted for a POSIX shell.
std::string repeat_command(const Manifest& manifest);

// What a document says of it.
reports::Environment environment_of(const Manifest& manifest, double seconds);

}  // namespace isonorm::training
