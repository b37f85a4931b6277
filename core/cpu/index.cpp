#include "core/kernels/index.h"

#include <algorithm>

#include "core/cpu/workspace.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

int64_t grain(int64_t work_each) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work_each)); }

}  // namespace

void take_rows(IndexShape s, const Tensor& out, const Tensor& x, const Tensor& ids) {
  visit_all(x.dtype(), [&]<class T>() {
    const T* px = x.data<T>();
    T* po = out.mutable_data<T>();
    const int64_t* id = ids.data<int64_t>();
    const int64_t m = ids.numel();
    parallel_for(s.outer * m, grain(s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        std::copy_n(px + (r / m * s.length + id[r % m]) * s.inner, s.inner, po + r * s.inner);
    });
  });
}

// Positions are sorted by id (stably, by counting), so that one thread sums each row of dx.
void add_rows(IndexShape s, const Tensor& dx, const Tensor& g, const Tensor& ids) {
  const int64_t* id = ids.data<int64_t>();
  const int64_t m = ids.numel();
  const Workspace<int64_t> work(s.length + 1 + m);
  int64_t* start = work.data();  // the positions of id i will be order[start[i] .. start[i + 1])
  int64_t* order = start + s.length + 1;
  std::fill(start, order, 0);
  for (int64_t j = 0; j < m; ++j) ++start[id[j]];
  for (int64_t i = 0; i < s.length; ++i) start[i + 1] += start[i];
  for (int64_t j = m - 1; j >= 0; --j) order[--start[id[j]]] = j;
  visit_numbers(g.dtype(), "add_rows", [&]<class T>() {
    using A = acc_t<T>;
    const T* pg = g.data<T>();
    A* pd = dx.mutable_data<A>();
    parallel_for(s.outer * s.length, grain(s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        A* __restrict to = pd + r * s.inner;
        std::fill(to, to + s.inner, A(0));
        const int64_t i = r % s.length;
        for (int64_t p = start[i]; p < start[i + 1]; ++p) {
          const T* __restrict from = pg + (r / s.length * m + order[p]) * s.inner;
#pragma omp simd
          for (int64_t k = 0; k < s.inner; ++k) to[k] += A(from[k]);
        }
      }
    });
  });
}

void gather(IndexShape s, const Tensor& out, const Tensor& x, const Tensor& index) {
  visit_all(x.dtype(), [&]<class T>() {
    const T* px = x.data<T>();
    const int64_t* pi = index.data<int64_t>();
    T* po = out.mutable_data<T>();
    const int64_t m = s.outer * s.inner == 0 ? 0 : out.numel() / (s.outer * s.inner);
    parallel_for(s.outer * m, grain(s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* from = px + r / m * s.length * s.inner;
        for (int64_t i = 0; i < s.inner; ++i) po[r * s.inner + i] = from[pi[r * s.inner + i] * s.inner + i];
      }
    });
  });
}

void gather_backward(IndexShape s, const Tensor& dx, const Tensor& g, const Tensor& index) {
  visit_numbers(g.dtype(), "gather_backward", [&]<class T>() {
    using A = acc_t<T>;
    const T* pg = g.data<T>();
    const int64_t* pi = index.data<int64_t>();
    A* pd = dx.mutable_data<A>();
    const int64_t m = s.outer * s.inner == 0 ? 0 : g.numel() / (s.outer * s.inner);
    parallel_for(s.outer, grain((s.length + m) * s.inner), [&](int64_t begin, int64_t end) {
      std::fill(pd + begin * s.length * s.inner, pd + end * s.length * s.inner, A(0));
      for (int64_t r = begin * m; r < end * m; ++r) {
        A* to = pd + r / m * s.length * s.inner;
        for (int64_t i = 0; i < s.inner; ++i) to[pi[r * s.inner + i] * s.inner + i] += A(pg[r * s.inner + i]);
      }
    });
  });
}

void scatter(IndexShape s, const Tensor& y, const Tensor& src, const Tensor& index) {
  visit_all(y.dtype(), [&]<class T>() {
    const T* from = src.data<T>();
    const int64_t* pi = index.data<int64_t>();
    T* py = y.mutable_data<T>();
    const int64_t m = s.outer * s.inner == 0 ? 0 : src.numel() / (s.outer * s.inner);
    parallel_for(s.outer, grain(m * s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin * m; r < end * m; ++r) {
        T* to = py + r / m * s.length * s.inner;
        for (int64_t i = 0; i < s.inner; ++i) to[pi[r * s.inner + i] * s.inner + i] = from[r * s.inner + i];
      }
    });
  });
}

void topk(const Tensor& index, const Tensor& x) {
  const int64_t k = index.size(-1), n = x.size(-1);
  if (index.numel() == 0) return;
  visit_all(x.dtype(), [&]<class T>() {
    const T* px = x.data<T>();
    int64_t* po = index.mutable_data<int64_t>();
    parallel_for(x.numel() / n, grain(n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* row = px + r * n;
        int64_t* best = po + r * k;
        const auto before = [row](int64_t a, int64_t b) {
          const acc_t<T> u = row[a], v = row[b];
          if (u != u || v != v) return u != u && (v == v || a < b);
          return u > v || (u == v && a < b);
        };
        for (int64_t j = 0; j < k; ++j) best[j] = j;
        if (k == n) {
          std::sort(best, best + n, before);
          continue;
        }
        // The k best so far, as a heap with the worst at the top.
        std::make_heap(best, best + k, before);
        for (int64_t j = k; j < n; ++j) {
          if (!before(j, best[0])) continue;
          std::pop_heap(best, best + k, before);
          best[k - 1] = j;
          std::push_heap(best, best + k, before);
        }
        std::sort_heap(best, best + k, before);
      }
    });
  });
}

void search_sorted(const Tensor& out, const Tensor& sorted, const Tensor& values) {
  if (out.numel() == 0) return;
  const int64_t n = sorted.size(-1), count = out.size(-1);
  const double *ps = sorted.data<double>(), *pv = values.data<double>();
  int64_t* po = out.mutable_data<int64_t>();
  parallel_for(out.numel(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      const double *row = ps + e / count * n, *last = row + n;
      const double* at = std::upper_bound(row, last, pv[e]);
      po[e] = (at == last ? std::lower_bound(row, last, last[-1]) : at) - row;
    }
  });
}

}  // namespace isonorm::kernels::cpu
