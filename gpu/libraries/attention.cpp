#include "gpu/libraries/attention.h"

#include "gpu/libraries/cudnn.h"

#ifdef ISONORM_CUDNN

#include <limits>
#include <map>
#include <mutex>

#include "core/formulas/round_up.h"
#include "gpu/device.h"
#include "gpu/launch.h"
#include "gpu/memory.h"
#include "gpu/recorder.h"
#include "gpu/slots.h"

namespace isonorm::gpu {
namespace {

using Plan = std::shared_ptr<const Cudnn::Plan>;

// The first version that is right for any length. An earlier one gave wrong gradients if the length was not a multiple
// of 128 (https://github.com/pytorch/pytorch/issues/169849).
constexpr int64_t kAnyLength = 91501;
// The score of a hidden key. Not -inf, which versions below 9.10 do not take; the key's weight is 0 all the same.
constexpr float kLowest = std::numeric_limits<float>::lowest();

// The library on one device and its plans, which are made once and live until the process ends.
struct OfDevice {
  explicit OfDevice(const CudnnFunctions& functions) : library(functions) {}

  Cudnn library;
  std::map<std::pair<AttentionShape, bool>, Plan> plans;  // bool: by_sums; null: our own kernels compute it
};

struct State {
  CudnnFunctions functions = CudnnFunctions::of(cudnn());
  std::mutex mutex;
  std::map<int, OfDevice> devices;
};

State& state() {
  static State& s = *new State;
  return s;
}

AttentionShape::Strides strides_of(const Tensor& t) { return {t.strides().v[0], t.strides().v[1], t.strides().v[2]}; }

bool by_packs(const auto&... tensors) {
  const auto one = [](const Tensor& t) {
    const Dims& s = t.strides();
    return aligned(t.data<bf16>()) && s[0] % 8 == 0 && s[1] % 8 == 0 && s[2] % 8 == 0;
  };
  return (one(tensors) && ...);
}

bool can_attend(const kernels::AttentionSpec& spec, const kernels::AttentionInputs& in) {
  const Tensor &q = in.q, &k = in.k;
  if (q.dtype() != DType::bf16 || spec.ahead != 0 || in.mask.defined() || q.numel() == 0 || k.numel() == 0)
    return false;
  const int64_t size = q.size(3);
  if (in.v.size(3) != size || size % 8 != 0 || size > 256 || !by_packs(q, k, in.v) || !cudnn()) return false;
  return cudnn().version() >= kAnyLength || (q.size(2) % 128 == 0 && k.size(2) % 128 == 0);
}

AttentionShape shape_of(kernels::AttentionSpec spec, const kernels::AttentionInputs& in, const Tensor& out) {
  const Tensor& q = in.q;
  return {q.size(0),   q.size(1),     q.size(2),        in.k.size(2),     q.size(3),
          spec.causal, strides_of(q), strides_of(in.k), strides_of(in.v), strides_of(out)};
}

// Runs the plan of this shape. The first call of a shape makes its plan from `graph`. False if there is no plan, or if
// the library or the allocation of its workspace fails; then no later call tries that plan again.
template <class Make>
bool run(const char* name, const AttentionShape& shape, bool by_sums, const Tensor& on, const Make& graph,
         std::span<void* const> data) {
  State& s = state();
  const Stream& stream = stream_of(on);
  const OnDevice current(stream.index());
  std::lock_guard lock(s.mutex);
  auto& [library, plans] = s.devices.try_emplace(stream.index(), s.functions).first->second;
  const auto [at, fresh] = plans.try_emplace({shape, by_sums});
  Plan& plan = at->second;
  try {
    if (fresh) {
      check_io(library.usable(), "cudnnCreate failed");
      plan = library.plan(graph());
      if (!plan) cudnn().refused(text(name, ", ", shape.queries, " x ", shape.keys, " of ", shape.size, ": no engine"));
    }
    if (!plan) return false;
    const Scratch workspace(on.device(), std::max<int64_t>(1, Cudnn::workspace(*plan)));
    library.run(*plan, data, workspace.as<void>(), stream.handle());
  } catch (const Error& e) {
    (void)cudaGetLastError();  // clears the library's error, which is not from a launch of ours
    plan = nullptr;
    cudnn().refused(text(name, ", ", shape.queries, " x ", shape.keys, " of ", shape.size, ": ", e.what()));
    return false;
  }
  record(Recorded::Kind::launch, name);
  finish_launch(cudaSuccess, name, {}, stream);  // waits for this one, too, if launches are waited for
  return true;
}

template <class T> void* address(const Tensor& t) { return const_cast<T*>(t.data<T>()); }

}  // namespace

bool attention_forward_library(kernels::AttentionSpec spec, const Tensor& out, const Tensor& lse,
                               const kernels::AttentionInputs& in) {
  if (!can_attend(spec, in) || !by_packs(out)) return false;
  const AttentionShape shape = shape_of(spec, in, out);
  float scale = static_cast<float>(spec.scale), lowest = kLowest;
  void* const data[] = {address<bf16>(in.q),
                        address<bf16>(in.k),
                        address<bf16>(in.v),
                        write<bf16>(out),
                        write<float>(lse),
                        &scale,
                        &lowest};
  return run(
      "attention_forward.cudnn", shape, false, out, [&] { return attention_forward_graph(shape); }, data);
}

bool attention_backward_library(kernels::AttentionSpec spec, const kernels::AttentionGradients& out,
                                const kernels::AttentionSaved& saved) {
  const auto& [q, k, v, mask] = saved.in;
  if (!can_attend(spec, saved.in) || !by_packs(saved.out, saved.dout, out.dq, out.dk, out.dv)) return false;
  AttentionShape shape = shape_of(spec, saved.in, saved.out);
  shape.dout = strides_of(saved.dout);
  shape.dq = strides_of(out.dq);
  shape.dk = strides_of(out.dk);
  shape.dv = strides_of(out.dv);
  const bool by_sums = !deterministic();
  const int64_t rows = saved.sums.lse.numel(), pitch = round_up(rows, int64_t{64});  // both begin at 256 bytes
  const Scratch scratch(q.device(), (pitch + (by_sums ? rows * shape.size : 0)) * int64_t{sizeof(float)});
  float *dots = scratch.as<float>(), *sums = dots + pitch;
  if (by_sums)
    check_stream(stream_of(q), cudaMemsetAsync(sums, 0, static_cast<size_t>(rows * shape.size) * sizeof(float),
                                               stream_of(q).handle()));
  float scale = static_cast<float>(spec.scale), one = 1, lowest = kLowest;
  void* const data[] = {address<bf16>(q),
                        address<bf16>(k),
                        address<bf16>(v),
                        address<bf16>(saved.out),
                        address<float>(saved.sums.lse),
                        address<bf16>(saved.dout),
                        dots,
                        sums,
                        write<bf16>(out.dq),
                        write<bf16>(out.dk),
                        write<bf16>(out.dv),
                        &scale,
                        &one,
                        &lowest};
  return run(
      "attention_backward.cudnn", shape, by_sums, q, [&] { return attention_backward_graph(shape, by_sums); }, data);
}

}  // namespace isonorm::gpu

#else

namespace isonorm::gpu {

bool attention_forward_library(kernels::AttentionSpec, const Tensor&, const Tensor&, const kernels::AttentionInputs&) {
  return false;
}
bool attention_backward_library(kernels::AttentionSpec, const kernels::AttentionGradients&,
                                const kernels::AttentionSaved&) {
  return false;
}

}  // namespace isonorm::gpu

#endif
