// Manifest: what a result depends on beside its own options, so that a reader can repeat it or see why a repetition
// differs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"

namespace isonorm::equivalence {

struct ProofOptions;

struct Manifest {
  std::string verb = "prove";  // or "train": what the options belong to
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
  std::vector<std::pair<std::string, std::string>>
      options;              // every option by its command-line name, defaults filled in
  std::string data_sha256;  // over the data files, in the order in which they are read; hexadecimal
};

// Every option by its command-line name with its value, defaults filled in; only those that the model has (patch or
// context).
std::vector<std::pair<std::string, std::string>> option_list(const ProofOptions& options);

// The manifest of a proof on this machine, except data_sha256 (see sha256_of_files).
Manifest manifest_of(const ProofOptions& options);
// The same of a training: one form and the dtype in which its activations are kept take the place of the options that
// only a proof has.
Manifest manifest_of(const ProofOptions& options, const std::string& form, DType activations);

// "isonorm prove --model vit ...", every option written out, quoted for a POSIX shell.
std::string repeat_command(const Manifest& manifest);

// SHA-256 over the contents of the files, one after the other, in hexadecimal (FIPS 180-4). Throws (ErrorKind::io)
// naming a file that cannot be read.
std::string sha256_of_files(const std::vector<std::string>& paths);

}  // namespace isonorm::equivalence
