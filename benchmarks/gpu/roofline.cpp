// The work of a training step on a device, counted without one: launches, bytes and operations of every kernel, and the
// least time that a device with given rates needs.
//   usage: gpu_roofline CASE [--batch N] [--dtype D] [--precision full|bf16] [--form F] [--storage raw|mapped]
//                       [--executed] [--json]
// The step runs on an emulated device that accepts launches and copies without executing them, so a batch of any size
// costs only the calls.
#include <algorithm>
#include <cstdio>
#include <map>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "benchmarks/trainer.h"
#include "core/memory/allocator.h"
#include "core/memory/storage.h"
#include "core/random.h"
#include "core/system/profile.h"
#include "tests/emulated_gpu/runtime.h"
#include "gpu/recorder.h"
#include "streams/stream.h"

using namespace isonorm;
using namespace isonorm::bench;
using nlohmann::json;

namespace {

constexpr Device kDevice{DeviceKind::cuda, 0};

// The best rates of a device, as measured by others: a large product in bf16 (794 TFLOP/s on both cards,
// stas00/ml-engineering); cuDNN's attention, forward and backward (FlashAttention-3, 2407.08608, heads of 64, 1K to 2K
// rows); and a copy, counting bytes read and written (QuACK's chart of the H100, cudnn-frontend's of the H200). f32 and
// f64 are from the data sheet, 67 TFLOP/s. Floors are computed from these rates and from counts, not timed.
struct Rates {
  const char* name;
  double bytes;                                   // per second
  double product, attention, attention_backward;  // operations per second in bf16
  double product_f32, product_f64;                // f32 without TF32; f64 on tensor cores
};
constexpr Rates kRates[] = {{"H100", 3.0e12, 790e12, 400e12, 350e12, 67e12, 67e12},
                            {"H200", 4.3e12, 790e12, 400e12, 350e12, 67e12, 67e12}};

// The same step as a list of kernels written by hand, with the same rates and everything fused that can be: bytes,
// operations and sum of floors (0: not computed). A GPT's logits are written once, in place.
struct ByHand {
  const char* name;
  int64_t batch;
  double gigabytes, teraflops, floor_ms[std::size(kRates)];
};
constexpr ByHand kByHand[] = {{"gpt2", 32, 72.6, 26.5, {43.6, 41.5}}, {"vit_base", 256, 82.1, 27.0, {43.1, 0}}};

double operations_per_second(const Rates& r, const std::string& slot, DType dtype) {
  if (dtype != DType::bf16) return dtype == DType::f64 ? r.product_f64 : r.product_f32;
  if (slot == "attention_forward") return r.attention;
  return slot == "attention_backward" ? r.attention_backward : r.product;
}

struct Counts {
  int64_t calls = 0, launches = 0, copies = 0, bytes = 0, flops = 0;
  double floor_ms[std::size(kRates)] = {};  // sum over the calls of max(time for bytes, time for operations)

  void add(const Counts& c) {
    calls += c.calls, launches += c.launches, copies += c.copies, bytes += c.bytes, flops += c.flops;
    for (size_t r = 0; r < std::size(kRates); ++r) floor_ms[r] += c.floor_ms[r];
  }
};

struct Recording {
  std::map<std::string, Counts> slots;
  Counts all;
  int64_t waits = 0, allocations = 0;
  int64_t peak_bytes = 0;  // of tensors, during the step
};

Recording record(Trainer& trainer, DType dtype) {
  for (int warm = 0; warm < 2; ++warm) trainer.step();  // fills the optimizer's state and the memory pool
  allocator_of(kDevice).reset_peak();
  profile::start();
  const gpu::Recorder recorder;
  trainer.step();
  const std::vector<gpu::Recorded> asked = recorder.all();  // excludes the waits for the profile's clocks
  Recording r;
  for (const profile::Call& call : profile::stop().calls) {
    Counts c{.calls = 1, .bytes = call.bytes, .flops = call.flops};
    for (size_t i = 0; i < std::size(kRates); ++i)
      c.floor_ms[i] =
          1e3 * std::max(static_cast<double>(c.bytes) / kRates[i].bytes,
                         static_cast<double>(c.flops) / operations_per_second(kRates[i], call.kernel, dtype));
    r.slots[call.kernel].add(c);
  }
  for (const gpu::Recorded& e : asked) {
    Counts& slot = r.slots[e.slot.empty() ? "(outside of slots)" : e.slot];
    slot.launches += e.kind == gpu::Recorded::Kind::launch;
    slot.copies += e.kind == gpu::Recorded::Kind::copy;
    r.waits += e.kind == gpu::Recorded::Kind::wait;
    r.allocations += e.kind == gpu::Recorded::Kind::allocation;
  }
  for (const auto& [name, counts] : r.slots) r.all.add(counts);
  r.peak_bytes = allocator_of(kDevice).stats().peak;
  return r;
}

json to_json(const Counts& c) {
  json object = {
      {"calls", c.calls}, {"launches", c.launches}, {"copies", c.copies}, {"bytes", c.bytes}, {"flops", c.flops}};
  for (size_t r = 0; r < std::size(kRates); ++r) object["floor_ms"][kRates[r].name] = c.floor_ms[r];
  return object;
}

json to_json(const Recording& r) {
  json object = {
      {"all", to_json(r.all)}, {"waits", r.waits}, {"allocations", r.allocations}, {"peak_bytes", r.peak_bytes}};
  for (const auto& [name, counts] : r.slots) object["slots"][name] = to_json(counts);
  return object;
}

void print_row(const std::string& name, const Counts& c) {
  std::printf("| %-22s | %5lld | %8lld | %6lld | %8.2f | %8.3f | %8.2f | %8.2f |\n", name.c_str(),
              static_cast<long long>(c.calls), static_cast<long long>(c.launches), static_cast<long long>(c.copies),
              static_cast<double>(c.bytes) / 1e9, static_cast<double>(c.flops) / 1e12, c.floor_ms[0], c.floor_ms[1]);
}

void print_text(const Case& c, const Recording& r) {
  std::printf(
      "| slot | calls | launches | copies | GB | TFLOP | H100 floor, ms | H200 floor, ms "
      "|\n|---|---|---|---|---|---|---|---|\n");
  std::vector<std::pair<std::string, Counts>> rows(r.slots.begin(), r.slots.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.floor_ms[0] > b.second.floor_ms[0]; });
  for (const auto& [name, counts] : rows) print_row(name, counts);
  print_row("all", r.all);
  for (const ByHand& h : kByHand)
    if (h.name == c.name && h.batch == c.batch)
      std::printf("| %-22s | %5s | %8s | %6s | %8.2f | %8.3f | %8.2f | %8.2f |\n", "a list made by hand", "", "", "",
                  h.gigabytes, h.teraflops, h.floor_ms[0], h.floor_ms[1]);
  std::printf("\nwaits %lld, memory asked of the device %lld times, %.2f GB in tensors at most\n\n",
              static_cast<long long>(r.waits), static_cast<long long>(r.allocations),
              static_cast<double>(r.peak_bytes) / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names, forms;
  for (const Case& c : kCases) names.emplace_back(c.name);
  std::string name, storage = "raw", precision = "full";
  std::map<std::string, DType> dtypes{{"f32", DType::f32}, {"f64", DType::f64}, {"bf16", DType::bf16}};
  DType dtype = DType::bf16;
  int batch = 0;
  bool as_json = false, no_affine = false, executed = false;

  CLI::App app("Counts the launches, bytes and operations of a training step, without a device.");
  app.add_option("case", name, "the model")->required()->check(CLI::IsMember(names));
  app.add_option("--batch", batch, "samples of a step, other than the case has")->check(CLI::Range(1, 1 << 16));
  app.add_option("--dtype", dtype, "of parameters and activations")->transform(CLI::CheckedTransformer(dtypes));
  app.add_option("--precision", precision, "bf16: products in bf16, parameters f32")
      ->check(CLI::IsMember({"full", "bf16"}));
  app.add_option("--form", forms, "of the residual stream (default: all four)");
  app.add_option("--storage", storage, "of the parameters")->check(CLI::IsMember({"raw", "mapped"}));
  app.add_flag("--no-affine", no_affine, "norms without learned gain and bias");
  app.add_flag("--executed", executed, "execute the counted calls, by the emulation: for small cases");
  app.add_flag("--json", as_json, "print one JSON object, by form");
  CLI11_PARSE(app, argc, argv);

  try {
    gpu::emulated::runtime_settings().dry = !executed;
    gpu::emulated::runtime_settings().memory = size_t{141} << 30;  // as an H200
    if (forms.empty())
      for (streams::Form f : streams::layer_norm_forms()) forms.emplace_back(name_of(f));
    Case c = *std::find_if(std::begin(kCases), std::end(kCases), [&](const Case& k) { return k.name == name; });
    if (batch > 0) c.batch = batch;
    json all;
    for (const std::string& form : forms) {
      manual_seed(1);
      const bool mixed = precision == "bf16";
      Trainer trainer(c, {.form = streams::form_named(form),
                          .storage = storage == "raw" ? streams::Stored::raw : streams::Stored::mapped,
                          .activations = mixed ? DType::f32 : dtype,
                          .dtype = mixed ? DType::f32 : dtype,
                          .precision = mixed ? nn::Precision::bf16 : nn::Precision::full,
                          .device = kDevice,
                          .affine = !no_affine});
      const Recording r = record(trainer, dtype);
      if (!as_json)
        std::printf("%s, %s, %s, batch %lld\n\n", name.c_str(), form.c_str(), name_of(dtype),
                    static_cast<long long>(c.batch));
      if (!as_json) print_text(c, r);
      all[form] = to_json(r);
    }
    if (as_json) std::puts(all.dump().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gpu_roofline: %s\n", e.what());
    return 3;
  }
}
