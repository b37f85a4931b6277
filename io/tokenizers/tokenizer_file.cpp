#include "io/tokenizers/tokenizer_file.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <unordered_set>

#include "core/error.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "io/json.h"

namespace isonorm::tokenizers {
namespace {

namespace fs = std::filesystem;

using io::JsonValue;

constexpr int64_t kLimit = int64_t{1} << 28;    // maximum size of a file; the largest published ones have 2^25 bytes
constexpr int64_t kMostIds = int64_t{1} << 32;  // files of tokens store u32
constexpr int kDeepest = 8;                     // maximum depth of ignored values and of Sequences
// Maximum bytes of an added token. It bounds the search, which begins at every byte of a text.
constexpr size_t kLongestAdded = 256;

// Accepts any value and ignores it.
JsonValue ignored(int depth = 0) {
  JsonValue any{.string = [](const std::string&) {}, .number = [](double) {}, .flag = [](bool) {}, .null = [] {}};
  if (depth < kDeepest) {
    any.member = [depth](const std::string&) { return ignored(depth + 1); };
    any.element = [depth] { return ignored(depth + 1); };
  }
  return any;
}

JsonValue into(bool& flag) {
  return {.flag = [&flag](bool value) { flag = value; }};
}

uint32_t checked_id(const std::string& token, int64_t id) {
  check(id < kMostIds, "token ", Shown{token}, " has the id ", id, ", expected 0 to ", kMostIds - 1);
  return static_cast<uint32_t>(id);
}

JsonValue vocabulary_into(Vocabulary& vocabulary) {
  return {.member = [&vocabulary](const std::string& token) -> JsonValue {
    return {.integer = [&vocabulary, token](int64_t id) {
      const bool is_new = vocabulary.emplace(token, checked_id(token, id)).second;
      check(is_new, "token ", Shown{token}, " is in the vocabulary twice");
    }};
  }};
}

Merge merge_of(std::string_view line, size_t number) {
  const size_t space = line.find(' ');
  check(space != line.npos && line.find(' ', space + 1) == line.npos, "merge ", number, " is ", Shown{line},
        ", expected two tokens with a space between");
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

// A merge is written "a b" or ["a", "b"].
JsonValue merges_into(std::vector<Merge>& merges) {
  return {.element = [&merges]() -> JsonValue {
    auto parts = std::make_shared<std::vector<std::string>>();
    return {.string = [&merges](const std::string& line) { merges.push_back(merge_of(line, merges.size())); },
            .element = [parts]() -> JsonValue {
              return {.string = [parts](const std::string& part) { parts->push_back(part); }};
            },
            .end =
                [&merges, parts] {
                  check(parts->size() == 2, "merge ", merges.size(), " is of ", parts->size(), " tokens, expected 2");
                  merges.push_back({parts->at(0), parts->at(1)});
                }};
  }};
}

JsonValue added_into(std::vector<AddedToken>& added) {
  return {.element = [&added]() -> JsonValue {
    added.emplace_back();
    return {.member = [&token = added.back()](const std::string& key) -> JsonValue {
              if (key == "content") return {.string = [&token](const std::string& s) { token.content = s; }};
              if (key == "id") return {.integer = [&token](int64_t id) { token.id = checked_id(token.content, id); }};
              if (key == "lstrip") return into(token.lstrip);
              if (key == "rstrip") return into(token.rstrip);
              if (key == "normalized") return into(token.normalized);
              if (key == "special") return into(token.special);
              if (key != "single_word") return ignored();
              return {.flag = [&token](bool alone) {
                check(!alone, "added token ", Shown{token.content}, ": single_word is not supported");
              }};
            },
            .end =
                [&added] {
                  const std::string& content = added.back().content;
                  check(!content.empty(), "added token ", added.size() - 1, " has no content");
                  check(content.size() <= kLongestAdded, "added token ", Shown{content}, " has ", content.size(),
                        " bytes, over the limit of ", kLongestAdded);
                }};
  }};
}

// A normalizer, pre-tokenizer, post-processor or decoder: its type and the options that any step may have.
struct Component {
  std::string type, regex, behavior;
  std::map<std::string, bool> flags;
  std::vector<Component> parts;  // if it is a Sequence

  bool flag(const std::string& name, bool otherwise) const {
    const auto at = flags.find(name);
    return at == flags.end() ? otherwise : at->second;
  }
};

JsonValue component_into(Component& c, int depth = 0) {
  return {.member = [&c, depth](const std::string& key) -> JsonValue {
            if (key == "type") return {.string = [&c](const std::string& type) { c.type = type; }};
            if (key == "behavior") return {.string = [&c](const std::string& word) { c.behavior = word; }};
            if (key == "pattern")
              return {.member = [&c](const std::string& kind) -> JsonValue {
                check(kind == "Regex", "a pattern of kind ", Shown{kind}, " is not supported, expected Regex");
                return {.string = [&c](const std::string& regex) { c.regex = regex; }};
              }};
            if (key == "normalizers" || key == "pretokenizers" || key == "processors" || key == "decoders")
              return {.element = [&c, depth] {
                check(depth < kDeepest, "a Sequence of Sequences, over ", kDeepest, " deep");
                return component_into(c.parts.emplace_back(), depth + 1);
              }};
            JsonValue other = ignored();
            other.flag = [&c, key](bool value) { c.flags[key] = value; };
            return other;
          },
          .null = [] {}};
}

// Calls `take` with each component that is not a Sequence. An absent component gives no call.
template <class F> void for_each_part(const Component& c, F&& take) {
  if (c.type == "Sequence")
    for (const Component& part : c.parts) for_each_part(part, take);
  else if (!c.type.empty())
    take(c);
}

void refuse_others(const char* what, const Component& all, std::initializer_list<std::string_view> known) {
  for_each_part(all, [&](const Component& c) {
    std::string names;
    for (const std::string_view name : known) names += text(names.empty() ? "" : " or ", name);
    check(std::ranges::count(known, c.type) > 0, what, " ", Shown{c.type}, " is not supported, expected ", names);
  });
}

std::vector<std::string> patterns_of(const Component& pre_tokenizer) {
  refuse_others("pre_tokenizer", pre_tokenizer, {"ByteLevel", "Split", "Digits"});
  std::vector<std::string> patterns;
  bool bytes = false;
  for_each_part(pre_tokenizer, [&](const Component& c) {
    check(!bytes, "pre_tokenizer ", c.type, " after ByteLevel is not supported");
    if (c.type == "Split") {
      check(c.behavior == "Isolated", "pre_tokenizer Split of behavior ", Shown{c.behavior},
            " is not supported, expected Isolated");
      patterns.push_back(c.regex);
    } else if (c.type == "Digits") {
      patterns.emplace_back(c.flag("individual_digits", false) ? "\\p{N}" : "\\p{N}+");
    } else {
      bytes = true;
      check(!c.flag("add_prefix_space", true),
            "pre_tokenizer ByteLevel with add_prefix_space is not supported: it adds a space that the text does not "
            "have");
      if (c.flag("use_regex", true)) patterns.emplace_back(kGpt2Pattern);
    }
  });
  check(bytes, "pre_tokenizer without ByteLevel is not supported");
  return patterns;
}

void check_ids(const TokenizerFile& file) {
  std::unordered_map<uint32_t, std::string_view> names;
  const auto take = [&](const std::string& token, uint32_t id) {
    const auto at = names.emplace(id, token).first;
    check(at->second == token, "tokens ", Shown{at->second}, " and ", Shown{token}, " both have the id ", id);
  };
  for (const auto& [token, id] : file.vocabulary) take(token, id);
  std::unordered_set<std::string_view> added;
  size_t next = file.vocabulary.size();
  for (const AddedToken& token : file.added) {
    check(added.insert(token.content).second, "added token ", Shown{token.content}, " is there twice");
    const auto at = file.vocabulary.find(token.content);
    if (at == file.vocabulary.end()) {
      check(token.id == next, "added token ", Shown{token.content}, " has id ", token.id, ", expected ", next,
            ": the `tokenizers` package numbers added tokens consecutively, from the vocabulary's size");
      take(token.content, token.id);
      ++next;
    } else {
      check(at->second == token.id, "added token ", Shown{token.content}, " has the id ", token.id, ", but ",
            at->second, " in the vocabulary");
      check(bytes_of_token(token.content) == token.content, "added token ", Shown{token.content},
            " is in the vocabulary, as the encoding of other bytes");
    }
  }
}

class Reader {
 public:
  explicit Reader(TokenizerFile& file) : file_(file) {}

  void read(std::string_view json) {
    io::read_json(json, {.member = [this](const std::string& key) { return section(key); }});
    check(has_model_, "it has no model");
    for_each_part(normalizer_, [this](const Component& c) {
      check(c.type == "NFC", "normalizer ", Shown{c.type}, " is not supported, expected NFC or none");
      file_.nfc = true;
    });
    file_.patterns = patterns_of(pre_tokenizer_);
    refuse_others("post_processor", post_processor_, {"ByteLevel", "TemplateProcessing"});
    refuse_others("decoder", decoder_, {"ByteLevel"});
    check_ids(file_);
  }

 private:
  JsonValue section(const std::string& key) {
    if (key == "model")
      return has_model_ = true, JsonValue{.member = [this](const std::string& k) { return model(k); }};
    if (key == "added_tokens") return added_into(file_.added);
    if (key == "normalizer") return component_into(normalizer_);
    if (key == "pre_tokenizer") return component_into(pre_tokenizer_);
    if (key == "post_processor") return component_into(post_processor_);
    if (key == "decoder") return component_into(decoder_);
    if (key != "truncation" && key != "padding") return ignored();
    return {.member = [key](const std::string&) -> JsonValue {
              check(false, key, " is not supported, expected null");
              return {};
            },
            .null = [] {}};
  }

  JsonValue model(const std::string& key) {
    if (key == "type")
      return {.string = [](const std::string& type) {
        check(type == "BPE", "model ", Shown{type}, " is not supported, expected BPE");
      }};
    if (key == "vocab") return vocabulary_into(file_.vocabulary);
    if (key == "merges") return merges_into(file_.merges);
    if (key == "ignore_merges") return into(file_.ignore_merges);
    if (key == "dropout")
      return {
          .number = [](double p) { check(p == 0, "model with dropout ", p, " is not supported: its ids are random"); },
          .null = [] {}};
    if (key == "continuing_subword_prefix" || key == "end_of_word_suffix")
      return {
          .string =
              [key](const std::string& s) { check(s.empty(), "model with ", key, " ", Shown{s}, " is not supported"); },
          .null = [] {}};
    return ignored();  // the treatment of unknown characters does not matter: every byte is a token
  }

  TokenizerFile& file_;
  bool has_model_ = false;
  Component normalizer_, pre_tokenizer_, post_processor_, decoder_;
};

TokenizerFile read_vocabulary_and_merges(const std::string& vocabulary, const std::string& merges) {
  TokenizerFile file;
  file.patterns = {kGpt2Pattern};
  {
    const std::string json = read_text(vocabulary, kLimit);
    const Scope scope(vocabulary);
    io::read_json(json, vocabulary_into(file.vocabulary));
    if (const auto end = file.vocabulary.find("<|endoftext|>"); end != file.vocabulary.end())
      file.added.push_back({.content = end->first, .id = end->second, .special = true});
    check_ids(file);
  }
  const std::string all = read_text(merges, kLimit);
  const Scope scope(merges);
  for (std::string_view rest = all; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) file.merges.push_back(merge_of(line, file.merges.size()));
  }
  return file;
}

}  // namespace

std::string tokenizer_json(const std::string& path) {
  const bool folder = fs::is_directory(path);
  const fs::path json = folder ? fs::path(path) / "tokenizer.json" : fs::path(path);
  const bool pair =
      folder ? fs::exists(fs::path(path) / "vocab.json") && !fs::exists(json) : json.filename() == "vocab.json";
  return pair ? "" : json.string();
}

TokenizerFile read_tokenizer_json(std::string_view json) {
  TokenizerFile file;
  Reader(file).read(json);
  return file;
}

TokenizerFile read_tokenizer(const std::string& path) {
  if (const std::string json = tokenizer_json(path); !json.empty()) {
    const std::string content = read_text(json, kLimit);
    const Scope scope(json);
    return read_tokenizer_json(content);
  }
  const fs::path vocabulary = fs::is_directory(path) ? fs::path(path) / "vocab.json" : fs::path(path);
  return read_vocabulary_and_merges(vocabulary, vocabulary.parent_path() / "merges.txt");
}

}  // namespace isonorm::tokenizers
