// Times decoding at batch 1 for a GPT whose weights exceed the caches, and reading the same number of bytes, because a
// token reads every weight once.
//   usage: tokens [--dtype f32|bf16] [--width N] [--depth N] [--vocab N] [--length N] [--rounds N] [--threads N]
//                 [--serve]
// With --serve it speaks the protocol of benchmarks/serve.h. The works are "decode", milliseconds per token, and
// "read", milliseconds to sum a tensor of the size in bytes of a token's weights.
#include <cstdio>

#include <CLI/CLI.hpp>

#include "benchmarks/measure.h"
#include "benchmarks/serve.h"
#include "isonorm.h"

using namespace isonorm;
using namespace isonorm::bench;

namespace {

struct Sizes {
  int64_t width = 1024, depth = 8, vocab = 8192, length = 32;
  int rounds = 5, threads = num_threads();
  std::string dtype = "f32";
};

class Works {
 public:
  explicit Works(const Sizes& s)
      : length_(s.length),
        model_({.vocab = s.vocab,
                .context = 2 * s.length,
                .tied = true,
                .transformer = {.width = s.width, .depth = s.depth, .heads = s.width / 64, .affine = true}}) {
    model_.to(s.dtype == "bf16" ? DType::bf16 : DType::f32);
    model_.eval();
    model_.prepare_inference();
    for (const nn::NamedParameter& p : model_.named_parameters())
      if (p.name != "position.weight") bytes_ += p.tensor.numel() * size_of(p.tensor.dtype());
  }

  nlohmann::json operator()(int times, const std::vector<std::string>& work) {
    check(work == std::vector<std::string>{"decode"} || work == std::vector<std::string>{"read"},
          "no such work is known: decode, read");
    const bool reads = work[0] == "read";
    if (reads && !bulk_.defined()) bulk_ = ones({bytes_ / 4});
    std::vector<double> ms;
    for (int i = 0; i < times; ++i)
      ms.push_back(milliseconds([&] { reads ? (void)sum(bulk_).item() : decode(); }) /
                   static_cast<double>(reads ? 1 : length_));
    return {{"ms", ms}, {"bytes", bytes_}};
  }

  int64_t parameters() const { return model_.parameter_count(); }

 private:
  void decode() {
    const Tensor prompt = from_vector<int64_t>({1}, {1});
    (void)nn::generate(model_, prompt, {.length = length_, .temperature = 0});
  }

  int64_t length_, bytes_ = 0;
  nn::Gpt model_;
  Tensor bulk_;
};

void print(Works& works, int rounds) {
  std::vector<double> tokens, reads;
  for (int i = -1; i < rounds; ++i)
    for (const char* work : {"decode", "read"}) {
      const double ms = works(1, {work})["ms"][0];
      if (i >= 0) (*work == 'd' ? tokens : reads).push_back(ms);
    }
  const double bytes = works(1, {"decode"})["bytes"];
  std::printf("%.1f tokens/s, %.1f GB/s of weights, read %.1f GB/s, share %.3f\n", 1e3 / median(tokens),
              bytes / median(tokens) / 1e6, bytes / median(reads) / 1e6, median(reads) / median(tokens));
}

}  // namespace

int main(int argc, char** argv) {
  Sizes s;
  bool on_request = false;
  CLI::App app("Times decoding at batch 1 against reading the weights.");
  for (const auto& [name, value] :
       {std::pair{"--width", &s.width}, {"--depth", &s.depth}, {"--vocab", &s.vocab}, {"--length", &s.length}})
    app.add_option(name, *value)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--dtype", s.dtype)->check(CLI::IsMember({"f32", "bf16"}))->capture_default_str();
  app.add_option("--rounds", s.rounds)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--threads", s.threads)->check(CLI::PositiveNumber);
  app.add_flag("--serve", on_request, "work on request (see benchmarks/serve.h)");
  CLI11_PARSE(app, argc, argv);
  try {
    set_num_threads(s.threads);
    manual_seed(1);
    Works works(s);
    if (!on_request) {
      std::printf("%s, %d threads, %.0f MB resident\n", s.dtype.c_str(), s.threads,
                  static_cast<double>(resident_bytes()) / 1e6);
      print(works, s.rounds);
      return 0;
    }
    nlohmann::json facts = environment();
    facts["parameters"] = works.parameters();
    facts["base_bytes"] = resident_bytes();
    serve(facts, std::ref(works));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tokens: %s\n", e.what());
    return 3;
  }
}
