// Attention's kernels on a device against the CPU's in f64: more than one tile, ragged ends, heads in place, packed
// projections, masks, and bf16 heads of 64 by tensor cores. The same bits with every schedule.
#include "core/kernels/attention.h"

#include <set>

#include "gpu/device.h"
#include "gpu/recorder.h"
#include "tests/support/emulation.h"
#include "tests/support/ops.h"
#include "tests/support/random.h"

using namespace isonorm;
using namespace isonorm::test;

namespace {

constexpr Device kGpu{DeviceKind::cuda, 0};

struct Case {
  int64_t batch, heads, queries, keys, size, values;
  bool causal = false, packed = false, masked = false;
  double spread = 1, shift = 0;  // standard deviation of queries and keys; their mean, with opposite signs
  int64_t ahead = 0;             // for causal attention
};

// Elements of q, k, v and dout, [batch, time, heads, size], and of a mask [1, heads, queries, keys], on the host.
struct Inputs {
  Tensor q, k, v, dout, mask;
};
Inputs inputs_of(const Case& c, DType dtype) {
  const auto normal = [&](int64_t time, int64_t size, unsigned seed, double spread, double shift) {
    return randn({c.batch, time, c.heads, size}, seed, shift, spread, dtype);
  };
  Inputs in{normal(c.queries, c.size, 1, c.spread, c.shift),
            normal(c.keys, c.size, 2, c.spread, -c.shift),
            normal(c.keys, c.values, 3, 1, 0),
            normal(c.queries, c.values, 4, 1, 0),
            {}};
  if (!c.masked) return in;
  std::vector<double> mask = randn({c.heads, c.queries, c.keys}, 5).to_vector<double>();
  for (size_t i = 0; i < mask.size(); ++i)
    if (i % static_cast<size_t>(c.keys) > 0 && mask[i] < 0) mask[i] = -HUGE_VAL;
  in.mask = detached::to(from_vector(mask, {1, c.heads, c.queries, c.keys}), dtype);
  return in;
}

struct Results {
  Tensor out, lse, dq, dk, dv;  // on the host, contiguous
};

Tensor on_host(const Tensor& t) { return detached::contiguous(to(t, kCpu)); }

// Forward and backward on `device` in `dtype`.
Results run(const Case& c, const Inputs& in, DType dtype, Device device) {
  const auto heads = [](const Tensor& t) { return detached::transpose(t, 1, 2); };
  const auto place = [&](const Tensor& t) { return to(detached::to(t, dtype), device); };
  const auto part = [&](const Tensor& packed, int i) {
    const int64_t width = c.heads * c.size;
    return as_strided(packed, {c.batch, c.heads, c.queries, c.size}, {c.queries * 3 * width, c.size, 3 * width, 1},
                      i * width);
  };
  kernels::AttentionSaved saved;
  kernels::AttentionGradients d;
  if (c.packed) {
    const Tensor host = empty({c.batch, c.queries, 3 * c.heads * c.size}, {dtype});
    int i = 0;
    for (const Tensor* t : {&in.q, &in.k, &in.v}) copy_into(part(host, i++), heads(detached::to(*t, dtype)));
    const Tensor qkv = place(host), dqkv = empty(qkv.shape(), qkv.options());
    saved.in = {part(qkv, 0), part(qkv, 1), part(qkv, 2), {}};
    d = {part(dqkv, 0), part(dqkv, 1), part(dqkv, 2)};
  } else {
    saved.in = {heads(place(in.q)), heads(place(in.k)), heads(place(in.v)), {}};
    const auto like = [&](const Tensor& t) {
      return heads(empty({t.size(0), t.size(2), t.size(1), t.size(3)}, t.options()));
    };
    d = {like(saved.in.q), like(saved.in.k), like(saved.in.v)};
  }
  if (c.masked) saved.in.mask = detached::expand(place(in.mask), {c.batch, c.heads, c.queries, c.keys});
  saved.dout = heads(place(in.dout));
  saved.out = heads(empty(in.dout.shape(), {dtype, device}));
  const auto numbers = [&] { return empty({c.batch, c.heads, c.queries}, {acc_dtype(dtype), device}); };
  saved.sums = {dtype == DType::bf16 ? Tensor() : numbers(), numbers()};
  const kernels::AttentionSpec spec{1 / std::sqrt(std::max(1.0, static_cast<double>(c.size))), c.causal, c.ahead};
  kernels::attention_forward.on(device, spec, saved.out, saved.sums, saved.in);
  kernels::attention_backward.on(device, spec, d, saved);
  const Tensor lse = on_host(saved.sums.lse);
  return {on_host(saved.out), saved.sums.top.defined() ? add(on_host(saved.sums.top), lse) : lse, on_host(d.dq),
          on_host(d.dk), on_host(d.dv)};
}

// Checks out, lse and gradients against the results in f64. values, gradients: tolerances relative to the largest
// number.
void check_case(const Case& c, DType dtype, double values, double gradients) {
  INFO(name_of(dtype) << " " << c.batch << " x " << c.heads << " heads of " << c.size << ", " << c.values << ": "
                      << c.queries << " queries, " << c.keys << " keys, causal " << c.causal << ", packed " << c.packed
                      << ", mask " << c.masked << ", spread " << c.spread);
  const Inputs in = inputs_of(c, dtype);
  const Results expected = run(c, in, DType::f64, Device{}), got = run(c, in, dtype, kGpu);
  gradients *= c.spread;  // differences of products that grow with the scores
  const double small = acc_dtype(dtype) == DType::f64 ? 1e-13 : 1e-5;
  if (c.ahead >= 0) check_close(got.lse, expected.lse, small);  // infinite if a query sees nothing
  check_close(got.out, expected.out, values);
  check_close(got.dq, expected.dq, gradients);
  check_close(got.dk, expected.dk, gradients);
  check_close(got.dv, expected.dv, gradients);
}

std::set<std::string> kernels_of(const Case& c, DType dtype) {
  const gpu::Recorder recorder;
  run(c, inputs_of(c, dtype), dtype, kGpu);
  std::set<std::string> names;
  for (const gpu::Recorded& r : recorder.all())
    if (r.kind == gpu::Recorded::Kind::launch && r.name.starts_with("attention")) names.insert(r.name);
  return names;
}

constexpr double kRound = 0x1p-9;  // relative error of rounding to bf16

}  // namespace

TEST_CASE("attention of any size, with masks and in place, by tiles") {
  const Case cases[] = {{1, 2, 70, 100, 5, 3},
                        {2, 1, 100, 70, 3, 4, true},
                        {1, 1, 66, 66, 70, 70, true, true},
                        {1, 2, 40, 40, 8, 8, false, true},
                        {1, 2, 65, 67, 20, 68, false, false, true},
                        {2, 2, 33, 65, 4, 33, true, false, true},
                        {1, 1, 3, 130, 33, 5, false, false, false, 2},
                        {1, 2, 70, 150, 5, 3, true, false, false, 1, 0, 80},  // causal from the last query and key
                        {2, 1, 150, 70, 3, 4, true, false, true, 1, 0, -80},  // some queries see nothing
                        {1, 1, 30, 140, 6, 2, true, false, false, 1, 0, 67},
                        {1, 1, 5, 70, 0, 2},
                        {1, 1, 70, 5, 0, 2},
                        {1, 1, 2, 3, 2, 0},
                        {1, 2, 0, 3, 4, 4},
                        {1, 2, 0, 3, 64, 64},
                        {1, 2, 3, 0, 4, 4},
                        {1, 2, 3, 0, 64, 64}};
  for (const Case& c : cases) {
    if (c.keys > 0) {
      check_case(c, DType::f64, 1e-13, 1e-12);
      check_case(c, DType::f32, 1e-5, 1e-4);
      check_case(c, DType::bf16, 2 * kRound, 8 * kRound);
      continue;
    }
    for (const DType dtype : {DType::f32, DType::bf16}) {  // nothing to attend to: zeros
      const Results got = run(c, inputs_of(c, dtype), dtype, kGpu);
      for (const Tensor& t : {got.out, got.dq}) CHECK(same_bytes(t, zeros(t.shape(), {dtype})));
    }
  }
}

TEST_CASE("attention of heads of 64 in bf16 by tensor cores") {
  const std::pair<int64_t, int64_t> lengths[] = {{1, 1},   {17, 17},   {64, 64},  {65, 63},  {63, 130},
                                                 {128, 1}, {130, 200}, {200, 70}, {129, 129}};
  for (const auto& [queries, keys] : lengths)
    for (const bool causal : {false, true}) {
      check_case({1, 1, queries, keys, 64, 64, causal}, DType::bf16, 3 * kRound, 8 * kRound);
      if (queries == keys) check_case({2, 3, queries, keys, 64, 64, causal, true}, DType::bf16, 3 * kRound, 8 * kRound);
    }
  check_case({1, 1, 100, 100, 64, 64, true, false, false, 3}, DType::bf16, 3 * kRound, 8 * kRound);
  // Scores of -128: a weight past the end would be e^128. Gradients are small differences here: only that they are
  // numbers.
  check_case({1, 1, 70, 70, 64, 64, false, false, false, 0.5, 4}, DType::bf16, 3 * kRound, 0.5);
}

TEST_CASE("tensor cores are used if they can be") {
  for (const gpu::LibraryFacts& library : gpu::libraries())
    if (library.why_none.empty()) return;  // the library computes it; see ISONORM_GPU_LIBRARIES
  const std::set<std::string> fast = kernels_of({1, 2, 5, 5, 64, 64, true, true}, DType::bf16);
  CHECK(fast == std::set<std::string>{"attention_forward.bf16", "attention_backward.rows_bf16",
                                      "attention_backward.keys_bf16", "attention_backward.queries_bf16"});
  CHECK(kernels_of({1, 1, 1, 1, 64, 64}, DType::bf16) == fast);
  const std::set<std::string> plain{"attention_forward.rows", "attention_backward.dots", "attention_backward.q",
                                    "attention_backward.k", "attention_backward.v"};
  CHECK(kernels_of({1, 2, 5, 5, 64, 64}, DType::f32) == plain);
  CHECK(kernels_of({1, 2, 5, 5, 64, 64, false, false, true}, DType::bf16) == plain);
  CHECK(kernels_of({1, 2, 5, 5, 64, 32}, DType::bf16) == plain);
  CHECK(kernels_of({1, 2, 5, 5, 32, 64}, DType::bf16) == plain);
}

TEST_CASE("attention has the same bits with every schedule") {
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const Case c{1, 2, 70, 70, 64, 64, true, true};
    const Inputs in = inputs_of(c, dtype);
    Results first;
    in_orders(4, [&](uint64_t order) {
      const Results got = run(c, in, dtype, kGpu);
      if (order == 0) first = got;
      for (const auto part : {&Results::out, &Results::lse, &Results::dq, &Results::dk, &Results::dv})
        CHECK(same_bytes(got.*part, first.*part));
    });
  }
}
