// Decides how a language model reads a file: the same for every command.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/data/text.h"
#include "io/data/text_content.h"
#include "training/training_options.h"

namespace isonorm::tokenizers {
class Tokenizer;
}

namespace isonorm::training {

// bytes: the tokens are the bytes of a text. ids: the file consists of token ids. tokenized: a tokenizer turns a text
// into ids.
enum class Reading { bytes, ids, tokenized };

struct TextReading {
  Reading as = Reading::bytes;
  data::IdWidth width = data::IdWidth::u16;  // width of the ids in the file
};

// Largest vocabulary of a model whose tokens may be bytes and a few more (ByT5 has 384).
inline constexpr int64_t kLettersVocab = 384;

// Facts that the caller knows before it reads a file.
struct TextQuestion {
  int64_t token_vocab = 0;                // vocabulary of the model; 0: unknown
  std::optional<data::IdWidth> ids = {};  // the file consists of ids of this width, whatever it looks like
  bool is_text = false;                   // the file is a text, whatever it looks like
  bool has_tokenizer = false;             // for texts
  bool only_ids = false;                  // the caller reads only ids, so a file that looks like UTF-16 is ids
  // Prefix of option names in errors. "": the current command has the options; nothing: errors name none.
  std::optional<std::string> command = "isonorm train ";
  std::string reads_ids =
      "isonorm train --token-vocab N";  // the command that reads ids, for the error if token_vocab is unknown
};

// Decides by the first MiB of the file (io/data/text_content.h), unless `ids` or `is_text` decides. A text is tokenized
// if there is a tokenizer; otherwise its bytes are the tokens. Ids are u16 if token_vocab is at most 65536, else u32; a
// file that looks like u32 is u32.
// Bytes stored as u16 ids look like UTF-16 without a byte order mark. They count as ids if only_ids is set, or if the
// vocabulary is at most kLettersVocab, so that other ids are unlikely.
// Throws, with advice, if the file has a format that must be converted, if it is a text without a tokenizer although
// token_vocab is known, or if it consists of ids although token_vocab is unknown.
TextReading reading_of(const Bytes& file, const TextQuestion& question);

// The ids of a text, without its byte order mark, in a temporary file that exists as long as the result. The result has
// the name `path`. Throws if the tokenizer has an id that is not below `vocab`, or if the ids cannot be written.
Bytes tokenized(const std::string& path, tokenizers::Tokenizer& tokenizer, const data::TokenFile& ids);

struct OpenText {
  std::shared_ptr<data::Text> text;
  int64_t bytes = 0;    // size of the file
  std::string reading;  // "corpus.txt: a text, 4811 tokens of the model's tokenizer", "train.bin: 4811 token ids, u16"
};

// Opens a file of TrainingOptions::data or test_data. The byte order mark of a text is skipped. alphabet: for bytes, as
// in data::Text. command: see TextQuestion. Throws as reading_of(), data::Text and Tokenizer.
OpenText open_text(const std::string& path, const TrainingOptions& o, double held_out,
                   const data::Alphabet& alphabet = {}, const std::string& command = "isonorm train ");

// TrainingOptions::token_vocab for weights from a file with a vocabulary of `vocab`; 0: the tokens are bytes. A file
// without an alphabet and a tokenizer may be of either kind: then the result is `vocab` if there are more tokens than
// bytes, or if the data at `path` are not a text or are declared to be ids. Throws if they are a text with another
// number of different bytes.
int64_t token_vocab_of(const DataSpec& spec, int64_t vocab, const std::string& path, bool are_ids = false);

// Throws if the tokenizer at `given` differs from the tokenizer in `held`, the DataSpec of the file `model`. Does
// nothing if one of them is missing.
void check_tokenizer(const std::string& given, const DataSpec& held, const std::string& model);

// The tokenizer with this tokenizer.json, which the file at `path` contains. Throws as Tokenizer::of_json(), naming the
// file.
tokenizers::Tokenizer held_tokenizer(const std::string& path, const std::string& json);

}  // namespace isonorm::training
