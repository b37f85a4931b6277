// clip_numbers, trust_ratios: numbers of a step that are computed on the device, where the update reads them.
//
// clip: one block, whose threads add the sums in turn, then in a fixed tree. ratios_of: a thread for each of up to
// kRatios tensors, whose options are the launch's argument.
#include "core/kernels/optimizer.h"
#include "gpu/block.cuh"
#include "gpu/launch.h"
#include "gpu/slots.h"

namespace isonorm::gpu {
namespace {

using kernels::TrustRatio;

constexpr int kThreads = 256, kRatios = 64;

__global__ void __launch_bounds__(kThreads) clip(double* out, const double* sums, int64_t n, double max_norm) {
  struct Room {
    double sums[32];
  };
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += sums[i];
  sum = block_reduce<Plus>(sum, shared<Room>().sums);
  if (threadIdx.x > 0) return;
  const double norm = std::sqrt(sum), factor = max_norm / (norm + 1e-6);
  out[0] = norm;
  out[1] = factor > 1 ? 1 : factor;
}

struct Ratios {
  TrustRatio items[kRatios];
};

__global__ void __launch_bounds__(kRatios)
    ratios_of(double* out, const double* sums, const Ratios ratios, int count, const double* factor) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= count) return;
  const TrustRatio r = ratios.items[i];
  const double weight = std::sqrt(sums[2 * i]);
  const double gradient = std::sqrt(sums[2 * i + 1]) * std::abs(r.gradient_scale * (factor ? *factor : 1));
  out[i] = r.adapt && weight != 0 && gradient != 0 ? r.coefficient * weight / (gradient + r.weight_decay * weight) : 1;
}

}  // namespace

void clip_numbers(const Tensor& out, const Tensor& sums, double max_norm) {
  launch("clip_numbers", &clip, blocks_of(1, kThreads), stream_of(out), write<double>(out), sums.data<double>(),
         sums.numel(), max_norm);
}

void trust_ratios(const Tensor& out, const Tensor& sums, std::span<const TrustRatio> ratios,
                  const Tensor& gradient_factor) {
  double* to = write<double>(out);
  const double* from = sums.data<double>();
  for (size_t i = 0; i < ratios.size(); i += kRatios) {
    Ratios part{};
    const size_t n = std::min<size_t>(kRatios, ratios.size() - i);
    std::copy_n(ratios.begin() + static_cast<std::ptrdiff_t>(i), n, part.items);
    launch("trust_ratios", &ratios_of, blocks_of(1, kRatios), stream_of(out), to + i, from + 2 * i, part,
           static_cast<int>(n), read_or_null<double>(gradient_factor));
  }
}

}  // namespace isonorm::gpu
