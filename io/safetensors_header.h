// The header of a safetensors file, without the tensors' data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"

namespace isonorm::io {

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;
  Metadata metadata;
};

// Bytes per element in the file.
int64_t element_size(const TensorEntry& entry);

// Parses the JSON and checks that the entries fill [0, data_bytes) without hole or overlap. Throws what
// load_safetensors() throws.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes);

// The JSON, padded with spaces so that its length plus the 8 bytes before it is a multiple of 8.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace isonorm::io
