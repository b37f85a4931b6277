// isonorm tokenize TOKENIZER TEXT OUT: converts a text to a file of token ids for train --data, and back.
#include <cstdio>
#include <filesystem>

#include "core/error.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "io/data/text.h"
#include "io/replacement.h"
#include "io/tokenizers/tokenizer.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "training/fields.h"
#include "training/text_data.h"

namespace isonorm::tools {
namespace {

using tokenizers::Tokenizer;

struct TokenizeOptions {
  std::string tokenizer, in, out, json;
  bool decode = false, is_text = false;
  std::optional<data::IdWidth> ids;
};

struct Tokenized {
  std::string file;
  int64_t tokens;
  const char* ids;
  int64_t token_vocab;
};

const reports::Schema<Tokenized>& tokenize_schema() {
  static const reports::Schema<Tokenized> schema{
      "tokenize", "The file that `isonorm tokenize` wrote.",
      reports::Fields<Tokenized>()
          .add("file", &Tokenized::file, "the file that was written")
          .add("tokens", &Tokenized::tokens, "number of tokens that were written, or with --decode read")
          .add("ids", &Tokenized::ids, "width of an id, `u16` or `u32`")
          .add("token_vocab", &Tokenized::token_vocab, "size of the vocabulary, for --token-vocab of `train`")};
  return schema;
}

// A file that gets its name at the end, written in large pieces.
class Output {
 public:
  explicit Output(const std::string& path) : file_(path) {}
  void write(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() >= kPiece) flush();
  }
  void commit() { flush(), file_.commit(); }

 private:
  static constexpr size_t kPiece = 1 << 20;
  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

  io::Replacement file_;
  std::string buffer_;
};

int64_t encode(Tokenizer& tokenizer, std::string_view text, const data::TokenFile& file, Output& out) {
  int64_t count = 0;
  tokenizer.encode(text, [&](std::span<const uint32_t> ids) {
    count += std::ssize(ids);
    out.write(file.bytes_of(ids));
  });
  return count;
}

int64_t decode(const Tokenizer& tokenizer, std::string_view file, data::IdWidth ids, Output& out) {
  const auto width = static_cast<size_t>(bytes_of(ids));
  check(file.size() % width == 0, "the file has ", file.size(), " bytes, ids of ", name_of(ids), " have ", width,
        " each");
  for (size_t at = 0; at < file.size(); at += width) {
    int64_t id = 0;
    for (size_t i = 0; i < width; ++i) id |= int64_t{static_cast<uint8_t>(file[at + i])} << 8 * i;
    out.write(tokenizer.bytes_of(id));
  }
  return static_cast<int64_t>(file.size() / width);
}

int run_tokenize(const TokenizeOptions& o, const CLI::App& command) {
  check_outputs({{.option = "OUT", .path = o.out, .binary = !o.decode}, {"--json", o.json}},
                {{"TOKENIZER", o.tokenizer}, {"IN", o.in}});
  if (o.ids && !o.decode) throw UsageError("--ids requires --decode");
  if (o.is_text && o.decode) throw UsageError("--text does not go with --decode, whose IN holds token ids");
  Tokenizer tokenizer(o.tokenizer);
  const training::TextReading reading =
      training::reading_of(open_bytes(o.in), {.token_vocab = o.decode ? tokenizer.vocab() : 0,
                                              .ids = o.ids,
                                              .is_text = o.is_text,
                                              .only_ids = o.decode,
                                              .command = "",
                                              .reads_ids = "isonorm tokenize --decode"});
  Output out(o.out);
  const data::TokenFile ids{o.out, tokenizer.vocab()};
  int64_t count = 0;
  read_mapped(o.in, [&](std::string_view in) {
    const Scope scope(o.in);
    count = o.decode ? decode(tokenizer, in, reading.width, out) : encode(tokenizer, data::without_mark(in), ids, out);
  });
  out.commit();
  const std::string said =
      o.decode
          ? text(o.out, ": the text of ", count, " tokens, which were ", name_of(reading.width), ".\n")
          : text(o.out, ": ", count, " tokens, ", name_of(ids.width), ", for --token-vocab ", tokenizer.vocab(), ".\n");
  const Tokenized made{o.out, count, name_of(o.decode ? reading.width : ids.width), tokenizer.vocab()};
  print_and_write(said, [&] { write_json(o.json, tokenize_schema()(made), said, command); });
  return kOk;
}

}  // namespace

Verb add_tokenize(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokenize", "Turn a text into a file of token ids to train on, or back");
  auto o = std::make_shared<TokenizeOptions>();
  command
      ->add_option(
          "TOKENIZER", o->tokenizer,
          "byte-level BPE: tokenizer.json, vocab.json with merges.txt next to it, or a folder with these files")
      ->required()
      ->check(CLI::ExistingPath);
  command->add_option("IN", o->in, "the text; with --decode a file of token ids")->required();
  command->add_option("OUT", o->out, "the file to write, for train --data; with --decode the text")->required();
  command->add_flag("--decode", o->decode, "from token ids to the text");
  add_number(*command, "ids", o->ids,
             "with --decode: width of the ids (default: u16 if the vocabulary has at most 65536 tokens, else u32; u32 "
             "if every "
             "second u16 is 0)");
  command->add_flag("--text", o->is_text, "IN is a text, whatever bytes it has");
  add_json(*command, o->json);
  command->footer(
      "Ids are u16 if the vocabulary has at most 65536 tokens, else u32, little-endian. No token is added at the "
      "beginning or the end.\n" +
      exit_codes("0 written"));
  return {command, [o, command] { return run_tokenize(*o, *command); }, {&tokenize_schema()}};
}

}  // namespace isonorm::tools
