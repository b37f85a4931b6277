// Manifest: everything besides its own options on which a result depends, so that a reader can repeat it or see why a
// repetition differs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "reports/document.h"
#include "training/options/option.h"

namespace isonorm::training {

struct TrainingOptions;

using OptionList = std::vector<std::pair<std::string, std::string>>;  // "mlp_width" "64"

struct Manifest {
  std::string version;              // isonorm's version
  std::string compiler;             // "GNU 12.2.0"
  std::string flags;                // compiler flags of the library
  std::string instructions;         // the kernels' instruction set: one of kIsaNames (core/kernels/isa.h)
  std::string instructions_reason;  // why this set was chosen (core/kernels/isa_choice.h)
  std::string products;             // "isonorm" or "OpenBLAS": whose kernels compute matrix products of f32 and f64
  std::string blas_core;            // OpenBLAS's name of the CPU whose kernels it chose
  std::string blas_flavour;         // "openmp", "pthread" or "sequential"
  std::string blas_version;         // "OpenBLAS 0.3.21"
  int threads = 0;
  std::string cpu;  // "AMD EPYC (AuthenticAMD family 26 model 2)"
  uint64_t seed = 0;
  std::string dtype;
  OptionList options;                // every option
  std::string command;               // repeats the run, quoted for a POSIX shell; empty: none does
  std::string init_sha256;           // of the file with the initial weights; empty: none
  std::string earlier;               // other options of earlier steps: "to step 300 with --steps 300"
  std::vector<std::string> classes;  // class names of images; empty: unknown, or other data
  std::string data_sha256;           // of the data files in order; hexadecimal
};

// Every option of the command line with its value, including values that follow from other options.
OptionList option_list(const TrainingOptions& options);

// The manifest of a training on this machine, except data_sha256 (see io/sha256.h) and the command.
Manifest manifest_of(const TrainingOptions& options);

// Options that version 0.1.0 did not have at first, with the value that checkpoints and logs without the entry mean.
inline constexpr std::pair<const char*, const char*> kNewOptions[] = {
    {"ema_warmup", "false"}, {"test_share", "0.1"}, {"row_length", "0"}};

// True if the option's value is a file name: a string, even if it reads "true" or "7".
constexpr bool names_a_file(std::string_view option) {
  return option == "data" || option == "test_data" || option == "tokenizer" || option == "init";
}

// The value of an option as a number or boolean if this loses nothing, else as text.
reports::Value option_value(const std::string& name, const std::string& value);

// The command-line options whose values differ from the defaults: {"--width", "16"}, {"--no-bias", ""}. `defaults` are
// the options of the same structs in the same order.
OptionList given(const std::vector<Option>& options, const std::vector<Option>& defaults);
// The same as text: " --width 16 --no-bias".
std::string said(const OptionList& given);
inline std::string said(const std::vector<Option>& options, const std::vector<Option>& defaults) {
  return said(given(options, defaults));
}

// The environment section of a document.
reports::Environment environment_of(const Manifest& manifest, double seconds);

}  // namespace isonorm::training
