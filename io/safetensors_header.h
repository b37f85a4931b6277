// The header of a safetensors file as data, apart from the tensors' bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/dims.h"
#include "core/dtype.h"
#include "io/safetensors.h"

namespace isonorm::io {

struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Dims shape;
  int64_t begin = 0, end = 0;  // in bytes from the end of the header
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;
  Metadata metadata;
};

// Parses the JSON and checks that the entries fill [0, data_bytes) without hole or overlap. Throws as load_safetensors
// does.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes);

// The JSON, padded with spaces so that it and the 8 bytes before it are a multiple of 8 bytes long.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace isonorm::io
