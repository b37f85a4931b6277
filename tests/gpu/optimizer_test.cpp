// Kernels of optimizers on a device against the CPU's: more tensors than fit into a table, several pieces, ragged ends,
// addresses that are not multiples of 16 bytes, alternating dtypes.
#include "core/kernels/optimizer.h"

#include "core/memory/storage.h"
#include "gpu/device.h"
#include "gpu/recorder.h"
#include "tests/support/ops.h"
#include "tests/support/random.h"

using namespace isonorm;
using namespace isonorm::test;

namespace {

constexpr Device kGpu{DeviceKind::cuda, 0};

// A copy of a contiguous host tensor, `skip` elements into memory of its own, surrounded by sevens.
Tensor placed(const Tensor& host, int64_t skip, Device device) {
  const int64_t n = host.numel() + skip + 3;
  const Tensor all = empty({n}, {host.dtype()});
  fill(all, 7);
  copy_into(as_strided(all, host.shape(), host.strides(), skip), host);
  return as_strided(to(all, device), host.shape(), host.strides(), skip);
}
// The whole memory of t's storage.
Tensor memory_of(const Tensor& t) {
  const int64_t n = t.impl().storage->bytes() / size_of(t.dtype());
  return to(as_strided(t, {n}, {1}, 0), kCpu);
}

// Sizes around packs, pieces and their ends, and many small ones: more than fit into a table.
std::vector<int64_t> sizes() {
  std::vector<int64_t> n{1, 4096, 0, 4097, 8195, 12288, 3, 16, 17, 5000};
  for (int64_t i = 0; i < 25; ++i) n.push_back(i);
  return n;
}

// Lists of the same tensors on the host and on the device.
struct Lists {
  std::vector<Tensor> host, device;
  void add(const Tensor& t, int64_t skip) {
    host.push_back(placed(t, skip, Device{}));
    device.push_back(placed(t, skip, kGpu));
  }
  void check_memory(double tolerance) const {
    for (size_t i = 0; i < host.size(); ++i) {
      INFO("tensor " << i << " of " << name_of(host[i].dtype()) << ", " << host[i].numel() << " elements");
      if (tolerance == 0)
        CHECK(same_bytes(memory_of(device[i]), memory_of(host[i])));
      else
        check_close(memory_of(device[i]), memory_of(host[i]), tolerance);
    }
  }
};
Lists lists_of(bool mixed) {
  Lists lists;
  const DType dtypes[] = {DType::f32, DType::f64, DType::bf16};
  unsigned seed = 0;
  for (int64_t n : sizes()) {
    const DType dtype = dtypes[mixed ? seed / 2 % 3 : 0];
    lists.add(randn({n}, seed, 0, 2, dtype), seed % 4 == 1 ? 1 : 0);
    ++seed;
  }
  return lists;
}

template <class Rule> void check_rule(const Rule& rule, DType dtype) {
  INFO("rule " << UpdateRule(rule).index() << " in " << name_of(dtype));
  const DType acc = acc_dtype(dtype);
  Lists gradients, parameters, states[3];
  unsigned seed = 0;
  std::vector<kernels::Update> host, device;
  for (int64_t n : sizes()) {
    ++seed;
    const int64_t skip = seed % 5 == 0;
    gradients.add(randn({n}, seed, 0, 1, dtype), skip);
    parameters.add(randn({n}, seed + 1000, 0, 1, dtype), seed % 7 == 0);
    kernels::Update h{.gradient = gradients.host.back(),
                      .parameter = parameters.host.back(),
                      .state = {},
                      .gradient_scale = 0.5 + seed,
                      .l2 = 0.01 * seed,
                      .keep = 1 - 0.001 * seed,
                      .rule = rule};
    kernels::Update d = h;
    d.gradient = gradients.device.back();
    d.parameter = parameters.device.back();
    for (int s = 0; s < Rule::kStates; ++s) {
      const Tensor positive = detached::to(randn({n}, seed + 2000, 5, 0.5), acc);  // rules take its square root
      states[s].add(positive, seed % 11 == 0);
      h.state[s] = states[s].host.back();
      d.state[s] = states[s].device.back();
    }
    host.push_back(h);
    device.push_back(d);
  }
  kernels::update.on(Device{}, host);
  kernels::update.on(kGpu, device);
  const double tolerance = 16 * (acc == DType::f64 ? 0x1p-53 : 0x1p-24);
  gradients.check_memory(0);
  parameters.check_memory(dtype == DType::bf16 ? 0x1p-8 : tolerance);
  for (int s = 0; s < Rule::kStates; ++s) states[s].check_memory(tolerance);
}

}  // namespace

TEST_CASE("every rule steps on a device as on the CPU") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const rules::Adam adam = rules::Adam::at(3, 0.1, 0.9, 0.99, 1e-6);
    check_rule(rules::Sgd{0.1}, dtype);
    check_rule(rules::Momentum{0.1, 0.9, 0.8, 0.3, 0.7}, dtype);
    check_rule(rules::Sign{0.1}, dtype);
    check_rule(rules::Lion{0.1, 0.9, 0.8}, dtype);
    check_rule(adam, dtype);
    check_rule(rules::Rmsprop<false, false>{0.1, 0.9, 1e-6, 0.9}, dtype);
    check_rule(rules::Rmsprop<false, true>{0.1, 0.9, 1e-6, 0.9}, dtype);
    check_rule(rules::Adagrad{0.1, 1e-6}, dtype);
    check_rule(rules::Average{0.2}, dtype);
    check_rule(rules::LambDirection{adam, 0.1}, dtype);
    check_rule(rules::Along{0.1}, dtype);
  }
}

TEST_CASE("a run of one rule and dtype is a launch for each 33 parameters of plain SGD") {
  std::vector<kernels::Update> updates;
  for (int i = 0; i < 60; ++i)
    updates.push_back({.gradient = placed(randn({3}, 1), 0, kGpu),
                       .parameter = placed(randn({3}, 2), 0, kGpu),
                       .state = {},
                       .rule = rules::Sgd{0.1}});
  const gpu::Recorder recorder;
  kernels::update.on(kGpu, updates);
  CHECK(recorder.count(gpu::Recorded::Kind::launch) == 2);
}

TEST_CASE("sums of squares on a device are the CPU's") {
  const Lists lists = lists_of(true);
  const int64_t n = std::ssize(lists.host);
  const Tensor host = empty({n}, {DType::f64}), device = empty({n}, {DType::f64, kGpu});
  kernels::sum_squares.on(Device{}, lists.host, host);
  kernels::sum_squares.on(kGpu, lists.device, device);
  const std::vector<double> expected = host.to_vector<double>(), got = memory_of(device).to_vector<double>();
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("tensor " << i << ", " << lists.host[i].numel() << " elements");
    CHECK(std::abs(got[i] - expected[i]) <= 1e-13 * expected[i]);
  }
  lists.check_memory(0);
  kernels::sum_squares.on(kGpu, {}, empty({0}, {DType::f64, kGpu}));
}

TEST_CASE("scale and clamp on a device have the CPU's bits") {
  const Lists scaled = lists_of(true), clamped = lists_of(true);
  kernels::scale.on(Device{}, scaled.host, 0.3);
  kernels::scale.on(kGpu, scaled.device, 0.3);
  scaled.check_memory(0);
  for (const std::vector<Tensor>* list : {&clamped.host, &clamped.device}) {
    const Tensor there = (*list)[1];
    copy_into(as_strided(there, {3}, {1}, there.impl().offset), tensor<double>({NAN, -INFINITY, INFINITY}));
  }
  kernels::clamp.on(Device{}, clamped.host, 0.5);
  kernels::clamp.on(kGpu, clamped.device, 0.5);
  clamped.check_memory(0);
}
