// isonorm prove: trains the forms in lockstep with their controls and says whether they are one model.
#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/stopwatch.h"
#include "core/system/terminal.h"
#include "equivalence/lockstep/prove.h"
#include "equivalence/services/proof_options.h"
#include "equivalence/text/proof_text.h"
#include "io/line_log.h"
#include "lab/certificate/certificate.h"
#include "streams/stream.h"
#include "tools/help.h"
#include "tools/interrupt.h"
#include "tools/options.h"
#include "tools/output.h"
#include "training/fields.h"
#include "training/options/rows.h"
#include "training/records/training_log.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

struct ProveOptions {
  ProofOptions proof;
  training::Given given;
  OutputOptions output;
  bool certificate = false;
  std::vector<std::string> architectures;
};

// The options of a certificate, which has its own models and data.
CertificateOptions certificate_options(const CLI::App& command, const ProveOptions& o) {
  constexpr const char* kShared[] = {"--certificate", "--architectures", "--steps",  "--controls", "--seed",
                                     "--threads",     "--device",        "--report", "--json",     "--quiet"};
  for (const CLI::Option* option : command.get_options()) {
    const bool shared =
        std::any_of(std::begin(kShared), std::end(kShared), [&](const char* name) { return option->check_name(name); });
    if (option->count() > 0 && !shared)
      throw UsageError(text(option->get_name(), " cannot be used with --certificate, which trains its own models"));
  }
  CertificateOptions c{.controls = o.proof.controls,
                       .seed = o.proof.training.seed,
                       .threads = o.proof.training.threads,
                       .device = o.proof.training.device};
  if (o.proof.training.steps) c.steps = *o.proof.training.steps;
  if (o.architectures.empty()) return c;
  c.architectures.clear();
  training::check_names("--architectures", o.architectures, training::names_of(architectures()));
  for (const std::string& name : o.architectures) c.architectures.push_back(architecture(name));
  return c;
}

// "training 37/200  loss 1.234  deviation 2.1e-15 (controls 1.0e-15)  1:23 left  1.90 steps/s": the largest deviation
// so far. steps: the speed of this phase; whole: the speed of the work, whose amount is 1.
std::string progress_text(const StepInfo& info, const MovingRate& steps, const MovingRate& whole) {
  std::string line = text(name_of(info.phase), " ", info.step, "/", info.steps);
  if (info.phase != Phase::testing)
    line += text(printed("  loss %.3f", info.loss), "  deviation ", scientific(info.deviation), " (controls ",
                 scientific(info.control_deviation), ")");
  if (whole.per_second() > 0) line += text("  ", duration_text(whole.seconds_left(1)), " left");
  if (steps.per_second() > 0) line += printed("  %.2f steps/s", steps.per_second());
  return line;
}

// Shows and logs every step.
class Watcher {
 public:
  explicit Watcher(const ProveOptions& o) : status_(stderr, o.output.quiet), log_(o.output.log, training::kLogBegin) {
    log_.keep(0);
  }

  bool operator()(const StepInfo& info) {
    if (!started_) catch_interrupt();  // while data are read, signals end the process at once
    if (log_.open()) {
      if (!started_) log_.write(log_manifest(info.so_far.manifest));
      if (info.phase != Phase::testing) log_.write(log_step(info));
    }
    if (!started_ || info.phase != phase_) phase_ = info.phase, steps_ = MovingRate(info.seconds, info.step);
    steps_.add(info.seconds, info.step);
    whole_.add(info.seconds, info.done);
    started_ = true;
    last_ = text(name_of(info.phase), ", step ", info.step, " of ", info.steps);
    if (status_.due(info.step, info.steps)) status_.update(progress_text(info, steps_, whole_));
    return !interrupted();
  }

  void finish(const ProofResult& proof) {
    status_.clear();
    if (log_.open()) log_.write(log_verdict(proof));
  }
  const std::string& last() const { return last_; }  // the last progress line

 private:
  StatusLine status_;
  io::LineLog log_;
  bool started_ = false;
  Phase phase_ = Phase::training;
  MovingRate steps_, whole_;
  std::string last_;
};

int run_prove(const ProveOptions& o) {
  check_output_options(o.output, {data_input(o.proof.training.data),
                                  test_data_input(o.proof.training.test_data),
                                  {"--tokenizer", o.proof.training.tokenizer}});
  Watcher watcher(o);
  const ProofResult proof = prove(o.proof, [&](const StepInfo& info) { return watcher(info); });
  watcher.finish(proof);
  if (proof.interrupted) return fail("isonorm prove", text("interrupted (", watcher.last(), ")"), kInterrupted);
  show(document_of(proof), o.output.quiet, o.output.report, o.output.json);
  return exit_code(proof.verdict);
}

int run_certificate(const CertificateOptions& options, const OutputOptions& output) {
  check_output_options(output, {});
  catch_interrupt();
  StatusLine status(stderr, output.quiet);
  MovingRate rate;
  const CertificateResult r = certify(options, [&](const CertificateProgress& p) {
    rate.add(p.seconds, p.step);
    if (status.due(p.step, p.steps))
      status.update(text("certificate ", 100 * static_cast<int64_t>(p.step) / p.steps, " %  ",
                         duration_text(rate.seconds_left(p.steps)), " left  ", p.what));
    return !interrupted();
  });
  status.clear();
  if (r.interrupted) return fail("isonorm prove", "interrupted", kInterrupted);
  show(document_of(r), output.quiet, output.report, output.json);
  return exit_code(r.verdict);
}

}  // namespace

Verb add_prove(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "prove", "Train Pre-LN, Pre-RMSNorm and Pre-CRMSNorm side by side and compare them at every step");
  auto o = std::make_shared<ProveOptions>();
  command->add_option("--forms", o->proof.forms, "forms to compare with layer_norm, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  add_training_options(*command, o->proof.training, o->given, services::is_of_proofs);
  add_number(*command, "controls", o->proof.controls, "runs of layer_norm moved by one ulp", services::kControls);
  add_device_option(*command, "--against",
                    "another device: train layer_norm there, too, and say whether it is the same training",
                    [o = o.get()](Device d) { o->proof.against = d; });
  add_output_options(*command, o->output, "the proof", "closing sentence");
  command->add_flag(
      "--certificate", o->certificate,
      "prove it for many small architectures on generated data instead, with negative controls, and for gradients in "
      "dtypes down to bf16");
  command
      ->add_option("--architectures", o->architectures,
                   "architectures of the certificate, separated by commas (default: gpt1 to gpt11 and vit1 to vit11)")
      ->delimiter(',');
  command->footer("Steps: 200 in f64, 50 in f32. " +
                  exit_codes("0 every run came out as expected, 1 not",
                             "5 undecided (rounding alone moves the runs as far as a negative control would)"));
  lead_with(*command, {"--forms", "--model", "--data", "--width", "--depth", "--steps", "--batch", "--lr", "--controls",
                       "--certificate"});
  return {command,
          [o, command] {
            training::set_training_options(o->proof.training, o->given);
            if (o->certificate) return run_certificate(certificate_options(*command, *o), o->output);
            if (!o->architectures.empty()) throw UsageError("--architectures requires --certificate");
            services::check_proof(o->proof);
            return run_prove(*o);
          },
          {&proof_schema(), &certificate_description()}};
}

}  // namespace isonorm::tools
