// isonorm sample MODEL PROMPT: a text that a language model continues.
#include <unistd.h>

#include <cstdio>

#include "autograd/grad_mode.h"
#include "core/error.h"
#include "core/system/foreign_text.h"
#include "data/text.h"
#include "nn/gpt.h"
#include "tokenizers/tokenizer.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "training/model_file.h"

namespace isonorm::tools {
namespace {

struct SampleOptions {
  std::string model, prompt, tokenizer, data;
  nn::GenerateOptions generate;
  uint64_t seed = 0;
  Device device;
};

// Text to ids and back, and how many ids there are.
struct Vocabulary {
  int64_t size;
  std::function<Tensor(const std::string&)> encode;
  std::function<std::string(const Tensor&)> decode;
};

Vocabulary characters(const std::string& path) {
  const auto all = std::make_shared<data::Text>(path);
  return {all->vocab(), [all](const std::string& s) { return all->encode(s); },
          [all](const Tensor& ids) { return all->decode(ids); }};
}

Vocabulary tokens(const std::string& path) {
  const auto tokenizer = std::make_shared<tokenizers::Tokenizer>(path);
  return {tokenizer->vocab(),
          [tokenizer](const std::string& s) {
            const std::vector<uint32_t> ids = tokenizer->encode(s);
            return from_vector(std::vector<int64_t>(ids.begin(), ids.end()), {std::ssize(ids)});
          },
          [tokenizer](const Tensor& ids) {
            std::string s;
            for (int64_t id : ids.to_vector<int64_t>()) s += tokenizer->bytes_of(id);
            return s;
          }};
}

// On a terminal nothing but text and line breaks is written.
void print(const std::string& s) {
  if (isatty(STDOUT_FILENO) == 0) {
    std::fwrite(s.data(), 1, s.size(), stdout);
  } else {
    for (size_t at = 0; at < s.size();) {
      const size_t end = std::min(s.find('\n', at), s.size());
      std::printf("%s%s", printable(std::string_view(s).substr(at, end - at), s.size()).c_str(),
                  end < s.size() ? "\n" : "");
      at = end + 1;
    }
  }
  std::printf("\n");
}

int run(const SampleOptions& o) {
  if (o.tokenizer.empty() == o.data.empty())
    throw UsageError("one of --tokenizer and --data is needed: what the model's ids stand for");
  if (o.prompt.empty()) throw UsageError("PROMPT is empty");
  const nn::GenerateOptions& g = o.generate;
  if (g.length < 1) throw UsageError(text("--length: ", g.length, " is not a whole number from 1 on"));
  if (g.top_k < 0) throw UsageError(text("--top-k: ", g.top_k, " is not a whole number from 0 on"));
  if (!(g.temperature >= 0)) throw UsageError(text("--temperature: ", g.temperature, " is not a number from 0 on"));
  check_device(o.device);
  const std::unique_ptr<nn::Module> module = training::load_model(o.model);
  auto* model = dynamic_cast<nn::Gpt*>(module.get());
  check(model != nullptr, o.model, ": it holds no language model");
  const Vocabulary vocabulary = o.tokenizer.empty() ? characters(o.data) : tokens(o.tokenizer);
  const int64_t ids = model->options.vocab;
  // A model may have rows beyond the tokens, to make their number a round one.
  check(o.tokenizer.empty() ? vocabulary.size == ids : vocabulary.size <= ids, o.model, ": its vocabulary is of ", ids,
        ", that of ", o.tokenizer.empty() ? o.data : o.tokenizer, " of ", vocabulary.size);
  model->to(o.device);
  Generator generator{.seed = o.seed};
  const NoGrad no_grad;
  print(vocabulary.decode(nn::generate(*model, vocabulary.encode(o.prompt).to(o.device), g, generator).to(kCpu)));
  return kOk;
}

}  // namespace

Verb add_sample(CLI::App& app) {
  CLI::App* command = app.add_subcommand("sample", "Print how a trained language model continues a text");
  auto o = std::make_shared<SampleOptions>();
  command->add_option("MODEL", o->model, "a checkpoint of isonorm train, or what isonorm import wrote")->required();
  command->add_option("PROMPT", o->prompt, "the text to continue")->required();
  command->add_option("--tokenizer", o->tokenizer, "of a model of tokens: as isonorm tokenize takes it")
      ->check(CLI::ExistingPath);
  command->add_option("--data", o->data, "of a model of characters: the text that it was trained on");
  command->add_option("--length", o->generate.length, "tokens to add")->capture_default_str();
  command->add_option("--temperature", o->generate.temperature, "0: always the most likely token")
      ->capture_default_str();
  command->add_option("--top-k", o->generate.top_k, "of the most likely tokens to choose among; 0: all")
      ->capture_default_str();
  add_seed(*command, o->seed, "of the choices");
  add_device(*command, o->device);
  command->footer("Exit codes: 0 printed, 2 usage, 3 bad input, 4 input/output, 70 no memory or threads.");
  return {command, [o] { return run(*o); }};
}

}  // namespace isonorm::tools
