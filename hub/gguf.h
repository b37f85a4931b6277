// Internal: models of ours as GGUF files, which llama.cpp runs: each of its architectures is a row as a published family is one
// (hub/port.h), in which "attention/head_count" stands for the file's key "gpt2.attention.head_count".
#pragma once

#include "hub/port.h"

namespace isonorm::hub {

// The architectures, named as llama.cpp names them. A key that begins with a slash is no key of the file.
std::span<const Port> gguf_ports();

// Replaces the file. config: of exported_config(); theirs: of exported(); matrices in `format`, or as they are where there is
// none and in f32 where they are of f64, and vectors in f32, as llama.cpp computes with them. Throws as io::Replacement.
// Source: github.com/ggml-org/ggml, docs/gguf.md (version 3).
void write_gguf(const std::string& path, const Port& port, const json& config, const Metadata& options,
                const LazyState& theirs, std::optional<NumberFormat> format);

}  // namespace isonorm::hub
