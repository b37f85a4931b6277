#include "training/text_data.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "io/tokenizers/tokenizer.h"

namespace isonorm::training {
namespace {

// The path, or if the file exists a similar one that does not: "a.txt", "a-2.txt".
std::string free_path(const std::filesystem::path& path) {
  std::filesystem::path other = path;
  for (int n = 2; file_exists(other.string()); ++n)
    other.replace_filename(path.stem().string() + text("-", n) + path.extension().string());
  return other.string();
}

// Fills in `command`: the name of this file, and of the text or the ids (of `vocab` tokens) that it makes.
std::string command_for(std::string command, const std::string& path, int64_t vocab) {
  std::filesystem::path made = path, ids = path;
  made.replace_extension();
  if (made.extension() != ".txt") made += ".txt";
  ids.replace_extension(".bin");
  const auto put = [&](std::string_view word, const std::string& name) {
    if (const size_t at = command.rfind(word); at != command.npos) command.replace(at, word.size(), name);
  };
  put("WIDTH", vocab > 1 << 16 ? "uint32" : "uint16");
  put("FILE", shell_word(path));
  const bool makes_ids = command.ends_with("IDS");
  put(makes_ids ? "IDS" : "TEXT", shell_word(free_path(makes_ids ? ids : made)));
  return command;
}

// "; isonorm train --text reads ...": the end of an error.
template <class... Words> std::string way_out(const TextQuestion& q, const Words&... words) {
  return q.command ? text("; ", *q.command, words...) : "";
}

// Throws for a file in a format that must be converted.
void refuse(const data::TextContent& content, const std::string& path, const TextQuestion& q) {
  const bool wants_ids = q.token_vocab > 0 && !q.has_tokenizer;
  const char* const expected = content.holds_ids    ? ", and token ids are read from a file without a header: "
                               : wants_ids          ? ", and token ids are expected: "
                               : q.token_vocab == 0 ? ", and a text is expected: "
                                                    : ", and a text or token ids are expected: ";
  const char* const option = q.token_vocab == 0 ? "--text" : wants_ids ? "--ids u16" : "--text or --ids u16";
  check(false, path, ": is ", content.format, expected, command_for(content.command, path, q.token_vocab),
        content.holds_ids && q.token_vocab == 0 ? text("; ", q.reads_ids, " reads these") : "",
        way_out(q, option, " reads it as it is"));
}

Bytes open_ids(std::FILE* out, const std::string& path) {
  const std::shared_ptr<std::FILE> file(out, std::fclose);
  const int64_t size = std::ftell(out);
  return {path, size, [file](int64_t offset, void* to, int64_t n) {
            check_io(pread(fileno(file.get()), to, static_cast<size_t>(n), offset) == n,
                     "its ids cannot be read from a temporary file");
          }};
}

tokenizers::Tokenizer tokenizer_of(const TrainingOptions& o) {
  if (o.spec.tokenizer.empty()) return tokenizers::Tokenizer(o.tokenizer);
  const Scope scope("the model's tokenizer");
  return tokenizers::Tokenizer::of_json(o.spec.tokenizer);
}

}  // namespace

TextReading reading_of(const Bytes& file, const TextQuestion& q) {
  const std::string& path = file.name;
  TextReading reading{.width = q.token_vocab > 1 << 16 || data::looks_like_u32(file) ? data::IdWidth::u32
                                                                                     : data::IdWidth::u16};
  const data::TextContent content = data::text_content(file);
  if (q.ids) {
    check(q.token_vocab > 0, path, ": --ids ", name_of(*q.ids),
          " needs the number of tokens: --token-vocab N, or --tokenizer TOKENIZER");
    reading.as = Reading::ids, reading.width = *q.ids;
    return reading;
  }
  const bool letters = q.only_ids || (q.token_vocab > 0 && q.token_vocab <= kLettersVocab && !q.has_tokenizer);
  if (!q.is_text && !content.format.empty() && !(content.by_letters && letters)) refuse(content, path, q);
  if (q.is_text || content.text) {
    check(q.has_tokenizer || q.token_vocab == 0, path, ": is a text, and ids of ", q.token_vocab,
          " tokens are expected: isonorm tokenize TOKENIZER ", shell_word(path), " IDS makes them",
          way_out(q, "--ids u16 takes the text for ids"));
    reading.as = q.has_tokenizer ? Reading::tokenized : Reading::bytes;
    return reading;
  }
  check(q.token_vocab > 0 || q.has_tokenizer, path, ": is not a text: ", content.why, "; ", q.reads_ids,
        " reads token ids", q.command ? text(", ", *q.command, "--text any bytes as a text") : "");
  reading.as = Reading::ids;
  return reading;
}

Bytes tokenized(const std::string& path, tokenizers::Tokenizer& tokenizer, const data::TokenFile& ids) {
  check(tokenizer.vocab() <= ids.vocab, path, ": the tokenizer has ids up to ", tokenizer.vocab() - 1,
        ", the model has ", ids.vocab);
  std::FILE* out = std::tmpfile();
  check_io(out != nullptr, path, ": no temporary file can be made for its ids");
  read_mapped(path, [&](std::string_view in) {
    const Scope scope(path);
    tokenizer.encode(data::without_mark(in), [&](std::span<const uint32_t> some) {
      const std::string bytes = ids.bytes_of(some);
      std::fwrite(bytes.data(), bytes.size(), 1, out);
    });
  });
  check_io(std::fflush(out) == 0 && std::ferror(out) == 0, path, ": its ids cannot be written to a temporary file");
  return open_ids(out, path);
}

OpenText open_text(const std::string& path, const TrainingOptions& o, double held_out, const data::Alphabet& alphabet,
                   const std::string& command) {
  const Bytes bytes = open_bytes(path);
  std::optional<tokenizers::Tokenizer> tokenizer;
  TextQuestion q{.token_vocab = o.token_vocab,
                 .ids = o.ids,
                 .is_text = o.is_text,
                 .has_tokenizer = !o.tokenizer.empty() || !o.spec.tokenizer.empty(),
                 .command = command};
  if (q.has_tokenizer) {
    tokenizer.emplace(tokenizer_of(o));
    if (q.token_vocab == 0) q.token_vocab = tokenizer->vocab();
  }
  const TextReading reading = reading_of(bytes, q);
  OpenText open;
  open.bytes = bytes.size;
  const Bytes whole = data::without_mark(bytes);
  const char* const left_out = whole.size < bytes.size ? ", its byte order mark left out" : "";
  if (reading.as == Reading::bytes) {
    open.text = std::make_shared<data::Text>(whole, o.seed, held_out, alphabet);
    open.reading = text(path, ": a text of ", open.text->length(), " bytes", left_out);
  } else if (reading.as == Reading::ids) {
    open.text =
        std::make_shared<data::Text>(bytes, data::TokenFile{path, q.token_vocab, reading.width}, o.seed, held_out);
    open.reading = text(path, ": ", open.text->length(), " token ids, ", name_of(reading.width));
  } else {
    const data::TokenFile ids{path, q.token_vocab};
    open.text = std::make_shared<data::Text>(tokenized(path, *tokenizer, ids), ids, o.seed, held_out);
    open.reading = text(path, ": a text, ", open.text->length(), " tokens of the model's tokenizer", left_out);
  }
  return open;
}

int64_t token_vocab_of(const DataSpec& spec, int64_t vocab, const std::string& path, bool are_ids) {
  if (!spec.alphabet.empty()) return 0;
  if (!spec.tokenizer.empty() || vocab > 256 || are_ids) return vocab;
  if (path.empty()) return 0;
  const Bytes file = open_bytes(path);
  if (!data::text_content(file).text) return vocab;
  const int64_t bytes = data::Text(data::without_mark(file)).alphabet().size();
  check(bytes == vocab, path, ": is a text of ", bytes, " different bytes, and the model has ", vocab,
        " tokens and holds no tokenizer: a tokenizer or a file of token ids is needed");
  return 0;
}

void check_tokenizer(const std::string& given, const DataSpec& held, const std::string& model) {
  if (given.empty() || held.tokenizer.empty()) return;
  check(tokenizers::json_of(given, kMostTokenizer) == held.tokenizer, given, ": it is not the tokenizer that ", model,
        " holds, which is used without --tokenizer");
}

tokenizers::Tokenizer held_tokenizer(const std::string& path, const std::string& json) {
  const std::string where = text(path, ": its tokenizer");
  const Scope scope(where);
  return tokenizers::Tokenizer::of_json(json);
}

}  // namespace isonorm::training
