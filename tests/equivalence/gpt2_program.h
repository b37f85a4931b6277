// GPT-2 of gpt2.h computed by another program in its own precision, and the reference tensors that it saves.
#pragma once

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "tests/equivalence/gpt2.h"
#include "tests/support/catch.h"

namespace isonorm::test {

constexpr int64_t kWidth = 24, kRows = 7, kVocab = 30;

// GPT-2 with random rows as inputs of the branches' last layers. Computes and adds in T, and rounds to `stored` if that
// is bf16.
template <class T> class Program {
 public:
  Program(const TensorMap& state, DType stored) : state_(state), stored_(stored) {
    add(embed("wte.weight", {0, 29, 7, 7, 12, 3, 21})), add(embed("wpe.weight", {2, 0, 1, 1, 0, 2, 2}));
    read("h.0.attn.c_attn", "h.0.ln_1"), add(write("h.0.attn.c_proj"));
    read("h.0.mlp.c_fc", "h.0.ln_2"), add(write("h.0.mlp.c_proj"));
    save("lm_head.weight", stream_, product(normalised(stream_, "ln_f"), state.at("wte.weight"), true, ""));
    for (const char* name : {"program.output", "program.shifted", "program.rescaled"})
      reference.add(name, reference.at("lm_head.weight.output"));
  }
  TensorMap reference;

 private:
  void save(const std::string& name, const Tensor& x, const Tensor& y) {
    reference.add(name + ".input", is_floating(x.dtype()) ? to(x, stored_) : x);
    reference.add(name + ".output", to(y, stored_));
  }
  Tensor embed(const std::string& table, const std::vector<int64_t>& ids) {
    std::vector<T> rows;
    const std::vector<T> all = numbers(state_.at(table));
    for (int64_t id : ids) rows.insert(rows.end(), all.begin() + id * kWidth, all.begin() + (id + 1) * kWidth);
    const Tensor y = from_vector<T>(rows, {1, kRows, kWidth});
    save(table, from_vector<int64_t>(ids, {1, kRows}), y);
    return y;
  }
  Tensor write(const std::string& name) {
    const Tensor& w = state_.at(name + ".weight");
    const Tensor x = rows(w.size(0)), y = product(x, w, false, name + ".bias");
    save(name + ".weight", x, y);
    return y;
  }
  void read(const std::string& name, const std::string& norm) {
    const Tensor y = product(normalised(stream_, norm), state_.at(name + ".weight"), false, name + ".bias");
    save(name + ".weight", stream_, y);
  }
  void add(const Tensor& y) { stream_ = stream_.defined() ? rounded(stream_ + rounded(y)) : rounded(y); }
  // Rows with a mean, in the program's precision.
  Tensor rows(int64_t n) { return rounded(randn({1, kRows, n}, {DType::f64}, generator_) * 0.2 + 0.3); }
  std::vector<T> numbers(const Tensor& x) const { return to(x, DTypeOf<T>).template to_vector<T>(); }
  Tensor rounded(const Tensor& x) const { return to(to(x, stored_), DTypeOf<T>); }

  Tensor normalised(const Tensor& x, const std::string& norm) const {
    std::vector<T> v = numbers(x), gain = numbers(state_.at(norm + ".weight")),
                   bias = numbers(state_.at(norm + ".bias"));
    for (size_t row = 0; row < v.size(); row += kWidth) {
      T mean = 0, square = 0;
      for (int64_t i = 0; i < kWidth; ++i) mean += v[row + i] / T(kWidth);
      for (int64_t i = 0; i < kWidth; ++i) square += (v[row + i] - mean) * (v[row + i] - mean) / T(kWidth);
      for (int64_t i = 0; i < kWidth; ++i)
        v[row + i] = (v[row + i] - mean) / std::sqrt(square + T(1e-5)) * gain[i] + bias[i];
    }
    return rounded(from_vector<T>(v, x.shape()));
  }
  Tensor product(const Tensor& x, const Tensor& weight, bool transposed, const std::string& bias) const {
    const std::vector<T> v = numbers(x), w = numbers(weight);
    const int64_t in = x.size(-1), out = weight.numel() / in, n = x.numel() / in;
    const std::vector<T> b = bias.empty() ? std::vector<T>(static_cast<size_t>(out)) : numbers(state_.at(bias));
    std::vector<T> y;
    for (int64_t r = 0; r < n; ++r)
      for (int64_t o = 0; o < out; ++o) {
        T sum = b[o];
        for (int64_t i = 0; i < in; ++i) sum += v[r * in + i] * w[transposed ? o * in + i : i * out + o];
        y.push_back(sum);
      }
    return from_vector<T>(y, {1, n, out});
  }

  template <class U> static constexpr DType DTypeOf = std::is_same_v<U, float> ? DType::f32 : DType::f64;
  const TensorMap& state_;
  DType stored_;
  Generator generator_{9, 0};
  Tensor stream_;  // [1, kRows, kWidth]
};

inline TensorMap program(const TensorMap& state, DType dtype) {
  return dtype == DType::f64 ? Program<double>(state, dtype).reference : Program<float>(state, dtype).reference;
}

inline TensorMap state() { return gpt2(kWidth, kVocab); }

inline std::string replaced(std::string s, const std::string& old, const std::string& now) {
  const size_t at = s.find(old);
  REQUIRE(at != std::string::npos);
  return s.replace(at, old.size(), now);
}

}  // namespace isonorm::test
