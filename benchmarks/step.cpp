// Times one training step of a benchmark case.
//   usage: step CASE [--batch N] [--context N] [--depth N] [--form F] [--storage raw|mapped] [--no-affine]
//               [--activations f32|bf16] [--dtype D] [--precision full|bf16] [--warmup N] [--device cuda] [--captured]
//               [--any-order] [--steps N] [--threads N] [--json] [--profile] [--serve]
// With --serve it speaks the protocol of benchmarks/serve.h. The works are "train" and "infer BATCH"; the matrix
// products of both alone, with OpenBLAS ("gemms", "gemms BATCH") or our kernel ("products", "products BATCH"); the same
// number of operations in registers ("registers", "registers BATCH"); and "profile WORK", which adds the time of each
// kernel to the answer.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <CLI/CLI.hpp>

#include "benchmarks/gemms.h"
#include "benchmarks/measure.h"
#include "benchmarks/serve.h"
#include "benchmarks/trainer.h"
#include "core/memory/storage.h"
#include "isonorm.h"
#include "streams/stream.h"

using namespace isonorm;
using namespace isonorm::bench;
using nlohmann::json;

namespace {

// Each time includes the device's work.
template <class F> std::vector<double> timed(int times, Device device, const F& f) {
  std::vector<double> ms;
  for (int i = 0; i < times; ++i)
    ms.push_back(milliseconds([&] {
      f();
      if (device != kCpu) gpu::synchronize(device);
    }));
  return ms;
}

// Milliseconds per kernel, summed over all calls of a profile, and the time between calls.
json by_kernel(const profile::Profile& p) {
  std::map<std::string, double> kernels;
  double rest = 1e3 * p.seconds;
  for (const profile::Call& c : p.calls) kernels[c.kernel] += 1e3 * c.seconds, rest -= 1e3 * c.seconds;
  return {{"kernels", kernels}, {"between", rest}};
}

class Works {
 public:
  Works(const Case& c, Trainer& trainer, Device device) : case_(c), trainer_(trainer), device_(device) {}

  json operator()(int times, const std::vector<std::string>& work) {
    const std::string name = work.empty() ? "train" : work[0];
    if (name == "train") {
      std::vector<double> losses;
      json result = answer(timed(times, device_, [&] { losses.push_back(trainer_.step()); }));
      result["losses"] = losses;
      return result;
    }
    if (name == "profile") {
      profile::start();
      json result = (*this)(times, {work.begin() + 1, work.end()});
      result.update(by_kernel(profile::stop()));
      return result;
    }
    const int64_t batch = work.size() > 1 ? std::stoll(work[1]) : 0;
    check(device_ == kCpu || name == "infer", name, ": the CPU's alone");
    if (name == "registers") return answer(timed(times, kCpu, [&] { multiply_add(flops(gemms(batch))); }));
    if (name == "gemms" || name == "products") {
      Replay& products = replay(batch, name == "gemms" ? Products::openblas : Products::ours);
      return answer(timed(times, kCpu, [&] { products.run(); }));
    }
    check(name == "infer" && batch > 0, "no work is called \"", name,
          "\": train, infer BATCH, gemms [BATCH], products [BATCH], registers [BATCH], profile WORK");
    return answer(timed(times, device_, [&] { trainer_.infer(batch); }));
  }

 private:
  json answer(const std::vector<double>& ms) const {
    return {{"ms", ms}, {"peak_bytes", peak_bytes()}, {"peak_tensor_bytes", allocator_of(device_).stats().peak}};
  }

  std::vector<Gemm> gemms(int64_t batch) const {  // 0: training step
    return batch > 0 ? gemms_of_forward(case_, batch) : gemms_of_step(case_);
  }

  Replay& replay(int64_t batch, Products by) {
    auto& r = replays_[{batch, by}];
    if (!r) {
      r = std::make_unique<Replay>(gemms(batch), by);
      r->run();
    }
    return *r;
  }

  const Case& case_;
  Trainer& trainer_;
  Device device_;
  std::map<std::pair<int64_t, Products>, std::unique_ptr<Replay>> replays_;
};

DType dtype_named(const std::string& name) {
  return name == "f64" ? DType::f64 : name == "bf16" ? DType::bf16 : DType::f32;
}

void print_text(const Case& c, const json& r) {
  std::printf("%s: %d threads, BLAS core %s\n", c.name.data(), num_threads(), r["core"].get<std::string>().c_str());
  for (const json& line : r.value("libraries", json::array())) std::printf("  %s\n", line.get<std::string>().c_str());
  std::printf("  step         %9.1f ms median, %.1f ms minimum\n", r["median_ms"].get<double>(),
              r["min_ms"].get<double>());
  if (r.contains("gemm_ms"))
    std::printf("  GEMMs alone  %9.1f ms (%.0f GFLOP/s)\n", r["gemm_ms"].get<double>(),
                flops(gemms_of_step(c)) / 1e6 / r["gemm_ms"].get<double>());
  std::printf("  first step   %9.1f ms\n", r["first_step_ms"].get<double>());
  std::printf("  peak memory  %9.1f MB, %.1f MB in tensors\n", static_cast<double>(r["peak_bytes"]) / 1e6,
              static_cast<double>(r["peak_tensor_bytes"]) / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names;
  for (const Case& c : kCases) names.emplace_back(c.name);
  std::string name, form = "layer_norm", storage = "raw", activations, dtype = "f32", precision = "full", where = "cpu";
  bool as_json = false, on_request = false, profiled = false, no_affine = false, captured = false, any_order = false;
  int steps = 20, threads = num_threads(), batch = 0, context = 0, depth = 0, warmup = 3;

  CLI::App app("Times one training step (forward, loss, backward, clip, AdamW) of a model.");
  app.add_option("case", name, "the model")->required()->check(CLI::IsMember(names));
  app.add_option("--batch", batch, "samples of a training step (default: the case's)")->check(CLI::Range(1, 1 << 16));
  app.add_option("--context", context, "tokens of a GPT's sample (default: the case's)")->check(CLI::Range(1, 1 << 20));
  app.add_option("--depth", depth, "number of blocks (default: the case's)")->check(CLI::Range(1, 1 << 10));
  app.add_option("--form", form, "form of the residual stream");
  app.add_option("--storage", storage, "of the parameters")->check(CLI::IsMember({"raw", "mapped"}));
  app.add_option("--dtype", dtype, "of parameters and activations")->check(CLI::IsMember({"f32", "f64", "bf16"}));
  app.add_option("--precision", precision, "bf16: products in bf16, parameters f32")
      ->check(CLI::IsMember({"full", "bf16"}));
  app.add_option("--device", where, "cpu, cuda or cuda:N");
  app.add_flag("--captured", captured, "steps of a GPU are a CUDA graph from the third on");
  app.add_flag("--any-order", any_order, "a GPU may add up in any order: bits differ from run to run");
  app.add_option("--activations", activations, "dtype of activations kept for the backward (default: the dtype)")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_flag("--no-affine", no_affine, "norms without learned gain and bias");
  app.add_flag("--json", as_json, "print one JSON object");
  CLI::Option* serves = app.add_flag("--serve", on_request, "work on request (see benchmarks/serve.h)");
  app.add_flag("--profile", profiled, "print the time of the timed steps by kernel and by module")->excludes(serves);
  app.add_option("--steps", steps, "timed steps")->check(CLI::PositiveNumber);
  app.add_option("--warmup", warmup, "untimed steps before")->check(CLI::PositiveNumber);
  app.add_option("--threads", threads, "threads of kernels and BLAS")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  try {
    set_num_threads(threads);
    manual_seed(1);
    Case c = *std::find_if(std::begin(kCases), std::end(kCases), [&](const Case& k) { return k.name == name; });
    if (batch > 0) c.batch = batch;
    if (context > 0) {
      check(c.is_gpt(), "--context: ", name, " is no GPT");
      c.context = context;
    }
    if (depth > 0) c.depth = depth;
    json facts = environment();
    const std::optional<Device> device = gpu::device_of(where);
    check(device.has_value(), "--device ", where, ": expected cpu, cuda or cuda:N");
    check(*device == kCpu || gpu::why_none().empty(), "--device ", where, ": ", gpu::why_none());
    check(*device != kCpu || !(captured || any_order), "--captured, --any-order: of a GPU alone");
    gpu::set_deterministic(!any_order);
    facts["device"] = *device == kCpu ? "cpu" : gpu::device_name(*device);
    facts["base_bytes"] = resident_bytes();
    const DType type = dtype_named(dtype);
    Trainer trainer(c, {.form = streams::form_named(form),
                        .storage = storage == "raw" ? streams::Stored::raw : streams::Stored::mapped,
                        .activations = activations.empty() ? type : dtype_named(activations),
                        .dtype = type,
                        .precision = precision == "bf16" ? nn::Precision::bf16 : nn::Precision::full,
                        .device = *device,
                        .affine = !no_affine,
                        .captured = captured});
    double loss = 0;
    facts["first_step_ms"] = milliseconds([&] { loss = trainer.step(); });
    facts["first_step_at"] = now();
    facts["loss"] = loss;
    facts["parameters"] = trainer.parameter_count();
    facts["batch"] = c.batch;
    facts["gelu"] = c.gelu_tanh ? "tanh" : "erf";
    for (int i = 1; i < warmup; ++i) trainer.step();

    Works works(c, trainer, *device);
    if (*device != kCpu)
      for (const gpu::LibraryFacts& library : gpu::libraries()) facts["libraries"].push_back(gpu::line_of(library));
    if (on_request) {
      serve(facts, std::ref(works));
      return 0;
    }
    if (profiled) profile::start();
    const json trained = works(steps, {"train"});
    if (profiled) std::fputs(profile::tables(profile::stop()).c_str(), stderr);
    const auto times = trained["ms"].get<std::vector<double>>();
    facts["median_ms"] = median(times);
    facts["min_ms"] = *std::min_element(times.begin(), times.end());
    for (const char* peak : {"peak_bytes", "peak_tensor_bytes"}) facts[peak] = trained[peak];
    if (*device == kCpu && type == DType::f32) facts["gemm_ms"] = median(works(5, {"gemms"})["ms"]);
    if (as_json)
      std::puts(facts.dump().c_str());
    else
      print_text(c, facts);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "step: %s\n", e.what());
    return 3;
  }
}
