#include "io/safetensors_header.h"

#include <algorithm>
#include <unordered_set>

#include "core/system/foreign_text.h"
#include "io/json.h"

namespace isonorm::io {
namespace {

constexpr struct {
  std::string_view name;
  DType dtype;
} kTypes[] = {{"F32", DType::f32}, {"F64", DType::f64}, {"BF16", DType::bf16}, {"I64", DType::i64}, {"U8", DType::u8}};

// Dtypes of the format that are none of ours, and the bytes of an element.
constexpr struct {
  std::string_view name;
  int64_t bytes;
} kForeign[] = {{"BOOL", 1}, {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"I16", 2},
                {"U16", 2},  {"F16", 2}, {"I32", 4},     {"U32", 4},     {"U64", 8},     {"C64", 8}};

int64_t foreign_bytes(std::string_view type) {
  for (const auto& t : kForeign)
    if (t.name == type) return t.bytes;
  return 0;
}

void parse_dtype(const std::string& type, TensorEntry& e) {
  for (const auto& t : kTypes)
    if (t.name == type) {
      e.dtype = t.dtype;
      return;
    }
  check(foreign_bytes(type) > 0, "safetensors: tensor ", Shown{e.name}, " has dtype ", Shown{type},
        ", expected F32, F64, BF16, I64 or U8");
  e.dtype = DType::u8, e.foreign = type;
}

Metadata parse_metadata(JsonReader& json) {
  Metadata metadata;
  json.object([&](const std::string& key) {
    check(metadata.emplace(key, json.string()).second, "safetensors: the metadata have ", Shown{key}, " twice");
  });
  return metadata;
}

TensorEntry parse_entry(JsonReader& json, const std::string& name) {
  TensorEntry e;
  e.name = name;
  bool dtype = false, shape = false, offsets = false;
  const auto first = [&](bool& seen, const char* key) {
    check(!seen, "safetensors: tensor ", Shown{name}, " has ", key, " twice");
    seen = true;
  };
  json.object([&](const std::string& key) {
    if (key == "dtype") {
      first(dtype, "dtype");
      parse_dtype(json.string(), e);
    } else if (key == "shape") {
      first(shape, "shape");
      json.list([&] {
        check(e.shape.rank < kMaxRank, "safetensors: tensor ", Shown{name}, " has more than ", kMaxRank, " dimensions");
        e.shape.push_back(json.integer());
      });
    } else if (key == "data_offsets") {
      first(offsets, "data_offsets");
      json.expect('[');
      e.begin = json.integer();
      json.expect(',');
      e.end = json.integer();
      json.expect(']');
    } else {
      check(false, "safetensors: tensor ", Shown{name}, " has the unknown key ", Shown{key});
    }
  });
  const char* missing = !dtype ? "dtype" : !shape ? "shape" : !offsets ? "data_offsets" : nullptr;
  check(missing == nullptr, "safetensors: tensor ", Shown{name}, " has no ", missing ? missing : "");
  if (const int64_t bytes = foreign_bytes(e.foreign); bytes > 1) {
    check(e.shape.rank < kMaxRank, "safetensors: tensor ", Shown{name}, " of ", e.foreign, " has ", kMaxRank,
          " dimensions, expected fewer");
    e.shape.push_back(bytes);
  }
  return e;
}

// The size that shape and dtype ask for, against the place that the header gives.
void check_size(const TensorEntry& e, int64_t data_bytes) {
  check(e.begin <= e.end, "safetensors: tensor ", Shown{e.name}, " begins at ", e.begin, " and ends at ", e.end);
  check(e.end <= data_bytes, "safetensors: tensor ", Shown{e.name}, " ends at ", e.end, ", the data at ", data_bytes);
  const int64_t bytes = [&] {
    const std::string name = text(Shown{e.name});
    const Scope scope(name);  // an overflow names the tensor
    return checked_mul(numel(e.shape), size_of(e.dtype), "size");
  }();
  check(bytes == e.end - e.begin, "safetensors: tensor ", Shown{e.name}, " of shape ", e.shape, " and dtype ", e.dtype,
        " takes ", bytes, " bytes, its place has ", e.end - e.begin);
}

void check_places(const std::vector<TensorEntry>& entries, int64_t data_bytes) {
  std::vector<const TensorEntry*> order;
  for (const TensorEntry& e : entries) order.push_back(&e);
  std::sort(order.begin(), order.end(), [](const TensorEntry* a, const TensorEntry* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  int64_t reached = 0;
  for (const TensorEntry* e : order) {
    check(e->begin >= reached, "safetensors: tensor ", Shown{e->name}, " begins at ", e->begin,
          ", inside of the one before, which ends at ", reached);
    check(e->begin == reached, "safetensors: nothing lies in the bytes ", reached, " to ", e->begin, " before tensor ",
          Shown{e->name});
    reached = e->end;
  }
  check(reached == data_bytes, "safetensors: ", data_bytes - reached, " bytes after the last tensor");
}

}  // namespace

int64_t element_size(const TensorEntry& e) { return e.foreign.empty() ? size_of(e.dtype) : foreign_bytes(e.foreign); }

SafetensorsHeader parse_safetensors_header(std::string_view json_text, int64_t data_bytes) {
  check(json_text.starts_with('{'), "safetensors: the header does not start with '{'");
  SafetensorsHeader header;
  std::unordered_set<std::string> names;
  JsonReader json(json_text);
  json.object([&](const std::string& name) {
    check(names.insert(name).second, "safetensors: ", Shown{name}, " is there twice");
    if (name == "__metadata__")
      header.metadata = parse_metadata(json);
    else
      header.entries.push_back(parse_entry(json, name));
  });
  json.end();
  for (const TensorEntry& e : header.entries) check_size(e, data_bytes);
  check_places(header.entries, data_bytes);
  return header;
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  std::string json = "{";
  if (!header.metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : header.metadata) {
      if (json.back() != '{') json += ',';
      append_json_string(json, key, "safetensors");
      json += ':';
      append_json_string(json, value, "safetensors");
    }
    json += '}';
  }
  for (const TensorEntry& e : header.entries) {
    check(e.name != "__metadata__", "safetensors: a tensor cannot have the name '__metadata__'");
    if (json.size() > 1) json += ',';
    append_json_string(json, e.name, "safetensors");
    json += ":{\"dtype\":\"";
    json += e.foreign;
    for (const auto& t : kTypes)
      if (e.foreign.empty() && t.dtype == e.dtype) json += t.name;
    json += "\",\"shape\":[";
    for (int i = 0; i < e.shape.rank - (foreign_bytes(e.foreign) > 1); ++i) json += text(i ? "," : "", e.shape[i]);
    json += text("],\"data_offsets\":[", e.begin, ",", e.end, "]}");
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  return json;
}

}  // namespace isonorm::io
