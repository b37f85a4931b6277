// Prints the number of threads of a process, the mask of its main thread and the masks of its other threads:
// "threads 2, main 0, workers 0-1, started 0-1".
#include <atomic>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "core/error.h"
#include "core/system/cores.h"
#include "core/system/parallel.h"
#include "core/system/start_thread.h"

using namespace isonorm;

namespace {

std::string text_of(const Cores& cores) {
  std::string list;
  for (size_t i = 0; i < cores.size(); ++i) {
    const size_t first = i;
    while (i + 1 < cores.size() && cores[i + 1] == cores[i] + 1) ++i;
    list += text(list.empty() ? "" : "+", cores[first], first == i ? "" : text('-', cores[i]));
  }
  return list;
}

// The masks of the threads that help the main thread in one parallel region.
std::string workers() {
  const int threads = num_threads();
  std::vector<std::string> masks(static_cast<size_t>(threads));
  std::atomic<int> inside = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  parallel_for(threads, 1, [&](int64_t, int64_t) {
    masks[static_cast<size_t>(thread_index())] = text_of(mask_of(0));
    ++inside;
    while (inside < threads && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  const std::set<std::string> different(masks.begin() + 1, masks.end());
  std::string all;
  for (const std::string& mask : different) all += text(all.empty() ? "" : " and ", mask);
  return all.empty() ? "none" : all;
}

}  // namespace

int main() {
  const Tensor a = ones({400, 400}, {DType::f32});
  matmul(a, a);  // OpenBLAS computes in the workers
  std::string started;
  start_thread([&] { started = text_of(mask_of(0)); }).join();
  const std::string helpers = workers();
  std::printf("threads %d, main %s, workers %s, started %s\n", num_threads(), text_of(mask_of(0)).c_str(),
              helpers.c_str(), started.c_str());
}
