// A CUDA function for any slot, made of its CPU function: the storages behind a call's tensors are copied to the host,
// the CPU function runs there, and the storages that it wrote to are copied back. What was written follows from the
// version of the host's copies.
//
// Where the slot takes bf16, or bf16 beside f32, on a device and not on the CPU (native_bf16()), the copies are of f32:
// the CPU function accumulates in f32 as a kernel would, and its results are rounded once.
#pragma once

#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/kernels/attention.h"
#include "core/kernels/copy.h"
#include "core/kernels/kernel.h"
#include "core/kernels/matmul.h"
#include "core/kernels/mlp.h"
#include "core/kernels/norm.h"
#include "core/memory/pool.h"
#include "core/view.h"

namespace isonorm::test {

// Copies on the host of the storages behind one call's arguments. Two tensors over one storage have one copy: what is in
// place stays in place.
class HostTwins {
 public:
  explicit HostTwins(bool widen) : widen_(widen) {}

  Tensor of(const Tensor& t) {
    if (!t.defined()) return t;
    const TensorImpl& i = t.impl();
    const DType dtype = widened(i.dtype);
    return Tensor(pool::make_shared<TensorImpl>(twin_of(i.storage, i.dtype).impl().storage, i.shape, i.strides,
                                                i.offset, i.numel, dtype, i.contiguous));
  }
  // Numbers as they are; a struct of tensors member by member.
  template <class T> T of(const T& argument) {
    T copy = argument;
    if constexpr (HoldsTensors<T>)
      std::apply([&](auto&... part) { ((part = of(std::as_const(part))), ...); }, T::tensors(copy));
    return copy;
  }
  template <class T> std::span<const T> of(std::span<const T> list) {
    auto copies = std::make_shared<std::vector<T>>();
    for (const T& item : list) copies->push_back(of(item));
    lists_.push_back(copies);
    return *copies;
  }

  void write_back() const {
    for (const Twin& t : twins_) {
      if (t.host.impl().storage->version() == t.version || t.host.numel() == 0) continue;
      t.device.impl().storage->bump_version();
      kernels::transfer(t.device, detached::to(t.host, t.device.dtype()));
    }
  }

 private:
  struct Twin {
    Tensor device, host;  // all of the storage, the host's in the dtype that the call sees
    uint32_t version;
  };
  DType widened(DType dtype) const { return widen_ && dtype == DType::bf16 ? DType::f32 : dtype; }
  Tensor twin_of(const std::shared_ptr<Storage>& storage, DType dtype) {
    for (const Twin& t : twins_)
      if (t.device.impl().storage == storage) return t.host;
    const int64_t n = storage->bytes() / size_of(dtype);
    const Tensor device(pool::make_shared<TensorImpl>(storage, Dims{n}, Dims{1}, 0, n, dtype, true));
    Tensor host = empty({n}, {dtype});
    if (n > 0) kernels::transfer(host, device);
    host = detached::to(host, widened(dtype));
    return twins_.emplace_back(Twin{device, host, host.impl().storage->version()}).host;
  }

  bool widen_;
  std::vector<Twin> twins_;
  std::vector<std::shared_ptr<void>> lists_;
};

template <auto& slot, class Signature> struct Fallback;
template <auto& slot, class... A> struct Fallback<slot, Kernel<void(A...)>> {
  static void run(A... arguments) {
    HostTwins twins(widens(arguments...));
    const std::tuple<std::decay_t<A>...> host{twins.of(arguments)...};
    std::apply([](const auto&... a) { slot.cpu()(a...); }, host);
    twins.write_back();
  }

  template <auto&> struct Name;  // by type: a sanitizer does not let addresses be compared in constants
  template <auto&... slots> static constexpr bool kIsOneOf = (std::is_same_v<Name<slot>, Name<slots>> || ...);

  // A product whose tensors are of bf16; mlp takes one of bf16 among others of f32 on the CPU, too.
  static bool widens(const A&... arguments) {
    constexpr bool product = kIsOneOf<kernels::matmul, kernels::weight_gradient, kernels::attention_forward,
                                      kernels::attention_backward>,
                   mlp = kIsOneOf<kernels::mlp_forward, kernels::mlp_backward>,
                   norm = kIsOneOf<kernels::norm_forward, kernels::norm_backward>;
    bool any = false, all = true;
    if constexpr (product || mlp || norm) {
      const auto look = [&](const Tensor& t) {
        if (t.defined()) any |= t.dtype() == DType::bf16, all &= t.dtype() == DType::bf16;
      };
      (each_tensor(look, arguments), ...);
    }
    return (product && any) || (mlp && all) || (norm && any && !all);
  }
};

// Gives the slot its fallback; false where it has a kernel of its own.
template <auto& slot> bool bind_fallback() {
  if (slot.cuda()) return false;
  slot.bind_cuda(&Fallback<slot, std::remove_cvref_t<decltype(slot)>>::run);
  return true;
}

}  // namespace isonorm::test
