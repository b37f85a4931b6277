#include "io/safetensors.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "core/system/name_pattern.h"
#include "io/json.h"

namespace isonorm::io {
namespace {

constexpr struct {
  std::string_view name;
  DType dtype;
} kTypes[] = {{"F32", DType::f32}, {"F64", DType::f64}, {"BF16", DType::bf16}, {"I64", DType::i64}, {"U8", DType::u8}};

// The format's dtypes that Tensor lacks, with their bytes per element.
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

std::string known_dtypes() {
  ShortList names;
  for (const auto& t : kTypes) names.add(t.name);
  for (const auto& t : kForeign) names.add(t.name);
  return names.str();
}

void parse_dtype(const std::string& type, TensorEntry& e) {
  for (const auto& t : kTypes)
    if (t.name == type) {
      e.dtype = t.dtype;
      return;
    }
  check(foreign_bytes(type) > 0, "safetensors: tensor ", Shown{e.name}, " has dtype ", Shown{type}, ", expected ",
        known_dtypes());
  e.dtype = DType::u8, e.foreign = type;
}

class HeaderReader {
 public:
  SafetensorsHeader read(std::string_view json) {
    read_json(json, {.member = [this](const std::string& name) -> JsonValue {
                check(names_.insert(name).second, "safetensors: ", Shown{name}, " is there twice");
                if (name == "__metadata__") return {.member = [this](const std::string& key) { return metadata(key); }};
                check_name(name, "safetensors");
                e_ = {.name = name, .shape = {}}, fields_.clear(), offsets_ = 0;
                return {.member = [this](const std::string& key) { return field(key); },
                        .end = [this] { add_entry(); }};
              }});
    return std::move(header_);
  }

 private:
  JsonValue metadata(const std::string& key) {
    return {.string = [this, key](const std::string& value) {
      check(header_.metadata.emplace(key, value).second, "safetensors: the metadata have ", Shown{key}, " twice");
    }};
  }

  JsonValue field(const std::string& key) {
    check(fields_.insert(key).second, "safetensors: tensor ", Shown{e_.name}, " has ", Shown{key}, " twice");
    if (key == "dtype") return {.string = [this](const std::string& type) { parse_dtype(type, e_); }};
    if (key == "shape")
      return {.element = [this]() -> JsonValue {
        check(e_.shape.rank < kMaxRank, "safetensors: tensor ", Shown{e_.name}, " has more than ", kMaxRank,
              " dimensions");
        return {.integer = [this](int64_t n) { e_.shape.push_back(n); }};
      }};
    check(key == "data_offsets", "safetensors: tensor ", Shown{e_.name}, " has the unknown key ", Shown{key});
    return {.element = [this]() -> JsonValue {
      check(++offsets_ <= 2, "safetensors: tensor ", Shown{e_.name}, " has more than two data_offsets");
      return {.integer = [this](int64_t n) { (offsets_ == 1 ? e_.begin : e_.end) = n; }};
    }};
  }

  void add_entry() {
    for (const char* key : {"dtype", "shape", "data_offsets"})
      check(fields_.contains(key), "safetensors: tensor ", Shown{e_.name}, " has no ", key);
    check(offsets_ == 2, "safetensors: tensor ", Shown{e_.name}, " has ", offsets_, " data_offsets, expected two");
    if (const int64_t bytes = foreign_bytes(e_.foreign); bytes > 1) {
      check(e_.shape.rank < kMaxRank, "safetensors: tensor ", Shown{e_.name}, " of ", e_.foreign, " has ", kMaxRank,
            " dimensions, expected fewer");
      e_.shape.push_back(bytes);
    }
    header_.entries.push_back(std::move(e_));
  }

  SafetensorsHeader header_;
  std::unordered_set<std::string> names_;
  TensorEntry e_;  // the entry being read, with the fields read so far
  std::set<std::string> fields_;
  int offsets_ = 0;
};

// Checks that the size by shape and dtype equals the size of the byte range.
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
  const SafetensorsHeader header = HeaderReader().read(json_text);
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
    check_name(e.name, "safetensors");
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
