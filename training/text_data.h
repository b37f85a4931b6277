// How a language model reads a file. One function decides it for every verb.
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

// bytes: the tokens are the bytes of a text. ids: the file holds token ids. tokenized: a tokenizer makes the ids of a text.
enum class Reading { bytes, ids, tokenized };

struct TextReading {
  Reading as = Reading::bytes;
  data::IdWidth width = data::IdWidth::u16;  // of the ids in the file
};

// The most tokens of a model whose tokens may be bytes and a few more (ByT5 has 384).
inline constexpr int64_t kLettersVocab = 384;

// The caller's knowledge before it reads a file.
struct TextQuestion {
  int64_t token_vocab = 0;                // tokens of the model; 0: unknown
  std::optional<data::IdWidth> ids = {};  // the file holds ids of this width, whatever it looks like
  bool is_text = false;                   // the file is a text, whatever it looks like
  bool has_tokenizer = false;             // that makes ids of a text
  bool only_ids = false;                  // nothing but ids is read, so ids may look like UTF-16
  // Before options that an error names; "": the verb that speaks has them; nothing: the error names none.
  std::optional<std::string> command = "isonorm train ";
  std::string reads_ids = "isonorm train --token-vocab N";  // what reads ids, for the error if token_vocab is unknown
};

// Decides by the first MiB of the file (io/data/text_content.h), unless `ids` or `is_text` says it. A text is tokenized if there is a
// tokenizer; without one its bytes are the tokens. Ids are u16 if token_vocab is at most 65536, else u32; a file that looks like
// u32 is u32.
// Bytes as u16 ids look like UTF-16 without a byte order mark. They are ids if only_ids, or if the vocabulary is so small
// that no other ids are likely, kLettersVocab.
// Throws, naming what helps, if the file is in a format that has to be unpacked, if it is a text without a tokenizer although
// token_vocab is known, or if it holds ids although token_vocab is unknown.
TextReading reading_of(const Bytes& file, const TextQuestion& question);

// The ids of a text without its byte order mark, in a temporary file that is gone when the result is. Has the name of
// `path`. Throws if the tokenizer has ids from `vocab` on, or if the ids cannot be written.
Bytes tokenized(const std::string& path, tokenizers::Tokenizer& tokenizer, const data::TokenFile& ids);

struct OpenText {
  std::shared_ptr<data::Text> text;
  int64_t bytes = 0;    // of the file
  std::string reading;  // "corpus.txt: a text, 4811 tokens of the model's tokenizer", "train.bin: 4811 token ids, u16"
};

// A file of TrainingOptions::data or test_data. The byte order mark of a text is left out. `alphabet`: as data::Text takes
// it, for bytes. `command`: see TextQuestion. Throws as reading_of(), data::Text and Tokenizer.
OpenText open_text(const std::string& path, const TrainingOptions& o, double held_out,
                   const data::Alphabet& alphabet = {}, const std::string& command = "isonorm train ");

// TrainingOptions::token_vocab for weights that are in a file and have `vocab` tokens; 0: the tokens are bytes. A file that says
// neither bytes nor a tokenizer may be of either kind: then it is `vocab` if there are more tokens than bytes, or the data at `path`
// are no text, or are said to be ids. Throws if they are a text of another number of bytes.
int64_t token_vocab_of(const DataSpec& spec, int64_t vocab, const std::string& path, bool are_ids = false);

}  // namespace isonorm::training
