// The header of a safetensors file as data, apart from the tensors' bytes.
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

// Bytes of an element in the file.
int64_t element_size(const TensorEntry& entry);

// Parses the JSON and checks that the entries fill [0, data_bytes) without hole or overlap. Throws as load_safetensors
// does.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes);

// The JSON, padded with spaces so that it and the 8 bytes before it are a multiple of 8 bytes long.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace isonorm::io
