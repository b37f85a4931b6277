// The graphs that cuDNN is given for attention, computed by loops in f64 and compared with softmax(q k^T) v and its
// derivative by finite differences.
#include "gpu/libraries/attention_graph.h"

#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/catch.h"

using namespace isonorm::gpu;

namespace {

using Numbers = std::vector<double>;
using Op = GraphStep::Op;
using Place = GraphTensor::Place;

int64_t offset(const std::array<int64_t, 4>& at, const std::array<int64_t, 4>& stride) {
  return at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2] + at[3] * stride[3];
}
void for_each(const std::array<int64_t, 4>& size, const std::function<void(const std::array<int64_t, 4>&)>& f) {
  for (int64_t a = 0; a < size[0]; ++a)
    for (int64_t b = 0; b < size[1]; ++b)
      for (int64_t c = 0; c < size[2]; ++c)
        for (int64_t d = 0; d < size[3]; ++d) f({a, b, c, d});
}

// memory[i] is that of tensor i, of the caller's and, when it is over, of all.
void compute(const Graph& g, std::vector<Numbers>& memory) {
  memory.resize(g.tensors.size());
  for (size_t i = 0; i < g.tensors.size(); ++i) {
    const GraphTensor& t = g.tensors[i];
    if (t.place == Place::nowhere)
      memory[i].assign(static_cast<size_t>(t.size[0] * t.size[1] * t.size[2] * t.size[3]), NAN);
  }
  for (const GraphStep& s : g.steps) {
    const GraphTensor& out = g.tensors[static_cast<size_t>(s.out)];
    // Dimensions of one element are read again.
    const auto read = [&](int tensor, std::array<int64_t, 4> at) {
      const GraphTensor& t = g.tensors[static_cast<size_t>(tensor)];
      for (size_t d = 0; d < 4; ++d)
        if (t.size[d] == 1) at[d] = 0;
      for (size_t d = 0; d < 4; ++d) REQUIRE(at[d] < t.size[d]);
      return memory[static_cast<size_t>(tensor)].at(static_cast<size_t>(offset(at, t.stride)));
    };
    const auto size_of = [&](int tensor) { return g.tensors[static_cast<size_t>(tensor)].size; };
    if (s.op == Op::restride) {
      memory[static_cast<size_t>(s.out)] = memory[static_cast<size_t>(s.x)];
      continue;
    }
    for_each(out.size, [&](const std::array<int64_t, 4>& at) {
      const auto along = [&](int64_t count, const auto& f) {
        for (int64_t i = 0; i < count; ++i) f(i);
      };
      double v = 0;
      switch (s.op) {
        case Op::product:
          REQUIRE(size_of(s.x)[3] == size_of(s.y)[2]);
          along(size_of(s.x)[3], [&](int64_t i) {
            v += read(s.x, {at[0], at[1], at[2], i}) * read(s.y, {at[0], at[1], i, at[3]});
          });
          break;
        case Op::row_max:
          v = -HUGE_VAL;
          along(size_of(s.x)[3], [&](int64_t i) { v = std::max(v, read(s.x, {at[0], at[1], at[2], i})); });
          break;
        case Op::row_sum:
          along(size_of(s.x)[3], [&](int64_t i) { v += read(s.x, {at[0], at[1], at[2], i}); });
          break;
        case Op::row:
          v = static_cast<double>(at[2]);
          break;
        case Op::column:
          v = static_cast<double>(at[3]);
          break;
        case Op::multiply:
          v = read(s.x, at) * read(s.y, at);
          break;
        case Op::add:
          v = read(s.x, at) + read(s.y, at);
          break;
        case Op::subtract:
          v = read(s.x, at) - read(s.y, at);
          break;
        case Op::divide:
          v = read(s.x, at) / read(s.y, at);
          break;
        case Op::exp:
          v = std::exp(read(s.x, at));
          break;
        case Op::log:
          v = std::log(read(s.x, at));
          break;
        case Op::at_least:
          v = read(s.x, at) >= read(s.y, at);
          break;
        case Op::select:
          v = read(s.z, at) != 0 ? read(s.x, at) : read(s.y, at);
          break;
        default:
          v = read(s.x, at);
      }
      memory[static_cast<size_t>(s.out)].at(static_cast<size_t>(offset(at, out.stride))) = v;
    });
  }
}

// Heads inside of a packed projection [batch, rows, 3, heads, size], of which they are part 0 to 2: offsets in `data`.
struct Packed {
  int64_t rows, heads, size;
  AttentionShape::Strides strides() const { return {rows * 3 * heads * size, size, 3 * heads * size}; }
  Numbers part(const Numbers& data, int i) const { return Numbers(data.begin() + i * heads * size, data.end()); }
};

Numbers drawn(size_t n, unsigned seed) {
  Numbers x(n);
  uint64_t s = seed * 2654435761U + 1;
  for (double& v : x) {
    s = s * 6364136223846793005ULL + 1442695040888963407ULL;
    v = static_cast<double>(s >> 33) / static_cast<double>(1U << 30) - 1;
  }
  return x;
}

struct Problem {
  int64_t batch = 2, heads = 2, queries = 5, keys = 7, size = 3;
  bool causal = false;
  double scale = 0.7;
  Packed pq{queries, heads, size}, pk{keys, heads, size};
  Numbers q = drawn(static_cast<size_t>(batch * queries * 3 * heads * size), 1);
  Numbers kv = drawn(static_cast<size_t>(batch * keys * 3 * heads * size), 2);
  Numbers dout = drawn(static_cast<size_t>(batch * heads * queries * size), 3);

  AttentionShape::Strides plain() const { return {heads * queries * size, queries * size, size}; }
  AttentionShape shape() const {
    AttentionShape s{batch, heads, queries, keys, size, causal, pq.strides(), pk.strides(), pk.strides(), plain()};
    s.dout = plain();
    s.dq = pq.strides();
    s.dk = s.dv = pk.strides();
    return s;
  }
  static double at(const Numbers& x, const AttentionShape::Strides& s, int64_t b, int64_t h, int64_t r, int64_t e) {
    return x[static_cast<size_t>(b * s[0] + h * s[1] + r * s[2] + e)];
  }

  // out [batch, heads, queries, size] and lse, by the definition.
  void attend(const Numbers& q_, const Numbers& k, const Numbers& v, Numbers& out, Numbers& lse) const {
    out.assign(dout.size(), 0);
    lse.assign(static_cast<size_t>(batch * heads * queries), 0);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < queries; ++i) {
          const int64_t seen = causal ? std::min(keys, i + 1) : keys;
          Numbers weight;
          double sum = 0;
          for (int64_t j = 0; j < seen; ++j) {
            double dot = 0;
            for (int64_t e = 0; e < size; ++e)
              dot += at(q_, pq.strides(), b, h, i, e) * at(k, pk.strides(), b, h, j, e);
            weight.push_back(std::exp(scale * dot));
            sum += weight.back();
          }
          lse[static_cast<size_t>((b * heads + h) * queries + i)] = std::log(sum);
          for (int64_t j = 0; j < seen; ++j)
            for (int64_t e = 0; e < size; ++e)
              out[static_cast<size_t>(b * plain()[0] + h * plain()[1] + i * plain()[2] + e)] +=
                  weight[static_cast<size_t>(j)] / sum * at(v, pk.strides(), b, h, j, e);
        }
  }
  double loss(const Numbers& q_, const Numbers& k, const Numbers& v) const {
    Numbers out, lse;
    attend(q_, k, v, out, lse);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
    return sum;
  }
};

}  // namespace

TEST_CASE("cuDNN's forward graph is attention") {
  for (const bool causal : {false, true}) {
    Problem p;
    p.causal = causal;
    const Numbers q = p.pq.part(p.q, 0), k = p.pk.part(p.kv, 1), v = p.pk.part(p.kv, 2);
    Numbers out, lse;
    p.attend(q, k, v, out, lse);
    std::vector<Numbers> memory{q, k, v, Numbers(out.size(), NAN), Numbers(lse.size(), NAN), {p.scale}, {-HUGE_VAL}};
    REQUIRE(memory.size() == static_cast<size_t>(ForwardTensor::count));
    compute(attention_forward_graph(p.shape()), memory);
    for (size_t i = 0; i < out.size(); ++i) CHECK(std::abs(memory[3][i] - out[i]) < 1e-14);
    for (size_t i = 0; i < lse.size(); ++i) CHECK(std::abs(memory[4][i] - lse[i]) < 1e-14);
  }
}

TEST_CASE("cuDNN's backward graphs are the derivative of attention") {
  for (const bool causal : {false, true})
    for (const bool by_sums : {false, true}) {
      Problem p;
      p.causal = causal;
      const Numbers q = p.pq.part(p.q, 0), k = p.pk.part(p.kv, 1), v = p.pk.part(p.kv, 2);
      Numbers out, lse;
      p.attend(q, k, v, out, lse);
      const Numbers none(lse.size() * static_cast<size_t>(p.size), NAN);
      std::vector<Numbers> memory{q,
                                  k,
                                  v,
                                  out,
                                  lse,
                                  p.dout,
                                  none,
                                  none,
                                  Numbers(q.size(), NAN),
                                  Numbers(k.size(), NAN),
                                  Numbers(v.size(), NAN),
                                  {p.scale},
                                  {1},
                                  {-HUGE_VAL}};
      REQUIRE(memory.size() == static_cast<size_t>(BackwardTensor::count));
      compute(attention_backward_graph(p.shape(), by_sums), memory);
      // Central differences of a function whose third derivative is below 10, at h = 1e-5: 1e-9 and rounding of 1e-10.
      const auto check = [&](int result, const Numbers& x, const Packed& packed, const auto& loss) {
        for_each({p.batch, p.heads, packed.rows, p.size}, [&](const std::array<int64_t, 4>& at) {
          const AttentionShape::Strides s = packed.strides();
          const auto i = static_cast<size_t>(offset(at, {s[0], s[1], s[2], 1}));
          Numbers more = x, less = x;
          more[i] += 1e-5;
          less[i] -= 1e-5;
          CHECK(std::abs(memory[static_cast<size_t>(result)][i] - (loss(more) - loss(less)) / 2e-5) < 2e-9);
        });
      };
      check(static_cast<int>(BackwardTensor::dq), q, p.pq, [&](const Numbers& x) { return p.loss(x, k, v); });
      check(static_cast<int>(BackwardTensor::dk), k, p.pk, [&](const Numbers& x) { return p.loss(q, x, v); });
      check(static_cast<int>(BackwardTensor::dv), v, p.pk, [&](const Numbers& x) { return p.loss(q, k, x); });
    }
}
