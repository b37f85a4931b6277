// Kernel slots: the functions that ops call. A slot holds one function per instruction set of the CPU and one per other
// device. Its declaration names the CPU functions (a missing one does not link); a GPU library fills in the rest when
// it is first asked for a device.
#pragma once

#include <algorithm>
#include <span>
#include <tuple>
#include <type_traits>

#include "core/device.h"
#include "core/kernels/isa.h"
#include "core/system/float_environment.h"
#include "core/system/profile.h"
#include "core/tensor.h"

namespace isonorm {

// A struct of tensors lists them once, for profiles, device checks and copies to a device:
// static auto tensors(auto& s) { return std::tie(s.a, s.b); }
template <class S>
concept HoldsTensors = requires(S& s) {
  std::remove_const_t<S>::tensors(s);
};

// Calls f for every tensor in an argument, including undefined ones. Numbers and sizes have none.
template <class F> void each_tensor(F&& f, const Tensor& t) { f(t); }
template <class F, class T> void each_tensor(F&& f, const T& argument) {
  if constexpr (HoldsTensors<const T>)
    std::apply([&](const auto&... part) { (each_tensor(f, part), ...); }, T::tensors(argument));
}
template <class F, class T> void each_tensor(F&& f, std::span<const T> list) {
  for (const T& item : list) each_tensor(f, item);
}

// Bytes of the elements that the tensor refers to. A broadcast element counts once. 0 if undefined.
int64_t tensor_bytes(const Tensor& x);

inline int64_t bytes_of_all(const auto&... arguments) {
  int64_t bytes = 0;
  (each_tensor([&](const Tensor& t) { bytes += tensor_bytes(t); }, arguments), ...);
  return bytes;
}

template <class Signature> class Kernel;

template <class... A> class Kernel<void(A...)> {
 public:
  using Function = void (*)(A...);
  // Counts something about a call, for the profile. flops: floating-point operations. reread: bytes of tensors that a
  // call both reads and writes although its arguments name them once.
  using Count = int64_t (*)(A...);

  // One function for every instruction set.
  constexpr Kernel(const char* name, Function cpu, Count flops = nullptr, Count reread = nullptr)
      : name_(name), cpu_{cpu, cpu, cpu}, flops_(flops), reread_(reread) {}

  // pick.operator()<isa>() returns the function compiled for `isa`.
  template <class Pick>
  constexpr Kernel(const char* name, Pick pick, Count flops = nullptr, Count reread = nullptr)
      : name_(name),
        cpu_{pick.template operator()<kCompiled[0]>(), pick.template operator()<kCompiled[1]>(),
             pick.template operator()<kCompiled[2]>()},
        flops_(flops),
        reread_(reread) {}

  // Runs the kernel on `device`, in the default floating-point environment. Throws "softmax: no kernel for cuda:0" if
  // the slot is empty, and throws if a tensor is on another device.
  void on(Device device, A... args) const {
    const Function f = device.kind == DeviceKind::cpu ? cpu() : cuda_;
    check(f != nullptr, name_, ": no kernel for ", device);
    (each_tensor([&](const Tensor& t) { check_place(t, device); }, args), ...);
    const DefaultFloatEnvironment environment;
    if (profile::recording()) [[unlikely]] {
      const int64_t bytes = bytes_of_all(args...) + (reread_ ? reread_(args...) : 0);
      const profile::Timer timer(name_, bytes, flops_ ? flops_(args...) : 0, device);
      return f(args...);
    }
    f(args...);
  }

  void bind_cuda(Function f) { cuda_ = f; }
  Function cuda() const { return cuda_; }
  Function cpu() const { return cpu_[static_cast<int>(std::min(isa(), Isa::avx512))]; }
  const char* name() const { return name_; }

 private:
  void check_place(const Tensor& t, Device device) const {
    if (t.defined())
      check(t.device() == device, name_, ": a tensor of shape ", t.shape(), " lies on ", t.device(), ", the others on ",
            device);
  }

  const char* name_;
  Function cpu_[3];
  Function cuda_ = nullptr;
  Count flops_, reread_;
};

}  // namespace isonorm
