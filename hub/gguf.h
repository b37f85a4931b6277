// Internal: models of ours as GGUF files, which llama.cpp runs: each of its architectures is a row as a published family is one
// (hub/port.h), in which "attention/head_count" stands for the file's key "gpt2.attention.head_count".
#pragma once

#include "hub/port.h"
#include "tokenizers/tokenizer_file.h"

namespace isonorm::hub {

// The architectures, named as llama.cpp names them. A key that begins with a slash is no key of the file.
std::span<const Port> gguf_ports();

// What the tokenizer of a folder is in such a file, "tokens" for tokenizer.ggml.tokens, with the ids of config.json for the first
// and the last token where it says them. Ids of the model, of which there are `vocab`, that are no token's are called [PAD<id>].
// Throws as tokenizers::read_tokenizer(), and where llama.cpp has no tokenizer like it, or an id is not the model's.
json gguf_tokenizer(const std::string& folder, int64_t vocab);
json gguf_tokenizer(const tokenizers::TokenizerFile& file, int64_t vocab);  // without those ids

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
