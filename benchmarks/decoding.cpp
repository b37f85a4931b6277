// Times decoding with a KV cache against recomputing every prefix, alternately.
//   usage: decoding [--length N] [--width N] [--depth N] [--heads N] [--vocab N] [--times N] [--threads N]
#include <cstdio>

#include <CLI/CLI.hpp>

#include "benchmarks/measure.h"
#include "benchmarks/serve.h"
#include "isonorm.h"

using namespace isonorm;
using namespace isonorm::bench;

namespace {

struct Sizes {
  int64_t length = 128, width = 256, depth = 4, heads = 4, vocab = 4000;
  int times = 9, threads = num_threads();
};

int64_t likeliest(const Tensor& logits) {
  return static_cast<int64_t>(argmax(select(select(logits, 1, -1), 0, 0)).item());
}

// Decodes `length` ids after `first` without a cache: logits(ids) recomputes the whole prefix every time.
template <class F> std::vector<int64_t> anew(int64_t first, int64_t length, F&& logits) {
  std::vector<int64_t> ids = {first};
  while (std::ssize(ids) <= length) ids.push_back(likeliest(logits(from_vector(ids, {1, std::ssize(ids)}))));
  return ids;
}

// Runs both alternately, after one warm-up run of each, and prints the medians.
template <class Kept, class Anew> void line(const char* what, const Sizes& s, Kept&& kept, Anew&& all) {
  std::vector<double> ours, theirs;
  for (int i = -1; i < s.times; ++i) {
    const double a = milliseconds(kept), b = milliseconds(all);
    if (i >= 0) ours.push_back(a), theirs.push_back(b);
  }
  std::printf("%-24s with a KV cache %8.2f ms, without %8.2f ms, ratio %.4f\n", what, median(ours), median(theirs),
              median(ours) / median(theirs));
}

void run(const Sizes& s) {
  const NoGrad no_grad;
  const nn::TransformerOptions t{.width = s.width, .depth = s.depth, .heads = s.heads};
  manual_seed(1);
  nn::Gpt gpt({.vocab = s.vocab, .context = s.length + 1, .transformer = t});
  nn::EncoderDecoder translator({.vocab = s.vocab, .context = s.length + 1, .transformer = t});
  for (nn::Module* model : {static_cast<nn::Module*>(&gpt), static_cast<nn::Module*>(&translator)})
    model->eval(), model->prepare_inference();
  const Tensor prompt = from_vector<int64_t>({1}, {1}), source = randint(1, s.vocab, {1, s.length});
  Generator generator{1, 0};
  std::vector<int64_t> kept, all;
  line(
      "generate, greedy", s,
      [&] { kept = nn::generate(gpt, prompt, {.length = s.length, .temperature = 0}, generator).to_vector<int64_t>(); },
      [&] { all = anew(1, s.length, [&](const Tensor& ids) { return gpt(ids); }); });
  check(kept == all, "decoding: keys and values that are kept give other ids");
  const nn::Encoded encoded = translator.encode(source);
  // The end token is no id of the vocabulary, so every run has the same number of steps.
  const auto decoded = [&](nn::DecodingCache* cache, const Tensor& ids) {
    return translator.decode(encoded, ids, cache);
  };
  line(
      "encoder-decoder, greedy", s,
      [&] {
        nn::DecodingCache cache;
        kept = {1};
        while (std::ssize(kept) <= s.length)
          kept.push_back(likeliest(decoded(&cache, from_vector(std::vector{kept.back()}, {1, 1}))));
      },
      [&] { all = anew(1, s.length, [&](const Tensor& ids) { return decoded(nullptr, ids); }); });
  check(kept == all, "decoding: keys and values that are kept give other ids");
}

}  // namespace

int main(int argc, char** argv) {
  Sizes s;
  CLI::App app("Times decoding with a KV cache, and with every prefix recomputed.");
  for (const auto& [name, value] : {std::pair{"--length", &s.length},
                                    {"--width", &s.width},
                                    {"--depth", &s.depth},
                                    {"--heads", &s.heads},
                                    {"--vocab", &s.vocab}})
    app.add_option(name, *value)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--times", s.times, "turns")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--threads", s.threads)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    set_num_threads(s.threads);
    run(s);
    std::printf("%d threads, medians of %d turns; BLAS core %s\n", s.threads, s.times,
                environment()["core"].get<std::string>().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "decoding: %s\n", e.what());
    return 3;
  }
}
