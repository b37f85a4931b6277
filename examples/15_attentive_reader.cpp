// A reader finds the value that belongs to a key. A document is a list of key-value pairs; a question names a key. A
// bidirectional LSTM reads both, attention selects a place in the document, and the answer is chosen from the
// candidates (Hermann et al., "Teaching Machines to Read and Comprehend", 1506.03340, section 3.2). Trained with each
// of four norms.
//   usage: 15_attentive_reader [steps [none|layer|rms|prms ...]]
#include "by_norm.h"

using namespace isonorm;

namespace {

constexpr int64_t kKeys = 16, kValues = 8;              // ids of values begin at kKeys
constexpr int64_t kFewest = 3, kMost = 6, kBatch = 32;  // pairs of a document, documents of a step
constexpr int64_t kWidth = 32, kHidden = 64;

struct Batch {
  Tensor document, mask;    // [kBatch, 2 kMost]: ids; 1 for a token, 0 for padding
  Tensor question, answer;  // [kBatch, 1] the key, [kBatch] the number of its value
};

// Depends only on the seed, on every machine.
Batch draw(uint64_t seed) {
  Generator g{.seed = seed};
  std::vector<int64_t> document, question, answer;
  std::vector<float> mask;
  for (int64_t b = 0; b < kBatch; ++b) {
    const std::vector<int64_t> keys = randperm(kKeys, kCpu, g).to_vector<int64_t>();
    const std::vector<int64_t> values = randint(0, kValues, {kMost}, kCpu, g).to_vector<int64_t>();
    const int64_t pairs = randint(kFewest, kMost + 1, {}, kCpu, g).to_vector<int64_t>()[0];
    const int64_t asked = randint(0, pairs, {}, kCpu, g).to_vector<int64_t>()[0];
    for (int64_t i = 0; i < kMost; ++i) {
      document.insert(document.end(), {keys[static_cast<size_t>(i)], kKeys + values[static_cast<size_t>(i)]});
      mask.insert(mask.end(), 2, i < pairs ? 1.f : 0.f);
    }
    question.push_back(keys[static_cast<size_t>(asked)]);
    answer.push_back(values[static_cast<size_t>(asked)]);
  }
  return {from_vector(document, {kBatch, 2 * kMost}), from_vector(mask, {kBatch, 2 * kMost}),
          from_vector(question, {kBatch, 1}), from_vector(answer, {kBatch})};
}

class Reader : public nn::Module {
 public:
  explicit Reader(const ByNorm& n)
      : options_{.inputs = kWidth,
                 .hidden = kHidden,
                 .bidirectional = true,
                 .norm = n.norm,
                 .p = n.p,
                 .initialisation = nn::RecurrentInitialisation::orthogonal} {}

  // u, the question: the last forward state and the first backward state. y_t: the document at place t.
  //   m_t = tanh(W_y y_t + W_u u), s = softmax(w m_t), r = sum s_t y_t, g = tanh(W_r r + W_g u)
  Tensor logits(const Batch& b) {
    const Tensor y = document_(token_(b.document), {.mask = b.mask}).output;
    const Tensor u = question_(token_(b.question)).output;  // [batch, 1, 2 hidden]
    const Tensor scores = squeeze(weight_(tanh(of_place_(y) + of_question_(u))), 2);
    const Tensor s = softmax(scores + (b.mask - 1) * 1e9);
    const Tensor r = matmul(unsqueeze(s, 1), y);
    return squeeze(candidates_(tanh(read_(r) + asked_(u))), 1);
  }
  Tensor loss(const Batch& b) { return cross_entropy(logits(b), b.answer); }
  double accuracy(const Batch& b) {
    const std::vector<int64_t> said = argmax(logits(b)).to_vector<int64_t>(), right = b.answer.to_vector<int64_t>();
    double count = 0;
    for (size_t i = 0; i < said.size(); ++i) count += said[i] == right[i];
    return count / static_cast<double>(said.size());
  }

 private:
  nn::RecurrentOptions options_;
  nn::Embedding& token_ = add("token", nn::Embedding(kKeys + kValues, kWidth));
  nn::Lstm &document_ = add("document", nn::Lstm(options_)), &question_ = add("question", nn::Lstm(options_));
  nn::Linear &of_place_ = add("of_place", nn::Linear(2 * kHidden, kHidden)),
             &of_question_ = add("of_question", nn::Linear(2 * kHidden, kHidden, {.bias = false})),
             &weight_ = add("weight", nn::Linear(kHidden, 1, {.bias = false})),
             &read_ = add("read", nn::Linear(2 * kHidden, kHidden)),
             &asked_ = add("asked", nn::Linear(2 * kHidden, kHidden, {.bias = false})),
             &candidates_ = add("candidates", nn::Linear(kHidden, kValues));
};

}  // namespace

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? whole_number(argv[1]) : 600;
  train_by_norm<Reader>(norms_of(argc - 2, argv + 2), steps, 2e-3, draw);
} catch (const Error& e) {
  return std::fprintf(stderr, "15_attentive_reader: %s\n", e.what()), 1;
}
