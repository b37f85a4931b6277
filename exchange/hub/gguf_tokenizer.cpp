// A tokenizer of the hub as keys of a GGUF file. Source: llama.cpp, src/llama-vocab.cpp (pattern names, token types).
#include <algorithm>

#include "core/error.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "exchange/hub/folder.h"
#include "exchange/hub/gguf.h"
#include "io/tokenizers/tokenizer_file.h"

namespace isonorm::hub {
namespace {

enum TokenType { kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5 };

// Matches a word with an apostrophe or another character before it, `digits`, other characters, or white space.
std::string llama3_pattern(const char* digits) {
  return text(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)", digits,
              R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
}

// llama.cpp's name for the patterns that split a text into words; empty if none is known here.
std::string pattern_name(const tokenizers::TokenizerFile& file) {
  using tokenizers::kGpt2Pattern;
  const std::pair<const char*, std::vector<std::string>> known[] = {{"gpt-2", {kGpt2Pattern}},
                                                                    {"starcoder", {R"(\p{N})", kGpt2Pattern}},
                                                                    {"llama-bpe", {llama3_pattern(R"(\p{N}{1,3})")}},
                                                                    {"qwen2", {llama3_pattern(R"(\p{N})")}}};
  for (const auto& [name, patterns] : known)
    if (patterns == file.patterns) return name;
  return "";
}

}  // namespace

json gguf_tokenizer(const tokenizers::TokenizerFile& file, int64_t vocab) {
  const std::string name = pattern_name(file);
  check(!name.empty(), "the tokenizer splits a text by ",
        Shown{file.patterns.empty() ? "nothing" : file.patterns.back()}, ", for which no name in llama.cpp is known");
  check(!file.ignore_merges || name == "llama-bpe",
        "the tokenizer keeps words that are tokens whole (ignore_merges), which "
        "llama.cpp does only with LLaMA 3's pattern");
  std::vector<std::string> tokens(static_cast<size_t>(vocab));
  std::vector<int> types(tokens.size(), kUnused);
  const auto add = [&](const std::string& token, uint32_t id, int type) {
    check(id < tokens.size(), "the tokenizer's ", Shown{token}, " has the id ", id, ", the model has ", vocab, " ids");
    tokens[id] = token, types[id] = type;
  };
  for (const auto& [token, id] : file.vocabulary) add(token, id, kNormal);
  for (const tokenizers::AddedToken& t : file.added) add(t.content, t.id, t.special ? kControl : kUserDefined);
  for (size_t i = 0; i < tokens.size(); ++i)
    if (types[i] == kUnused) tokens[i] = text("[PAD", i, ']');
  std::vector<std::string> merges;
  for (const tokenizers::Merge& m : file.merges) merges.push_back(text(m.left, ' ', m.right));
  return {{"model", "gpt2"}, {"pre", name}, {"tokens", tokens}, {"token_type", types}, {"merges", merges}};
}

json gguf_tokenizer(const std::string& folder, int64_t vocab) {
  const tokenizers::TokenizerFile file = tokenizers::read_tokenizer(folder);
  const json config = file_exists(folder + "/config.json") ? read_config(folder).values() : json::object();
  const Scope scope(folder);
  json keys = gguf_tokenizer(file, vocab);
  for (const char* key : {"bos_token_id", "eos_token_id"})
    if (const auto at = config.find(key); at != config.end() && at->is_number_unsigned())
      if (at->get<uint64_t>() < static_cast<uint64_t>(vocab)) keys[key] = *at;
  return keys;
}

}  // namespace isonorm::hub
