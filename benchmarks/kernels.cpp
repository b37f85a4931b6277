// Times single ops, forward and backward.   usage: kernels OP ROWS WIDTH [--times N] [--dtype D] [--device cuda]
// [--threads N] [--reference], or --serve (benchmarks/serve.h; the works are "OP ROWS WIDTH"), or --cliffs
#include <cstdio>
#include <map>
#include <optional>

#include <CLI/CLI.hpp>

#include "benchmarks/kernel_table.h"
#include "benchmarks/measure.h"
#include "benchmarks/serve.h"
#include "isonorm.h"

using namespace isonorm;
using namespace isonorm::bench;
using nlohmann::json;

namespace {

class Works {
 public:
  explicit Works(TensorOptions like) : like_(like) {}

  json operator()(int times, const std::vector<std::string>& work) {
    check(work.size() == 3, "expected \"OP ROWS WIDTH\", got ", work.size(), " words");
    const Run& run = made(work);
    std::vector<double> both, forward, backward;
    for (int i = 0; i < times; ++i) {
      const Times t = run();
      both.push_back(t.forward_ms + t.backward_ms), forward.push_back(t.forward_ms), backward.push_back(t.backward_ms);
    }
    return {{"ms", both}, {"forward_ms", forward}, {"backward_ms", backward}};
  }

 private:
  const Run& made(const std::vector<std::string>& work) {
    Run& run = runs_[work];
    if (!run) {
      const int64_t rows = std::stoll(work[1]), width = std::stoll(work[2]);
      check(rows > 0 && width > 0, work[0], ": sizes must be positive, got ", rows, " and ", width);
      run = kernel_op(work[0]).make(rows, width, like_);
    }
    return run;
  }

  TensorOptions like_;
  std::map<std::vector<std::string>, Run> runs_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> work;
  bool on_request = false, cliffs = false, reference = false;
  int times = 20, threads = num_threads();
  std::map<std::string, DType> dtypes{{"f32", DType::f32}, {"f64", DType::f64}, {"bf16", DType::bf16}};
  TensorOptions like;
  std::string where = "cpu";

  CLI::App app("Times single ops, forward and backward.");
  CLI::Option* op = app.add_option("op", work, "OP ROWS WIDTH")->expected(3);
  CLI::Option* serves = app.add_flag("--serve", on_request, "work on request (see benchmarks/serve.h)")->excludes(op);
  app.add_flag("--cliffs", cliffs, "time per element at odd sizes divided by the time at the next multiple of 64")
      ->excludes(op)
      ->excludes(serves);
  app.add_flag("--reference", reference, "a fused op and the composition that defines it, in turns")->needs(op);
  app.add_option("--times", times, "how often")->check(CLI::PositiveNumber);
  app.add_option("--device", where, "cpu, cuda or cuda:N")->excludes("--cliffs");
  app.add_option("--dtype", like.dtype, "f32, f64 or bf16")->transform(CLI::CheckedTransformer(dtypes));
  app.add_option("--threads", threads, "threads of kernels and BLAS")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  try {
    set_num_threads(threads);
    const std::optional<Device> device = gpu::device_of(where);
    check(device.has_value(), "--device ", where, ": expected cpu, cuda or cuda:N");
    check(*device == kCpu || gpu::why_none().empty(), "--device ", where, ": ", gpu::why_none());
    like.device = *device;
    Works works(like);
    if (cliffs) return print_cliffs() ? 0 : 1;
    if (on_request) {
      json facts = environment();
      facts["device"] = *device == kCpu ? "cpu" : gpu::device_name(*device);
      serve(facts, std::ref(works));
      return 0;
    }
    check(!work.empty(), "expected OP ROWS WIDTH, --serve or --cliffs; see --help");
    const auto print = [&](const char* what, const json& r) {
      std::printf("%s%s %s %s: forward %.4f ms, backward %.4f ms, both %.4f ms (medians of %d)\n", what,
                  work[0].c_str(), work[1].c_str(), work[2].c_str(), median(r["forward_ms"]), median(r["backward_ms"]),
                  median(r["ms"]), times);
    };
    works(2, work);
    if (!reference) return print("", works(times, work)), 0;
    json ours, theirs;
    for (int i = -2; i < times; ++i) {  // two rounds of warm-up
      const json fused = works(1, work);
      const UseReference composition;
      const json composed = works(1, work);
      for (const char* key : {"ms", "forward_ms", "backward_ms"})
        if (i >= 0) ours[key].push_back(fused[key][0]), theirs[key].push_back(composed[key][0]);
    }
    print("", ours);
    print("composition of ", theirs);
    std::printf("fused / composition %.3f; BLAS core %s\n", median(ours["ms"]) / median(theirs["ms"]),
                environment()["core"].get<std::string>().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kernels: %s\n", e.what());
    return 3;
  }
}
