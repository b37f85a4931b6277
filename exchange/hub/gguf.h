// Internal: writes models of this library as GGUF files for llama.cpp. Each llama.cpp architecture is a row, like a
// published family (exchange/hub/port.h). In a row, "attention/head_count" means the file's key
// "gpt2.attention.head_count".
#pragma once

#include "exchange/hub/port.h"
#include "io/tokenizers/tokenizer_file.h"

namespace isonorm::hub {

// The architectures, by llama.cpp's names. A key that begins with a slash is not written to the file.
std::span<const Port> gguf_ports();

// A folder's tokenizer as keys of a GGUF file, "tokens" for tokenizer.ggml.tokens, with bos_token_id and eos_token_id
// if config.json has them. The model has `vocab` ids; an id without a token is called [PAD<id>]. Throws as
// tokenizers::read_tokenizer(), and if llama.cpp has no such tokenizer, or a token's id is not below `vocab`.
json gguf_tokenizer(const std::string& folder, int64_t vocab);
json gguf_tokenizer(const tokenizers::TokenizerFile& file, int64_t vocab);  // without bos_token_id and eos_token_id

// Writes a GGUF file and replaces the file at `path`.
//
// config:    from exported_config()
// theirs:    the tensors, from exported()
// format:    of matrices; unset: each keeps its own, but f64 becomes f32. Vectors are f32, since llama.cpp computes
//            with f32 vectors.
// tokenizer: from gguf_tokenizer(); null: the file has no tokenizer
//
// Throws as io::Replacement, and if a number of config or options does not fit the type of its key, u32 or f32.
// Source: github.com/ggml-org/ggml, docs/gguf.md (version 3).
void write_gguf(const std::string& path, const Port& port, const json& config, const Metadata& options,
                const LazyState& theirs, std::optional<NumberFormat> format, const json& tokenizer);

}  // namespace isonorm::hub
