// Kernels of a few lines of PTX, run on arrays of the host.
#pragma once

#include <string>
#include <vector>

#include "tests/ptx/block.h"
#include "tests/ptx/memory.h"
#include "tests/ptx/schedule.h"
#include "tests/support/catch.h"

namespace isonorm::ptx {

// An array that kernels may access, element by element up to its end.
template <class T> class Array {
 public:
  explicit Array(std::vector<T> values) : values_(std::move(values)) {
    add_memory(values_.data(), values_.size() * sizeof(T));
  }
  ~Array() { remove_memory(values_.data()); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  uint64_t address() const { return reinterpret_cast<uint64_t>(values_.data()); }
  const std::vector<T>& values() const { return values_; }

 private:
  std::vector<T> values_;
};

// kernel(p0, p1, p2) with registers %p, %r (32 bits), %f, %d (f64), %h (16 bits), %rd (64 bits) from 0 to 31. At its
// beginning %r0 is %tid.x, and %rd0, %rd1, %rd2 are the parameters. Line 1 of the text is the first line of `body`.
class Handwritten {
 public:
  explicit Handwritten(const std::string& body, const std::string& declarations = "") {
    module_ =
        parse(declarations +
              ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2) { .reg .pred %p<32>; .reg .b32 "
              "%r<32>; .reg .f32 %f<32>;"
              ".reg .f64 %d<32>; .reg .b16 %h<32>; .reg .b64 %rd<32>; mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [p0];"
              "ld.param.u64 %rd1, [p1]; ld.param.u64 %rd2, [p2]; " +
              body + " ret; }");
    kernel_ = std::make_unique<Kernel>(*module_->functions.at("k"));
  }
  void operator()(std::vector<uint64_t> parameters, Dim3 blocks = {}, Dim3 threads = {.x = 32}, size_t dynamic = 0) {
    parameters.resize(3);
    std::vector<std::byte> bytes(24);
    std::memcpy(bytes.data(), parameters.data(), bytes.size());
    kernel_->launch(blocks, threads, bytes, dynamic);
  }

 private:
  std::unique_ptr<Module> module_;
  std::unique_ptr<Kernel> kernel_;
};

// The results of `body` for each pair (a[i], b[i]), at most 1024. Inputs of 4 bytes are in %r1 and %r2, inputs of 8
// bytes in %rd3 and %rd4. A result of 4 bytes is left in %r3, of 8 bytes in %rd5.
template <class R, class T>
std::vector<R> results(const std::string& body, const std::vector<T>& a, const std::vector<T>& b) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  const auto type = [](size_t bytes) { return std::string(bytes == 4 ? ".b32" : ".b64"); };
  const auto each = [](int k, size_t bytes) {
    return "mul.wide.u32 %rd9, %r0, " + std::to_string(bytes) + "; add.s64 %rd" + std::to_string(k) + ", %rd" +
           std::to_string(k) + ", %rd9; ";
  };
  Handwritten kernel(each(0, sizeof(R)) + each(1, sizeof(T)) + each(2, sizeof(T)) + "ld.global" + type(sizeof(T)) +
                     (sizeof(T) == 4 ? " %r1" : " %rd3") + ", [%rd1]; ld.global" + type(sizeof(T)) +
                     (sizeof(T) == 4 ? " %r2" : " %rd4") + ", [%rd2]; " + body + " st.global" + type(sizeof(R)) +
                     " [%rd0], " + (sizeof(R) == 4 ? "%r3;" : "%rd5;"));
  const Array<R> out(std::vector<R>(a.size()));
  const Array<T> first(a), second(b);
  kernel({out.address(), first.address(), second.address()}, {}, {.x = static_cast<uint32_t>(a.size())});
  return out.values();
}
inline std::vector<float> f32_results(const std::string& body, const std::vector<float>& a,
                                      const std::vector<float>& b) {
  return results<float>("mov.b32 %f1, %r1; mov.b32 %f2, %r2; " + body + " mov.b32 %r3, %f3;", a, b);
}

// Runs f() forwards, in reverse, and in drawn orders.
template <class F> void in_every_order(F f) {
  const Schedule before = schedule();
  for (int order = 0; order < 6; ++order) {
    INFO("order " << order);
    schedule() = order == 0   ? Schedule()
                 : order == 1 ? Schedule(Schedule::Order::reverse)
                              : Schedule(Schedule::Order::drawn, static_cast<uint64_t>(order));
    f();
  }
  schedule() = before;
}

}  // namespace isonorm::ptx
