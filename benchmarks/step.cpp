// Times one training step of a benchmark case, f32.   usage: step CASE [--form F] [--json] [--serve] [--steps N]
// [--threads N] [--profile]   With --serve it speaks the line protocol of benchmarks/torch_step.py, so that
// benchmarks/compare can run both sides alternately.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <cblas.h>

#include "benchmarks/gemms.h"
#include "benchmarks/trainer.h"
#include "core/parallel.h"
#include "core/profile.h"
#include "core/random.h"

using namespace isonorm;
using namespace isonorm::bench;

namespace {

constexpr int kWarmupSteps = 3;

double timed_step(Trainer& trainer) {
  const auto start = std::chrono::steady_clock::now();
  trainer.step();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// The largest resident size of this process so far (VmHWM).
int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  return 0;
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

struct Result {
  double median_ms, min_ms, gemm_ms, gemm_gflops, first_step_ms;
  int64_t peak_bytes;
};

// The replay comes last: its buffers do not count into the peak.
Result result(const Case& c, const std::vector<double>& times, double first_step_ms) {
  Result r{.median_ms = median(times),
           .min_ms = *std::min_element(times.begin(), times.end()),
           .gemm_ms = 0,
           .gemm_gflops = 0,
           .first_step_ms = first_step_ms,
           .peak_bytes = peak_bytes()};
  const std::vector<Gemm> gemms = gemms_of_step(c);
  r.gemm_ms = replay_ms(gemms);
  r.gemm_gflops = flops(gemms) / 1e6 / r.gemm_ms;
  return r;
}

void print_json(const Result& r) {
  std::printf(
      "{\"median_ms\": %.3f, \"min_ms\": %.3f, \"gemm_ms\": %.3f, \"peak_bytes\": %lld, \"first_step_ms\": %.3f, "
      "\"core\": \"%s\", \"threads\": %d}\n",
      r.median_ms, r.min_ms, r.gemm_ms, static_cast<long long>(r.peak_bytes), r.first_step_ms, openblas_get_corename(),
      num_threads());
  std::fflush(stdout);
}

void print_text(const Case& c, const Result& r) {
  std::printf("%s: %d threads, BLAS core %s\n", c.name.data(), num_threads(), openblas_get_corename());
  std::printf("  step         %9.1f ms median, %.1f ms minimum\n", r.median_ms, r.min_ms);
  std::printf("  GEMMs alone  %9.1f ms (%.0f GFLOP/s)\n", r.gemm_ms, r.gemm_gflops);
  std::printf("  first step   %9.1f ms\n", r.first_step_ms);
  std::printf("  peak memory  %9.1f MB\n", static_cast<double>(r.peak_bytes) / 1e6);
}

// Runs "go N" lines until "end"; gives the times of all steps.
std::vector<double> serve(Trainer& trainer, double first_step_ms, double loss) {
  std::printf(
      "{\"event\": \"ready\", \"first_step_ms\": %.3f, \"loss\": %.6f, \"threads\": %d, \"parameters\": %lld}\n",
      first_step_ms, loss, num_threads(), static_cast<long long>(trainer.parameter_count()));
  std::fflush(stdout);
  std::vector<double> all;
  for (std::string line, verb; std::getline(std::cin, line);) {
    std::istringstream words(line);
    int steps = 0;
    if (!(words >> verb >> steps) || verb != "go") break;
    std::string list;
    for (int i = 0; i < steps; ++i) {
      all.push_back(timed_step(trainer));
      char number[32];
      std::snprintf(number, sizeof number, "%s%.3f", i ? ", " : "", all.back());
      list += number;
    }
    std::printf("{\"ms\": [%s]}\n", list.c_str());
    std::fflush(stdout);
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names;
  for (const Case& c : kCases) names.emplace_back(c.name);
  std::string name, form = "layer_norm";
  bool json = false, on_request = false, profiled = false;
  int steps = 20, threads = num_threads();

  CLI::App app("Times one training step (forward, loss, backward, clip, AdamW) of a model, f32.");
  app.add_option("case", name, "the model")->required()->check(CLI::IsMember(names));
  app.add_option("--form", form, "form of the residual stream");
  app.add_flag("--json", json, "print one JSON object");
  CLI::Option* serves = app.add_flag("--serve", on_request, "run steps on request (see benchmarks/compare)");
  app.add_flag("--profile", profiled, "print where the time of the timed steps goes")->excludes(serves);
  app.add_option("--steps", steps, "timed steps")->check(CLI::PositiveNumber);
  app.add_option("--threads", threads, "threads of kernels and BLAS")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  try {
    set_num_threads(threads);
    manual_seed(1);
    const Case& c = *std::find_if(std::begin(kCases), std::end(kCases), [&](const Case& k) { return k.name == name; });
    Trainer trainer(c, nn::stream_form(form));

    const auto start = std::chrono::steady_clock::now();
    const double loss = trainer.step().item();
    const double first_step_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    for (int i = 1; i < kWarmupSteps; ++i) trainer.step();

    std::vector<double> times;
    if (on_request)
      times = serve(trainer, first_step_ms, loss);
    else {
      if (profiled) profile::start();
      for (int i = 0; i < steps; ++i) times.push_back(timed_step(trainer));
      if (profiled) std::fputs(profile::tables(profile::stop()).c_str(), stderr);
    }
    if (times.empty()) return 0;
    const Result r = result(c, times, first_step_ms);
    if (json || on_request)
      print_json(r);
    else
      print_text(c, r);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "step: %s\n", e.what());
    return 3;
  }
}
