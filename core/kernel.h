// Kernel slots: what an op calls. A slot holds one function per instruction set of the CPU and one per other device.
// The CPU functions are given where the slot is declared (one that is missing does not link); a GPU library fills in
// the rest when it is asked for a device.
#pragma once

#include "core/device.h"

namespace isonorm {

// Instruction sets that the kernel sources are compiled for: x86-64 as of 2003, AVX2 + FMA, AVX-512 (F, DQ, BW, VL).
enum class Isa { base, avx2, avx512 };

// The best one of this machine; ISONORM_ISA=base|avx2|avx512 in the environment lowers it.
Isa isa();
const char* name_of(Isa isa);

template <class Signature> class Kernel;

template <class... A> class Kernel<void(A...)> {
 public:
  using Function = void (*)(A...);

  // One function for every instruction set.
  constexpr Kernel(const char* name, Function cpu) : name_(name), cpu_{cpu, cpu, cpu} {}

  // pick.operator()<isa>() gives the function compiled for `isa`.
  template <class Pick>
  constexpr Kernel(const char* name, Pick pick)
#ifdef __x86_64__
      : name_(name),
        cpu_{pick.template operator()<Isa::base>(), pick.template operator()<Isa::avx2>(),
             pick.template operator()<Isa::avx512>()} {}
#else
      : name_(name),
        cpu_{pick.template operator()<Isa::base>(), pick.template operator()<Isa::base>(),
             pick.template operator()<Isa::base>()} {
  }
#endif

        // Runs the kernel where `device` is. Throws "softmax: no kernel for cuda:0" on an empty slot.
        void on(Device device, A... args) const {
    const Function f = device.kind == DeviceKind::cpu ? cpu_[static_cast<int>(isa())] : cuda_;
    check(f != nullptr, name_, ": no kernel for ", device);
    f(args...);
  }

  void bind_cuda(Function f) { cuda_ = f; }
  const char* name() const { return name_; }

 private:
  const char* name_;
  Function cpu_[3];
  Function cuda_ = nullptr;
};

}  // namespace isonorm
