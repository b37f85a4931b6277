// The behaviour of every group of ranks, for any transport: the same checks for threads (threads_test.cpp), processes
// (processes/main.cpp) and tensors on GPUs (devices/). Each rank knows all other ranks' data, so it computes the
// expected results alone. Throws if a call gives something else.
#pragma once

#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/kernels/copy.h"
#include "core/tensor.h"
#include "distributed/group.h"

namespace isonorm::test {

// Element i on rank r.
template <class T> T element(int r, int64_t i) {
  return static_cast<T>(std::is_integral_v<T> ? static_cast<double>(r * 1000 + i) : std::sin(r * 7.1 + i * 0.3));
}

template <class T> std::vector<T> elements(int r, int64_t n) {
  std::vector<T> x;
  for (int64_t i = 0; i < n; ++i) x.push_back(element<T>(r, i));
  return x;
}

// The sum over all ranks in their order; in f32 for bf16.
template <class T> T sum_of_ranks(int size, int64_t i) {
  acc_t<T> sum = element<T>(0, i);
  for (int r = 1; r < size; ++r) sum += static_cast<acc_t<T>>(element<T>(r, i));
  return static_cast<T>(sum);
}

inline Tensor on(Device device, const Tensor& x) {
  if (x.device() == device) return x;
  const Tensor there = empty(x.shape(), {x.dtype(), device});
  copy_into(there, x);
  return there;
}

template <class T> void demand_equal(const Tensor& given, const std::vector<T>& expected, const char* what) {
  const Tensor x = on(kCpu, given);
  check(x.dtype() == dtype_of<T> && x.numel() == std::ssize(expected), what, ": ", x.dtype(), ' ', x.shape());
  for (size_t i = 0; i < expected.size(); ++i)
    if (std::memcmp(x.data<T>() + i, &expected[i], sizeof(T)) != 0)
      check(false, what, ": element ", i, " of ", expected.size(), " of ", x.dtype(), " is not the expected one");
}

template <class T> void check_calls(distributed::Group& g, int64_t n, Device device) {
  const auto here = [&](const std::vector<T>& values, const Dims& shape) {
    return on(device, from_vector(values, shape));
  };
  const auto own = [&](const Dims& shape) { return here(elements<T>(g.rank(), n), shape); };
  std::vector<T> sums, all;
  for (int64_t i = 0; i < n; ++i) sums.push_back(sum_of_ranks<T>(g.size(), i));
  for (int r = 0; r < g.size(); ++r)
    for (int64_t i = 0; i < n; ++i) all.push_back(element<T>(r, i));

  const Tensor x = own({n});
  g.all_reduce(x);
  demand_equal(x, sums, "all_reduce");

  const std::vector<Tensor> several = {own({n}), here(std::vector<T>{element<T>(g.rank(), 5)}, {}),
                                       empty({0}, {dtype_of<T>, device}), own({1, n})};
  g.all_reduce(several);
  demand_equal(several[0], sums, "all_reduce of several");
  demand_equal(several[1], std::vector<T>{sum_of_ranks<T>(g.size(), 5)}, "all_reduce of several");
  demand_equal(several[3], sums, "all_reduce of several");

  // Two parts on each rank, as if there were twice the number of ranks.
  const std::vector<Tensor> parts[] = {{here(elements<T>(2 * g.rank(), n), {n})},
                                       {here(elements<T>(2 * g.rank() + 1, n), {n})}};
  std::vector<T> twice;
  for (int64_t i = 0; i < n; ++i) twice.push_back(sum_of_ranks<T>(2 * g.size(), i));
  g.all_reduce(parts);
  demand_equal(parts[0][0], twice, "all_reduce of parts");

  const Tensor gathered = g.all_gather(own({n, 1}));
  check(gathered.shape() == Dims{g.size() * n, 1}, "all_gather: ", gathered.shape());
  demand_equal(gathered, all, "all_gather");

  std::vector<T> rows, mine;  // 2 rows of 3 for every rank
  for (int64_t i = 0; i < 6 * g.size(); ++i) rows.push_back(element<T>(g.rank(), i));
  for (int64_t i = 6 * g.rank(); i < 6 * (g.rank() + 1); ++i) mine.push_back(sum_of_ranks<T>(g.size(), i));
  const Tensor scattered = g.reduce_scatter(here(rows, {2 * g.size(), 3}));
  check(scattered.shape() == Dims{2, 3}, "reduce_scatter: ", scattered.shape());
  demand_equal(scattered, mine, "reduce_scatter");

  for (int root = 0; root < g.size(); ++root) {
    const std::vector<Tensor> two = {own({n}), own({n, 1})};
    g.broadcast(two, root);
    for (const Tensor& y : two) demand_equal(y, elements<T>(root, n), "broadcast");
  }
}

// Throws unless f throws a Disagreement whose message contains `part`. Every rank calls it.
template <class F> void demand_disagreement(const std::string& part, const F& f) {
  try {
    f();
  } catch (const distributed::Disagreement& e) {
    const std::string line = e.what();
    check(line.find(part) != line.npos, "the line is '", line, "', expected '", part, "'");
    return;
  }
  check(false, "nothing was thrown, expected '", part, "'");
}

// most: limit on n * ranks, the elements that a rank computes for all ranks' tensors.
inline void check_group(distributed::Group& g, Device device = kCpu, int64_t most = 500'000) {
  for (const int64_t n : {1, 7, 100, 4'096, 70'001}) {
    if (n * g.size() > (g.size() > 7 ? 500 : most)) continue;  // each rank computes all other ranks' data
    check_calls<float>(g, n, device);
    check_calls<double>(g, n, device);
    check_calls<bf16>(g, n, device);
    check_calls<int64_t>(g, n, device);
  }

  // Groups of the even and of the odd ranks, in reverse order.
  distributed::Group half = g.split(g.rank() % 2, -g.rank());
  const int members = (g.size() + 1 - g.rank() % 2) / 2;
  check(half.size() == members && half.rank() == members - 1 - g.rank() / 2, "split: rank ", half.rank(), " of ",
        half.size());
  const Tensor ranks = on(kCpu, half.all_gather(on(device, from_vector(std::vector<int64_t>{g.rank()}, {1}))));
  for (int i = 0; i < members; ++i)
    check(ranks.data<int64_t>()[i] == 2 * (members - 1 - i) + g.rank() % 2, "split: member ", i);
  g.barrier();
  check(!g.any(false) && g.any(true) && g.any(g.rank() == g.size() - 1), "any: it is so on the last rank alone");

  const Tensor same = on(device, from_vector(elements<float>(0, 9), {3, 3}));
  const auto named = [&same](const Tensor& bias) {
    TensorMap tensors;
    tensors.add("head.weight", same);
    tensors.add("head.bias", bias);
    return tensors;
  };
  g.check_same(named(same), "weight");
  g.check_same(std::string("words"), "order");
  bool ran = false;
  g.on_first([&] { ran = true; });
  check(ran == (g.rank() == 0), "on_first: rank ", g.rank(), ran ? " has" : " has not", " run it");
  if (g.size() == 1) return;
  const int last = g.size() - 1;
  const bool odd = g.rank() == last;
  const std::string rank = g.name_of(last), first = g.name_of(0);
  demand_disagreement(rank + " has another weight than " + first + ": head.bias, on rank 0 f32 [3, 3]; start again",
                      [&] {
                        g.check_same(named(on(device, from_vector(elements<float>(odd ? 1 : 0, 9), {3, 3}))), "weight",
                                     "; start again");
                      });
  demand_disagreement(rank + " has another order than " + first + ": b 5, on rank 0 b 2",
                      [&] { g.check_same(odd ? "a 1, b 5, c 3" : "a 1, b 2, c 4", "order"); });
  demand_disagreement(rank + " has another order than " + first + ": nothing, on rank 0 c 4",
                      [&] { g.check_same(odd ? "a 1\nb 2" : "a 1\nb 2\nc 4", "order"); });
  demand_disagreement(rank + " calls on_first", [&] { odd ? g.on_first([] {}) : g.barrier(); });
  demand_disagreement(rank + " calls barrier", [&] { odd ? g.barrier() : g.all_reduce(same); });
  demand_disagreement(rank + " calls all_reduce", [&] { g.all_reduce(empty({odd ? 8 : 9}, {DType::f32, device})); });
  demand_disagreement(rank + " calls all_reduce", [&] {
    g.all_reduce(empty({9}, {odd ? DType::bf16 : DType::f32, device}));
  });
  demand_disagreement(rank + " calls broadcast", [&] { g.broadcast(same, odd ? 1 : 0); });
  g.barrier();  // no rank is still in a call
}

}  // namespace isonorm::test
