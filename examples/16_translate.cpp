// A translator reverses a sentence: a bidirectional GRU encodes it; a GRU decoder writes the same words from the last
// to the first, and attends to the sentence before each word (Bahdanau et al., 1409.0473; scores by a product, Luong et
// al., 1508.04025). Trained with each of four norms.
//   usage: 16_translate [steps [none|layer|rms|prms ...]]
#include <algorithm>

#include "by_norm.h"

using namespace isonorm;

namespace {

constexpr int64_t kEnd = 0, kBegin = 1, kFirst = 2, kVocabulary = 18;  // ids of words begin at kFirst
constexpr int64_t kShortest = 3, kLongest = 8, kBatch = 32;
constexpr int64_t kWidth = 32, kHidden = 64;

struct Batch {
  Tensor source, mask;  // [kBatch, kLongest]: ids; 1 for a word, 0 for padding
  // [kBatch, kLongest + 1]: begin token and reversed words; reversed words and end token, padded with -100 (ignored).
  Tensor given, target;
};

// Depends only on the seed, on every machine.
Batch draw(uint64_t seed) {
  Generator g{.seed = seed};
  std::vector<int64_t> source, given, target;
  std::vector<float> mask;
  for (int64_t b = 0; b < kBatch; ++b) {
    const int64_t length = randint(kShortest, kLongest + 1, {}, kCpu, g).to_vector<int64_t>()[0];
    std::vector<int64_t> words = randint(kFirst, kVocabulary, {length}, kCpu, g).to_vector<int64_t>();
    for (int64_t i = 0; i < kLongest; ++i) {
      source.push_back(i < length ? words[static_cast<size_t>(i)] : kEnd);
      mask.push_back(i < length ? 1.f : 0.f);
    }
    std::reverse(words.begin(), words.end());
    for (int64_t i = 0; i <= kLongest; ++i) {
      given.push_back(i == 0 ? kBegin : i <= length ? words[static_cast<size_t>(i - 1)] : kEnd);
      target.push_back(i < length ? words[static_cast<size_t>(i)] : i == length ? kEnd : -100);
    }
  }
  return {from_vector(source, {kBatch, kLongest}), from_vector(mask, {kBatch, kLongest}),
          from_vector(given, {kBatch, kLongest + 1}), from_vector(target, {kBatch, kLongest + 1})};
}

nn::RecurrentOptions options_of(const ByNorm& n, bool bidirectional) {
  return {.inputs = kWidth,
          .hidden = kHidden,
          .bidirectional = bidirectional,
          .norm = n.norm,
          .p = n.p,
          .initialisation = nn::RecurrentInitialisation::orthogonal};
}

class Translator : public nn::Module {
 public:
  explicit Translator(const ByNorm& n)
      : encoder_(add("encoder", nn::Gru(options_of(n, true)))),
        decoder_(add("decoder", nn::Gru(options_of(n, false)))) {}

  Tensor loss(const Batch& b) {
    const Sentence s = read(b);
    return cross_entropy(write(s, b.given, s.state).logits, b.target);
  }

  // The share of sentences that greedy decoding reverses without an error.
  double accuracy(const Batch& b) {
    const Sentence s = read(b);
    Tensor words = narrow(b.given, 1, 0, 1);
    std::vector<Tensor> state = s.state;
    std::vector<double> right(static_cast<size_t>(kBatch), 1);
    const std::vector<int64_t> target = b.target.to_vector<int64_t>();
    for (int64_t t = 0; t <= kLongest; ++t) {
      Written w = write(s, words, state);
      words = argmax(w.logits), state = w.state;
      const std::vector<int64_t> said = words.to_vector<int64_t>();
      for (size_t i = 0; i < right.size(); ++i) {
        const int64_t wanted = target[i * static_cast<size_t>(kLongest + 1) + static_cast<size_t>(t)];
        if (wanted != -100 && said[i] != wanted) right[i] = 0;
      }
    }
    double count = 0;
    for (double r : right) count += r;
    return count / static_cast<double>(right.size());
  }

 private:
  struct Sentence {
    Tensor rows;                // encoder output, [batch, kLongest, 2 kHidden]
    Tensor hidden;              // -1e9 for padding, [batch, 1, kLongest]
    std::vector<Tensor> state;  // initial state of the decoder
  };
  struct Written {
    Tensor logits;  // [batch, words, kVocabulary]
    std::vector<Tensor> state;
  };

  Sentence read(const Batch& b) {
    const nn::RecurrentResult r = encoder_(source_(b.source), {.mask = b.mask});
    // The forward state after the last word, and the backward state after the first word.
    const Tensor ends = cat({select(r.state[0], 0, 0), select(r.state[0], 0, 1)}, -1);
    return {r.output, unsqueeze((b.mask - 1) * 1e9, 1), {unsqueeze(tanh(bridge_(ends)), 0)}};
  }

  Written write(const Sentence& s, const Tensor& words, const std::vector<Tensor>& state) {
    const nn::RecurrentResult r = decoder_(target_(words), {.state = state});
    const Tensor weights = softmax(matmul(query_(r.output), transpose(s.rows, 1, 2)) + s.hidden);
    const Tensor seen = matmul(weights, s.rows);  // [batch, words, 2 kHidden]
    return {head_(tanh(joined_(cat({r.output, seen}, -1)))), r.state};
  }

  nn::Embedding &source_ = add("source", nn::Embedding(kVocabulary, kWidth)),
                &target_ = add("target", nn::Embedding(kVocabulary, kWidth));
  nn::Gru &encoder_, &decoder_;
  nn::Linear &bridge_ = add("bridge", nn::Linear(2 * kHidden, kHidden)),
             &query_ = add("query", nn::Linear(kHidden, 2 * kHidden, {.bias = false})),
             &joined_ = add("joined", nn::Linear(3 * kHidden, kHidden)),
             &head_ = add("head", nn::Linear(kHidden, kVocabulary));
};

}  // namespace

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? whole_number(argv[1]) : 600;
  train_by_norm<Translator>(norms_of(argc - 2, argv + 2), steps, 3e-3, draw);
} catch (const Error& e) {
  return std::fprintf(stderr, "16_translate: %s\n", e.what()), 1;
}
