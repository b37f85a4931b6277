// Steps of optimizers, and operations on all gradients at once: update, sum_squares, scale, clamp.
//
// A launch processes a table of tensors of the same dtype (gpu/table.cuh); updates in a table have one rule. If all
// tensors of an item begin at multiples of 16 bytes, a thread moves 16 bytes at a time (only memory bandwidth matters);
// otherwise, and at the end, it works element by element.
//
// update.steps: reads gradient, parameter and state once, writes state and parameter. An element belongs to one thread,
//   so a result may overwrite an input. Rules: core/formulas/update_rules.h.
// scale.each, clamp.each: read and write each element once.
// sum_squares.pieces: reads each element once and writes the sum of a piece, in f64; sum_squares.totals: a block for
//   each tensor adds the sums of its pieces. Both orders depend only on the tensors' sizes.
#include "core/kernels/optimizer.h"
#include "gpu/memory.h"
#include "gpu/slots.h"
#include "gpu/steps/capture.h"
#include "gpu/table.cuh"

namespace isonorm::gpu {
namespace {

// The numbers that change from step to step. A graph reads their bytes again in every replay (gpu/steps/capture.h).
template <class Rule> struct Numbers {
  double gradient_scale, l2, keep;
  Rule rule;
};

template <class T, class Rule> struct Step {
  const T* gradient;
  T* parameter;  // written only if the rule writes it
  acc_t<T>* state[3];
  int64_t count;
  bool packs;
  Numbers<Rule> numbers;
  const Numbers<Rule>* instead;  // replaces `numbers`, in device memory; null: it does not
  const double *factor, *trust;  // as in kernels::Update; null: 1
};

template <class T, class Rule>
__global__ void __launch_bounds__(kTableThreads) update_steps(const Table<Step<T, Rule>> table) {
  using A = acc_t<T>;
  constexpr int N = kPack<T>, kStates = Rule::kStates;
  const int item = table.find(blockIdx.x);
  const Step<T, Rule>& s = table.items[item];
  Numbers<Rule> n = s.instead ? *s.instead : s.numbers;
  const double trust = s.trust ? *s.trust : 1;
  if constexpr (std::is_same_v<Rule, rules::Along>) n.rule.lr *= trust;
  const A scale(n.gradient_scale * (s.factor ? *s.factor : 1) * trust), l2(n.l2 * trust), keep(n.keep);
  const auto next = [&](A x, A g, rules::State<A> state) { return n.rule.step(keep * x, scale * g + l2 * x, state); };
  const auto pack = [&](int64_t i) {
    const Pack<T, N> g = load<N>(s.gradient + i);
    Pack<T, N> w = load<N>(s.parameter + i);
    A state[kStates + 1][N], *rows[kStates + 1];
#pragma unroll
    for (int k = 0; k < kStates; ++k) load_all(state[k], s.state[k] + i);
#pragma unroll
    for (int k = 0; k < kStates + 1; ++k) rows[k] = state[k];
#pragma unroll
    for (int e = 0; e < N; ++e) {
      const A y = next(A(w.v[e]), A(g.v[e]), rules::State<A>{rows, e});
      w.v[e] = T(y);
    }
#pragma unroll
    for (int k = 0; k < kStates; ++k) store_all(s.state[k] + i, state[k]);
    if constexpr (Rule::kWrites) store(s.parameter + i, w);
  };
  const auto one = [&](int64_t i) {
    const A y = next(A(s.parameter[i]), A(s.gradient[i]), rules::State<A>{s.state, i});
    if constexpr (Rule::kWrites) s.parameter[i] = T(y);
  };
  for_piece<N>(blockIdx.x - table.first[item], s.count, s.packs, pack, one);
}

template <class T, class Rule> Step<T, Rule> step_of(const kernels::Update& u) {
  const T* w = u.parameter.data<T>();
  if constexpr (Rule::kWrites) w = write<T>(u.parameter);
  Step<T, Rule> s{.gradient = u.gradient.data<T>(),
                  .parameter = const_cast<T*>(w),
                  .state = {},
                  .count = u.gradient.numel(),
                  .packs = false,
                  .numbers = {u.gradient_scale, u.l2, u.keep, std::get<Rule>(u.rule)},
                  .instead = capture() ? static_cast<const Numbers<Rule>*>(capture()->place(u)) : nullptr,
                  .factor = read_or_null<double>(u.gradient_factor),
                  .trust = read_or_null<double>(u.trust)};
  for (int k = 0; k < Rule::kStates; ++k) s.state[k] = write<acc_t<T>>(u.state[k]);
  s.packs = aligned(s.gradient, w, s.state[0], s.state[1], s.state[2]);
  return s;
}

struct Times {
  static constexpr const char* name = "scale.each";
  double factor;
  template <class A> __device__ __forceinline__ A operator()(A x) const { return A(factor) * x; }
};
struct Limit {
  static constexpr const char* name = "clamp.each";
  double limit;
  template <class A> __device__ __forceinline__ A operator()(A x) const {
    const A most(limit);
    return x > most ? most : x < -most ? -most : x;
  }
};

template <class T> struct Elements {
  T* data;
  int64_t count;
  bool packs;
};

template <class T, class F>
__global__ void __launch_bounds__(kTableThreads) change_each(const Table<Elements<T>> table, F f) {
  using A = acc_t<T>;
  constexpr int N = kPack<T>;
  const int item = table.find(blockIdx.x);
  const Elements<T>& x = table.items[item];
  const auto pack = [&](int64_t i) {
    Pack<T, N> v = load<N>(x.data + i);
#pragma unroll
    for (int k = 0; k < N; ++k) v.v[k] = T(f(A(v.v[k])));
    store(x.data + i, v);
  };
  for_piece<N>(blockIdx.x - table.first[item], x.count, x.packs, pack,
               [&](int64_t i) { x.data[i] = T(f(A(x.data[i]))); });
}

template <class T>
__global__ void __launch_bounds__(kTableThreads) sum_pieces(const Table<Elements<const T>> table, double* sums) {
  using A = acc_t<T>;
  constexpr int N = kPack<T>;
  struct Room {
    double sums[32];
  };
  const int item = table.find(blockIdx.x);
  const Elements<const T>& x = table.items[item];
  double sum = 0;
  const auto add = [&](A v) { sum += static_cast<double>(v) * static_cast<double>(v); };
  const auto pack = [&](int64_t i) {
    const Pack<T, N> v = load<N>(x.data + i);
#pragma unroll
    for (int k = 0; k < N; ++k) add(A(v.v[k]));
  };
  for_piece<N>(blockIdx.x - table.first[item], x.count, x.packs, pack, [&](int64_t i) { add(A(x.data[i])); });
  sum = block_reduce<Plus>(sum, shared<Room>().sums);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

struct Total {
  const double* pieces;
  int64_t count;
  double* to;
};
__global__ void __launch_bounds__(kTableThreads) add_pieces(const Table<Total> table) {
  struct Room {
    double sums[32];
  };
  const Total& t = table.items[blockIdx.x];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < t.count; i += kTableThreads) sum += t.pieces[i];
  sum = block_reduce<Plus>(sum, shared<Room>().sums);
  if (threadIdx.x == 0) *t.to = sum;
}

// The end of the run of items that are `same` as the item at `begin`.
template <class Item, class Same> size_t end_of_run(std::span<const Item> items, size_t begin, const Same& same) {
  size_t end = begin + 1;
  while (end < items.size() && same(items[begin], items[end])) ++end;
  return end;
}
bool same_dtype(const Tensor& a, const Tensor& b) { return a.dtype() == b.dtype(); }

template <class F> void change(std::span<const Tensor> tensors, F f) {
  for (size_t i = 0; i < tensors.size();) {
    const size_t end = end_of_run(tensors, i, same_dtype);
    visit_floating(tensors[i].dtype(), "optimizer", [&]<class T>() {
      Table<Elements<T>> table;
      for (; i < end; ++i) {
        const int64_t n = tensors[i].numel();
        if (n == 0) continue;
        T* data = write<T>(tensors[i]);
        table.add({data, n, aligned(data)}, ceil_div(n, kPiece));
        if (table.full()) launch_table(F::name, &change_each<T, F>, table, tensors[i], f);
      }
      launch_table(F::name, &change_each<T, F>, table, tensors[end - 1], f);
    });
  }
}

}  // namespace

void update(std::span<const kernels::Update> updates) {
  count_updates(std::ssize(updates));
  const auto same = [](const kernels::Update& a, const kernels::Update& b) {
    return a.rule.index() == b.rule.index() && same_dtype(a.gradient, b.gradient);
  };
  for (size_t i = 0; i < updates.size();) {
    const size_t end = end_of_run(updates, i, same);
    const kernels::Update& first = updates[i];
    visit_floating(first.gradient.dtype(), "optimizer", [&]<class T>() {
      const auto run = [&]<class Rule>(const Rule&) {
        Table<Step<T, Rule>> table;
        for (; i < end; ++i) {
          table.add(step_of<T, Rule>(updates[i]), ceil_div(updates[i].gradient.numel(), kPiece));
          if (table.full()) launch_table("update.steps", &update_steps<T, Rule>, table, first.gradient);
        }
        launch_table("update.steps", &update_steps<T, Rule>, table, first.gradient);
      };
      std::visit(run, first.rule);
    });
  }
}

void sum_squares(std::span<const Tensor> tensors, const Tensor& sums) {
  if (tensors.empty()) return;
  int64_t pieces = 0;
  for (const Tensor& x : tensors) pieces += ceil_div(x.numel(), kPiece);
  const Scratch scratch(sums.device(), std::max<int64_t>(1, pieces) * int64_t{sizeof(double)});
  double *of_piece = scratch.as<double>(), *to = write<double>(sums);
  double* next = of_piece;
  for (size_t i = 0; i < tensors.size();) {
    const size_t end = end_of_run(tensors, i, same_dtype);
    visit_floating(tensors[i].dtype(), "optimizer", [&]<class T>() {
      Table<Elements<const T>> table;
      const auto flush = [&] {
        const int64_t blocks = table.blocks;
        launch_table("sum_squares.pieces", &sum_pieces<T>, table, sums, next);
        next += blocks;
      };
      for (; i < end; ++i) {
        const int64_t n = tensors[i].numel();
        if (n == 0) continue;
        const T* data = tensors[i].data<T>();
        table.add({data, n, aligned(data)}, ceil_div(n, kPiece));
        if (table.full()) flush();
      }
      flush();
    });
  }
  Table<Total> totals;
  for (const Tensor& x : tensors) {
    const int64_t n = ceil_div(x.numel(), kPiece);
    totals.add({of_piece, n, to++}, 1);
    of_piece += n;
    if (totals.full()) launch_table("sum_squares.totals", &add_pieces, totals, sums);
  }
  launch_table("sum_squares.totals", &add_pieces, totals, sums);
}

void scale(std::span<const Tensor> tensors, double factor) { change(tensors, Times{factor}); }
void clamp(std::span<const Tensor> tensors, double limit) { change(tensors, Limit{limit}); }

}  // namespace isonorm::gpu
