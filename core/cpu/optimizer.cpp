// Optimizer steps and gradient clipping: one vector loop per block, one parallel region over the blocks of all
// parameters.
#include "core/kernels/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/cpu/target.h"
#include "core/cpu/workspace.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

const Tensor& elements(const Update& u) { return u.gradient; }
const Tensor& elements(const Tensor& x) { return x; }

// Items divided into blocks of elements. Item i has the blocks first[i] .. first[i + 1).
class Blocks {
 public:
  template <class Item> explicit Blocks(std::span<const Item> items) : first_(std::ssize(items) + 1) {
    int64_t* first = first_.data();
    *first = 0;
    for (const Item& item : items) first[1] = first[0] + ceil_div(elements(item).numel(), kElements), ++first;
    end_ = first;
  }
  const int64_t* first() const { return first_.data(); }
  int64_t count() const { return *end_; }

  static constexpr int64_t kElements = 16384;

 private:
  Workspace<int64_t> first_;
  const int64_t* end_;
};

// Calls body.operator()<T>(item, begin, end, block) for every block. T is the type of the item's elements; the block
// has the elements [begin, end).
template <class Item, class Body>
void for_each_block(std::span<const Item> items, const Blocks& blocks, const Body& body) {
  parallel_for(blocks.count(), 1, [&](int64_t first, int64_t last) {
    const int64_t* at = blocks.first();
    for (size_t n = items.size(); n > 1;) {  // the last item that begins at or before `first`
      const size_t half = n / 2;
      if (at[half] <= first) at += half;
      n -= half;
    }
    for (int64_t b = first; b < last; ++b) {
      while (at[1] <= b) ++at;
      const Item& item = items[static_cast<size_t>(at - blocks.first())];
      const int64_t begin = (b - *at) * Blocks::kElements;
      const int64_t end = std::min(begin + Blocks::kElements, elements(item).numel());
      visit_floating(elements(item).dtype(), "optimizer",
                     [&]<class T>() { body.template operator()<T>(item, begin, end, b); });
    }
  });
}

double number_or_1(const Tensor& x) { return x.defined() ? *x.data<double>() : 1; }

// out[k] = the rule's step for n weights; out may be w.
template <class A, class Rule>
void update_loop(const Update& u, const Rule& rule, const A* g, const A* w, A* out, A* const* state, int64_t n) {
  const double trust = number_or_1(u.trust);
  const A scale(u.gradient_scale * number_or_1(u.gradient_factor) * trust), l2(u.l2 * trust), keep(u.keep);
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) {
    const A x = w[k];
    const A y = rule.step(keep * x, scale * g[k] + l2 * x, rules::State<A>{state, k});
    if constexpr (Rule::kWrites) out[k] = y;
  }
}

template <class T, class Rule> void update_block(const Update& u, const Rule& given, int64_t begin, int64_t end) {
  using A = acc_t<T>;
  Rule rule = given;  // a local copy, which the loop's writes cannot change
  if constexpr (std::is_same_v<Rule, rules::Along>) rule.lr *= number_or_1(u.trust);
  const T* g = u.gradient.data<T>() + begin;
  const T* w = u.parameter.data<T>() + begin;
  T* out = nullptr;
  if constexpr (Rule::kWrites) out = u.parameter.mutable_data<T>() + begin;
  A* state[Rule::kStates + 1] = {};
  for (int i = 0; i < Rule::kStates; ++i) state[i] = u.state[i].mutable_data<A>() + begin;
  if constexpr (std::is_same_v<T, A>) {
    update_loop(u, rule, g, w, out, state, end - begin);
  } else {  // in pieces that stay in the first-level cache: conversion and rule are separate vector loops
    constexpr int64_t kPiece = 512;
    A g_piece[kPiece], w_piece[kPiece];
    for (int64_t at = 0; at < end - begin; at += kPiece) {
      const int64_t n = std::min(kPiece, end - begin - at);
      for (int64_t k = 0; k < n; ++k) g_piece[k] = g[at + k], w_piece[k] = w[at + k];
      update_loop(u, rule, g_piece, w_piece, w_piece, state, n);
      for (int i = 0; i < Rule::kStates; ++i) state[i] += n;
      if constexpr (Rule::kWrites)
        for (int64_t k = 0; k < n; ++k) out[at + k] = T(w_piece[k]);
    }
  }
}

// In f64 for every type: the sum of 16384 squares of floats is exact to about 2^-52, and cannot overflow.
template <class T> double squares_of_block(const T* g, int64_t begin, int64_t end) {
  constexpr int kLanes = 16;
  double lane[kLanes] = {};
  int64_t k = begin;
  for (; k + kLanes <= end; k += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const double x = acc_t<T>(g[k + l]);
      lane[l] += x * x;
    }
  for (; k < end; ++k) {
    const double x = acc_t<T>(g[k]);
    lane[(k - begin) % kLanes] += x * x;
  }
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] += lane[l + width];
  return lane[0];
}

// Not in the template: all instruction sets would share one table of functions of std::visit, and the linker would keep
// the first set's.
void update_all(std::span<const Update> updates) {
  for_each_block(updates, Blocks(updates), []<class T>(const Update& u, int64_t begin, int64_t end, int64_t) {
    std::visit([&](const auto& rule) { update_block<T>(u, rule, begin, end); }, u.rule);
  });
}

}  // namespace

template <Isa I> void update(std::span<const Update> updates) { update_all(updates); }

template <Isa I> void sum_squares(std::span<const Tensor> tensors, const Tensor& sums) {
  const Blocks blocks(tensors);
  const Workspace<double> memory(blocks.count());
  double *const of_block = memory.data(), *to = sums.mutable_data<double>();
  for_each_block(tensors, blocks, [&]<class T>(const Tensor& x, int64_t begin, int64_t end, int64_t block) {
    of_block[block] = squares_of_block(x.data<T>(), begin, end);
  });
  for (size_t i = 0; i < tensors.size(); ++i) {
    to[i] = 0;
    for (int64_t b = blocks.first()[i]; b < blocks.first()[i + 1]; ++b) to[i] += of_block[b];
  }
}

template <Isa I> void scale(std::span<const Tensor> tensors, double factor) {
  for_each_block(tensors, Blocks(tensors), [&]<class T>(const Tensor& x, int64_t begin, int64_t end, int64_t) {
    const acc_t<T> f(factor);
    T* g = x.mutable_data<T>();
#pragma omp simd
    for (int64_t k = begin; k < end; ++k) g[k] = T(f * acc_t<T>(g[k]));
  });
}

template <Isa I> void clamp(std::span<const Tensor> tensors, double limit) {
  for_each_block(tensors, Blocks(tensors), [&]<class T>(const Tensor& x, int64_t begin, int64_t end, int64_t) {
    using A = acc_t<T>;
    const A most(limit);
    T* g = x.mutable_data<T>();
#pragma omp simd
    for (int64_t k = begin; k < end; ++k) {
      const A v(g[k]);
      g[k] = T(v > most ? most : v < -most ? -most : v);
    }
  });
}

template <Isa I> void clip_numbers(const Tensor& out, const Tensor& sums, double max_norm) {
  const double* s = sums.data<double>();
  double sum = 0;
  for (int64_t i = 0; i < sums.numel(); ++i) sum += s[i];
  double* to = out.mutable_data<double>();
  to[0] = std::sqrt(sum);
  const double factor = max_norm / (to[0] + 1e-6);
  to[1] = factor > 1 ? 1 : factor;
}

template <Isa I>
void trust_ratios(const Tensor& out, const Tensor& sums, std::span<const TrustRatio> ratios,
                  const Tensor& gradient_factor) {
  const double *s = sums.data<double>(), factor = number_or_1(gradient_factor);
  double* to = out.mutable_data<double>();
  for (size_t i = 0; i < ratios.size(); ++i) {
    const TrustRatio& r = ratios[i];
    const double weight = std::sqrt(s[2 * i]), gradient = std::sqrt(s[2 * i + 1]) * std::abs(r.gradient_scale * factor);
    to[i] = r.adapt && weight != 0 && gradient != 0 ? r.coefficient * weight / (gradient + r.weight_decay * weight) : 1;
  }
}

template void update<kTarget>(std::span<const Update>);
template void sum_squares<kTarget>(std::span<const Tensor>, const Tensor&);
template void scale<kTarget>(std::span<const Tensor>, double);
template void clamp<kTarget>(std::span<const Tensor>, double);
template void clip_numbers<kTarget>(const Tensor&, const Tensor&, double);
template void trust_ratios<kTarget>(const Tensor&, const Tensor&, std::span<const TrustRatio>, const Tensor&);

}  // namespace isonorm::kernels::cpu
