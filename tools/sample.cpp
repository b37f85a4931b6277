// isonorm sample MODEL PROMPT: continues a text by a language model.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "core/system/stopwatch.h"
#include "core/system/terminal.h"
#include "io/data/text.h"
#include "nn/generate.h"
#include "io/tokenizers/tokenizer.h"
#include "tools/interrupt.h"
#include "equivalence/services/model_data.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "training/model_file.h"
#include "training/text_data.h"

namespace isonorm::tools {
namespace {

constexpr int64_t kMostPrompt = 1 << 24;  // limit for the bytes of a prompt from standard input

struct SampleOptions {
  std::string model, prompt = "-", tokenizer, data;
  bool ids = false, ignore_eos = false, quiet = false;
  std::vector<std::string> stop;
  int64_t count = 1;
  nn::GenerateOptions generate;
  uint64_t seed = 0;
  Device device;
};

// Converts text to ids and back. from: where it comes from, for messages. A model may have more rows than tokens, to
// round their number up.
struct Vocabulary {
  std::string from;
  int64_t size;
  bool may_be_less;
  std::function<std::vector<int64_t>(const std::string&)> encode;
  std::function<std::string(int64_t id)> decode;
  std::vector<int64_t> ends = {};  // tokens that end a text
};

Vocabulary bytes(const std::string& from, const data::Alphabet& alphabet) {
  return {from, alphabet.size(), false,
          [alphabet](const std::string& s) { return alphabet.encode(s).to_vector<int64_t>(); },
          [alphabet](int64_t id) { return alphabet.decode(from_vector(std::vector{id}, {1})); }};
}

Vocabulary tokens(const std::string& from, tokenizers::Tokenizer&& own) {
  const auto tokenizer = std::make_shared<tokenizers::Tokenizer>(std::move(own));
  return {from,
          tokenizer->vocab(),
          true,
          [tokenizer](const std::string& s) {
            const std::vector<uint32_t> ids = tokenizer->encode(s);
            return std::vector<int64_t>(ids.begin(), ids.end());
          },
          [tokenizer](int64_t id) { return std::string(tokenizer->bytes_of(id)); },
          tokenizer->end_tokens()};
}

// Ids as numbers: "17 4 256".
Vocabulary numbers(int64_t count) {
  return {
      "--ids", count, false,
      [count](const std::string& s) {
        std::vector<int64_t> ids;
        for (size_t at = s.find_first_not_of(" ,\n"); at < s.size(); at = s.find_first_not_of(" ,\n", at)) {
          const size_t end = std::min(s.find_first_of(" ,\n", at), s.size());
          int64_t id = -1;
          if (!read_number(s.substr(at, end - at), id) || id < 0 || id >= count)
            throw UsageError(text("PROMPT: ", Shown{s.substr(at, end - at)}, " is not an id from 0 to ", count - 1));
          ids.push_back(id);
          at = end;
        }
        return ids;
      },
      [](int64_t id) { return text(id, " "); }};
}

Vocabulary vocabulary_of(const SampleOptions& o, int64_t ids) {
  if (o.ids) return numbers(ids);
  if (!o.tokenizer.empty()) return tokens(o.tokenizer, tokenizers::Tokenizer(o.tokenizer));
  if (!o.data.empty()) return bytes(o.data, training::open_text(o.data, {}, 0).text->alphabet());
  const SafetensorsFile file(o.model);
  const training::DataSpec spec = [&] {
    const Scope scope(o.model);
    return training::spec_of(file);
  }();
  if (!spec.alphabet.empty()) return bytes(o.model, spec.alphabet);
  if (!spec.tokenizer.empty()) return tokens(o.model, services::held_tokenizer(o.model, spec.tokenizer));
  throw UsageError(text(o.model, " has no tokenizer and no alphabet: --tokenizer, --data or --ids is needed"));
}

// A prompt and its continuation, printed while it grows, except for an end that may become a stop word or is an
// unfinished UTF-8 character.
class GrowingText {
 public:
  GrowingText(const std::string& prompt, std::vector<std::string> stop, bool prints)
      : text_(prompt), stop_(std::move(stop)), prints_(prints), begin_(prompt.size()) {
    print_to(begin_);
  }

  // Returns false if the text has ended.
  bool add(const std::string& more) {
    if (ended_) return false;
    text_ += more;
    const size_t from = std::max(begin_, printed_);
    size_t stop = text_.npos;
    for (const std::string& word : stop_) stop = std::min(stop, text_.find(word, from));
    ended_ = stop != text_.npos;
    if (ended_) text_.resize(stop);
    size_t sure = text_.size();
    if (!ended_)
      for (const std::string& word : stop_) {  // the text may end with its beginning
        size_t part = std::min(word.size() - 1, text_.size() - from);
        while (part > 0 && !text_.ends_with(word.substr(0, part))) --part;
        sure = std::min(sure, text_.size() - part);
      }
    print_to(sure);
    return !ended_;
  }
  // Drops an unfinished character at the end of the text.
  void end() {
    ended_ = true;
    print_to(text_.size());
    text_.resize(printed_);
  }
  const std::string& text() const { return text_; }

 private:
  void print_to(size_t end) {
    end = whole_characters(text_, end).size();
    if (end <= printed_) return;
    if (prints_) {
      print_text(std::string_view(text_).substr(printed_, end - printed_));
      flush_output();
    }
    printed_ = end;
  }

  std::string text_;
  std::vector<std::string> stop_;
  bool prints_, ended_ = false;
  size_t begin_, printed_ = 0;  // bytes of the prompt; bytes that are printed already
};

void check_options(const SampleOptions& o) {
  if (o.ids + !o.tokenizer.empty() + !o.data.empty() > 1)
    throw UsageError("--tokenizer, --data and --ids exclude each other");
  for (const std::string& word : o.stop)
    if (word.empty()) throw UsageError("--stop is empty");
}

int run_sample(SampleOptions o) {
  check_options(o);
  training::check_device(o.device);
  const std::string from = o.prompt == "-" ? "/dev/stdin" : "";  // file of the prompt
  check_outputs({}, {{"MODEL", o.model}, {"--tokenizer", o.tokenizer}, data_input(o.data), {"PROMPT", from}});
  const std::unique_ptr<nn::Module> module = services::load_finite_model(o.model);
  auto* model = dynamic_cast<nn::Gpt*>(module.get());
  check(model != nullptr, o.model, ": it holds no language model");
  const int64_t ids = model->options.vocab;
  const Vocabulary vocabulary = vocabulary_of(o, ids);
  check(vocabulary.may_be_less ? vocabulary.size <= ids : vocabulary.size == ids, o.model, ": its vocabulary has ", ids,
        " ids, the one of ", vocabulary.from, " has ", vocabulary.size);
  if (!from.empty()) o.prompt = read_text(from, kMostPrompt);
  const std::vector<int64_t> prompt = vocabulary.encode(o.prompt);
  if (prompt.empty()) throw UsageError("PROMPT is empty");
  model->to(o.device);
  model->prepare_inference();

  std::vector<GrowingText> texts;
  std::string begin;
  for (int64_t id : prompt) begin += vocabulary.decode(id);
  for (int64_t i = 0; i < o.count; ++i) texts.emplace_back(begin, o.stop, o.count == 1);
  const Tensor rows = from_vector(prompt, {1, std::ssize(prompt)}).expand({o.count, std::ssize(prompt)});
  Generator generator{.seed = o.seed};
  int64_t made = 0;
  const Stopwatch watch;
  const auto add = [&](std::span<const int64_t> step) {
    if (made == 0) catch_interrupt();  // the prompt may take long; now there is output to keep
    bool more = false;
    for (size_t i = 0; i < texts.size(); ++i)
      if (!o.ignore_eos && std::ranges::count(vocabulary.ends, step[i]) > 0)
        texts[i].end();
      else if (texts[i].add(vocabulary.decode(step[i])))
        more = true, ++made;
    return more && !interrupted();
  };
  try {
    nn::generate(*model, rows, o.generate, generator, add);
  } catch (const nn::NotFinite& e) {
    throw Diverged(text(o.model, ": ", e.what(), ": its weights are too large for ", module->parameters()[0].dtype()));
  }
  const double seconds = watch.seconds();
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i].end();
    if (o.count > 1) print_text(text(i > 0 ? "\n" : "", texts[i].text()));
    print_text("\n");
  }
  services::warn_of_averages(SafetensorsFile(o.model), o.model);
  if (!o.quiet)
    std::fputs(printed("%d tokens, %.1f tokens/s\n", made, static_cast<double>(made) / seconds).c_str(), stderr);
  return interrupted() ? kInterrupted : kOk;
}

}  // namespace

Verb add_sample(CLI::App& app) {
  CLI::App* command = app.add_subcommand("sample", "Print how a trained language model continues a text");
  auto o = std::make_shared<SampleOptions>();
  command->add_option("MODEL", o->model, "a checkpoint of isonorm train, or a file of isonorm import")->required();
  command->add_option("PROMPT", o->prompt, "the text to continue (default: -, standard input)");
  command
      ->add_option("--tokenizer", o->tokenizer,
                   "tokenizer of a model of tokens, as isonorm tokenize takes it (default: the one in MODEL)")
      ->check(CLI::ExistingPath);
  command->add_option("--data", o->data,
                      "the text that a model of bytes was trained on, if MODEL does not have its alphabet");
  command->add_flag("--ids", o->ids, "read and print ids, \"17 4 256\"");
  nn::GenerateOptions& g = o->generate;
  add_number(*command, "length", g.length,
             "largest number of tokens to add; the bytes of an unfinished UTF-8 character at the end are left out",
             training::from(1));
  add_number(*command, "count", o->count, "number of texts that continue PROMPT", training::from(1));
  command->add_option("--stop", o->stop, "end a text before this word; may be given several times")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--ignore-eos", o->ignore_eos,
                    "continue after the tokenizer's end token, such as <|endoftext|>, which ends a text otherwise");
  add_number(*command, "temperature", g.temperature, "divides the logits; 0: always the most likely token");
  add_number(*command, "top_k", g.top_k, "choose among this many most likely tokens; 0: all");
  add_number(*command, "top_p", g.top_p, "choose among the fewest tokens whose probabilities add up to this",
             {.most = 1, .above = true});
  add_number(*command, "min_p", g.min_p, "choose among tokens with at least this share of the largest probability",
             training::kShare);
  add_number(*command, "repetition_penalty", g.repetition_penalty,
             "above 1, tokens that are already in the text get less likely; 1: off", training::above(0));
  add_seed(*command, o->seed, "seed of the random choices");
  command->add_flag("-q,--quiet", o->quiet, "do not print the speed to standard error");
  add_device(*command, o->device);
  command->footer(
      "Exit codes: 0 printed, 2 usage, 3 bad input, 4 input/output, 6 numbers are not finite, 70 no memory or threads, "
      "130 interrupted.");
  return {command, [o] { return run_sample(*o); }};
}

}  // namespace isonorm::tools
