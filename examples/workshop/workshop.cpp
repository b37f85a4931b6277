// LayerNorm from its formula to the project's kernel: checks every step, times them alternately and prints a table.
// docs/workshop.md explains it.   usage: workshop [ROWS WIDTH [ROUNDS]]
#include <cstdio>
#include <cstring>

#include "benchmarks/measure.h"
#include "core/printed.h"
#include "examples/argument.h"
#include "examples/workshop/check.h"
#include "reports/text_table.h"
#include "training/records/manifest.h"

using namespace isonorm;
using namespace isonorm::workshop;

namespace {

// Milliseconds of each round.
struct Times {
  std::vector<double> forward, backward;
};

// Moves the bytes of `tensors` tensors of x's size: half are read and half are written.
void copy(const Task& task, int tensors) {
  const float* from = task.in.x.data<float>();
  float* to = task.out.y.mutable_data<float>();
  const int64_t n = task.in.x.numel();
  for (int64_t left = n * tensors / 2; left > 0; left -= n) {
    const int64_t count = std::min(left, n);
    parallel_for(thread_blocks(count, ceil_div(count, num_threads())), [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin) * sizeof(float));
    });
  }
}

// Times of memcpy and of each step, which alternate in every round. An untimed run before each brings the step's
// operands into the caches, as far as they fit, and wakes the threads.
std::vector<Times> time_steps(const Task& task, int rounds) {
  std::vector<Times> times(1 + steps().size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < times.size(); ++i) {
      const Step* step = i == 0 ? nullptr : &steps()[i - 1];
      const auto forward = [&] { step ? task.forward(*step) : copy(task, 2); };
      const auto backward = [&] { step ? task.backward(*step) : copy(task, 3); };
      forward();
      times[i].forward.push_back(bench::milliseconds(forward));
      times[i].backward.push_back(bench::milliseconds(backward));
    }
  return times;
}

void print_table(const Task& task, const std::vector<Times>& times, const std::vector<StepErrors>& errors) {
  std::printf(
      "LayerNorm of [%lld, %lld], f32, %.2f MiB a tensor. %s, %s, %d threads; medians of %zu rounds in turn\n\n",
      static_cast<long long>(task.in.x.size(0)), static_cast<long long>(task.in.x.size(1)),
      static_cast<double>(tensor_bytes(task.in.x)) / (1 << 20), training::manifest_of({}).cpu.c_str(), name_of(isa()),
      num_threads(), times[0].forward.size());
  reports::TextTable table{.heading = "", .columns = {""}};
  for (const char* pass : {"forward", "backward"})
    for (const char* column : {"ms", "GB/s", "x before", "/ memcpy"}) table.columns.push_back(text(pass, "\n", column));
  table.columns.push_back("error /\ntolerance");
  double before[2], memcpy_ms[2];
  for (size_t i = 0; i < times.size(); ++i) {
    const double ms[2] = {bench::median(times[i].forward), bench::median(times[i].backward)};
    std::vector<reports::TextCell> row = {{i == 0 ? "memcpy" : steps()[i - 1].name}};
    for (int k : {0, 1}) {
      const double bytes = (2 + k) * static_cast<double>(tensor_bytes(task.in.x));  // every tensor once
      if (i == 0) memcpy_ms[k] = ms[k];
      row.push_back({printed("%.3f", ms[k])});
      row.push_back({printed("%.1f", bytes / ms[k] / 1e6)});
      row.push_back({i > 1 ? printed("%.2f", before[k] / ms[k]) : ""});
      row.push_back({printed("%.2f", ms[k] / memcpy_ms[k])});
      before[k] = ms[k];
    }
    row.push_back({i > 0 ? printed("%.2f", errors[i - 1].error) : ""});
    table.rows.push_back(std::move(row));
  }
  std::fputs(to_text(table, false).c_str(), stdout);
}

int number(const char* word, const char* what) {
  const int value = whole_number(word);
  check(value > 0, what, " must be at least 1");
  return value;
}

}  // namespace

int main(int argc, char** argv) try {
  check(argc == 1 || argc == 3 || argc == 4, "expected [ROWS WIDTH [ROUNDS]]");
  const int rows = argc > 1 ? number(argv[1], "ROWS") : 8192, width = argc > 1 ? number(argv[2], "WIDTH") : 768;
  const int rounds = argc > 3 ? number(argv[3], "ROUNDS") : 41;
  manual_seed(1);

  // Rows shorter than a register, odd sizes, several blocks; a large mean; an eps that matters; 8 MiB, stored past the
  // caches.
  std::vector<StepErrors> errors(steps().size());
  for (const auto& [r, w] : {std::pair{1, 1}, {3, 5}, {33, 16}, {70, 197}, {600, 96}})
    for (const double mean : {0., 1000.})
      for (const double eps : {1e-5, 0.3}) check_steps(Task(r, w, mean, eps), errors);
  check_steps(Task(2048, 1024), errors);
  const Task task(rows, width);
  check_steps(task, errors);

  print_table(task, time_steps(task, rounds), errors);
  int wrong = 0;
  for (size_t s = 0; s < errors.size(); ++s) {
    if (errors[s].error > 1) ++wrong, std::printf("wrong: %s differs from the reference\n", steps()[s].name);
    if (!errors[s].same_bits) ++wrong, std::printf("wrong: the bits of %s hang on the threads\n", steps()[s].name);
  }
  return wrong > 0;
} catch (const std::exception& e) {
  return std::fprintf(stderr, "workshop: %s\n", e.what()), 1;
}
