#include "training/run/continue_text.h"

#include <algorithm>
#include <memory>
#include <span>

#include "core/printed.h"
#include "core/system/failures.h"
#include "core/system/foreign_text.h"
#include "core/system/stopwatch.h"
#include "io/data/text.h"
#include "io/tokenizers/tokenizer.h"
#include "training/model_file.h"
#include "training/run/given.h"
#include "training/text_data.h"

namespace isonorm::training {
namespace {

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

Vocabulary vocabulary_of(const TextContinuation& o, int64_t ids) {
  if (o.are_ids) return numbers(ids);
  if (!o.tokenizer.empty()) return tokens(o.tokenizer, tokenizers::Tokenizer(o.tokenizer));
  if (!o.data.empty()) return bytes(o.data, open_text(o.data, {}, 0).text->alphabet());
  const SafetensorsFile file(o.model);
  const DataSpec spec = [&] {
    const Scope scope(o.model);
    return spec_of(file);
  }();
  if (!spec.alphabet.empty()) return bytes(o.model, spec.alphabet);
  if (!spec.tokenizer.empty()) return tokens(o.model, held_tokenizer(o.model, spec.tokenizer));
  throw UsageError(text(o.model, " has no tokenizer and no alphabet: --tokenizer, --data or --ids is needed"));
}

// A prompt and its continuation, printed while it grows, except for an end that may become a stop word or is an
// unfinished UTF-8 character.
class GrowingText {
 public:
  GrowingText(const std::string& prompt, std::vector<std::string> stop, std::function<void(std::string_view)> print)
      : text_(prompt), stop_(std::move(stop)), print_(std::move(print)), begin_(prompt.size()) {
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
    if (print_) print_(std::string_view(text_).substr(printed_, end - printed_));
    printed_ = end;
  }

  std::string text_;
  std::vector<std::string> stop_;
  std::function<void(std::string_view)> print_;
  bool ended_ = false;
  size_t begin_, printed_ = 0;  // bytes of the prompt; bytes that are printed already
};

void check_continuation(const TextContinuation& o) {
  if (o.are_ids + !o.tokenizer.empty() + !o.data.empty() > 1)
    throw UsageError("--tokenizer, --data and --ids exclude each other");
  for (const std::string& word : o.stop)
    if (word.empty()) throw UsageError("--stop is empty");
}

}  // namespace

ContinuedTexts continue_text(const TextContinuation& o) {
  check_continuation(o);
  check_device(o.device);
  const std::unique_ptr<nn::Module> module = load_finite_model(o.model);
  auto* model = dynamic_cast<nn::Gpt*>(module.get());
  check(model != nullptr, o.model, ": it holds no language model");
  const int64_t ids = model->options.vocab;
  const Vocabulary vocabulary = vocabulary_of(o, ids);
  check(vocabulary.may_be_less ? vocabulary.size <= ids : vocabulary.size == ids, o.model, ": its vocabulary has ", ids,
        " ids, the one of ", vocabulary.from, " has ", vocabulary.size);
  const std::vector<int64_t> prompt = vocabulary.encode(o.prompt);
  if (prompt.empty()) throw UsageError("PROMPT is empty");
  model->to(o.device);
  model->prepare_inference();

  std::vector<GrowingText> texts;
  std::string begin;
  for (int64_t id : prompt) begin += vocabulary.decode(id);
  for (int64_t i = 0; i < o.count; ++i) texts.emplace_back(begin, o.stop, o.count == 1 ? o.print : nullptr);
  const Tensor rows = from_vector(prompt, {1, std::ssize(prompt)}).expand({o.count, std::ssize(prompt)});
  Generator generator{.seed = o.seed};
  ContinuedTexts result;
  const Stopwatch watch;
  const auto add = [&](std::span<const int64_t> step) {
    if (!o.go_on()) return false;
    bool more = false;
    for (size_t i = 0; i < texts.size(); ++i)
      if (!o.ignore_eos && std::ranges::count(vocabulary.ends, step[i]) > 0)
        texts[i].end();
      else if (texts[i].add(vocabulary.decode(step[i])))
        more = true, ++result.tokens;
    return more;
  };
  try {
    nn::generate(*model, rows, o.generate, generator, add);
  } catch (const nn::NotFinite& e) {
    throw Diverged(text(o.model, ": ", e.what(), ": its weights are too large for ", module->parameters()[0].dtype()));
  }
  result.seconds = watch.seconds();
  for (GrowingText& grown : texts) {
    grown.end();
    result.texts.push_back(grown.text());
  }
  return result;
}

}  // namespace isonorm::training
