#include "exchange/hub/gguf.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "core/memory/bytes.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "io/checkpoint.h"
#include "io/fits.h"
#include "io/half.h"
#include "io/packed.h"
#include "io/replacement.h"

namespace isonorm::hub {
namespace {

constexpr int64_t kAlignment = 32;

// Numbers and strings of the file, in sequence.
class GgufText {
 public:
  enum Type { u32 = 4, i32 = 5, f32 = 6, flag = 7, string = 8, array = 9 };

  GgufText& number(uint64_t x, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_.push_back(static_cast<char>(x >> (8 * i)));
    return *this;
  }
  GgufText& text(std::string_view s) {
    number(s.size(), 8).bytes_.append(s);
    return *this;
  }
  // real: write an f32 even if the value is whole. Throws, naming the key, if the value does not fit the file's type.
  void key(std::string_view name, const json& value, bool real = false) {
    ++keys_;
    text(name);
    const std::string what = isonorm::text("gguf: key '", name, '\'');
    const auto whole = [&](const json& v) { number(io::narrowed_to_u32(v.get<int64_t>(), what), 4); };
    if (value.is_array()) {
      const bool words = !value.empty() && value[0].is_string();
      number(array, 4).number(words ? string : i32, 4).number(value.size(), 8);
      for (const json& v : value) words ? void(text(v.get_ref<const std::string&>())) : whole(v);
    } else if (value.is_string()) {
      number(string, 4).text(value.get<std::string>());
    } else if (value.is_boolean()) {
      number(flag, 4).number(value.get<bool>(), 1);
    } else if (real) {
      number(f32, 4).number(std::bit_cast<uint32_t>(io::narrowed_to_f32(value.get<double>(), what)), 4);
    } else {
      number(u32, 4), whole(value);
    }
  }
  const std::string& bytes() const { return bytes_; }
  uint64_t keys() const { return keys_; }

 private:
  std::string bytes_;
  uint64_t keys_ = 0;
};

bool is_real(std::string_view key) {
  return key.ends_with("epsilon") || key.ends_with("freq_base") || key.ends_with("alibi_bias");
}

GgufText keys_of(const Port& port, const json& config, const Metadata& options, const json& tokenizer) {
  GgufText keys;
  keys.key("general.architecture", port.type);
  const auto add = [&](std::string key, const json& value) {
    std::ranges::replace(key, '/', '.');
    keys.key(isonorm::text(port.type, '.', key), value, is_real(key));
  };
  for (const auto& [key, value] : config.items())
    if (key[0] != '/' && key != "architectures" && key != "model_type") add(key, value);
  const int64_t head = integer_at(options, "model.head_width");
  add("attention/key_length", head);
  add("attention/value_length", head);
  if (options.at("model.positions").starts_with("rotary")) {
    double share = 0;
    const std::string& said = options.at("model.rotary_share");
    check(read_number(said, share) && share >= 0 && share <= 1, "gguf: model.rotary_share is ", Shown{said},
          ", expected a number from 0 to 1");
    add("rope/dimension_count", static_cast<int64_t>(static_cast<double>(head) * share));
  }
  if (options.at("model.positions") == "alibi") add("attention/max_alibi_bias", 8);
  if (tokenizer.is_null()) keys.key("tokenizer.ggml.model", "no_vocab");
  for (const auto& [key, value] : tokenizer.items()) keys.key("tokenizer.ggml." + key, value);
  return keys;
}

uint64_t type_of(NumberFormat format) { return format.half ? 1 : format.dtype == DType::bf16 ? 30 : 0; }

}  // namespace

void write_gguf(const std::string& path, const Port& port, const json& config, const Metadata& options,
                const LazyState& theirs, std::optional<NumberFormat> format, const json& tokenizer) {
  GgufText head = keys_of(port, config, options, tokenizer), tensors;
  struct Place {
    std::string name;
    NumberFormat format;
    int64_t bytes;
  };
  std::vector<Place> places;
  int64_t at = 0;
  for (const auto& [name, x] : theirs.outline) {
    const NumberFormat own = x.dtype() == DType::f64 ? NumberFormat(DType::f32) : theirs.format(name);
    const NumberFormat stored = x.rank() == 1 ? NumberFormat(DType::f32) : format.value_or(own);
    tensors.text(name).number(static_cast<uint64_t>(x.rank()), 4);
    for (int i = x.rank() - 1; i >= 0; --i) tensors.number(static_cast<uint64_t>(x.size(i)), 8);
    tensors.number(type_of(stored), 4).number(static_cast<uint64_t>(at), 8);
    const int64_t size = checked_mul(x.numel(), stored.half ? 2 : size_of(stored.dtype), "gguf");
    places.push_back({name, stored, size});
    at = checked_add(at, (size + kAlignment - 1) / kAlignment * kAlignment, "gguf");
  }
  GgufText file;
  file.number(0x46554747, 4).number(3, 4).number(places.size(), 8).number(head.keys(), 8);  // "GGUF", version
  const std::string text = file.bytes() + head.bytes() + tensors.bytes();
  io::Replacement out(path);
  const auto write = [&](const void* bytes, int64_t n) {
    const std::string zeros(static_cast<size_t>((kAlignment - n % kAlignment) % kAlignment), 0);
    out.write(bytes, n);
    out.write(zeros);
  };
  write(text.data(), std::ssize(text));
  for (const Place& p : places) {
    const Tensor x = rounded(theirs.read(p.name), p.format, p.name);
    const Tensor stored = io::packed(p.format.half ? io::to_half(x) : x);
    check(byte_size(stored) == p.bytes, "gguf: tensor '", p.name, "' has ", byte_size(stored), " bytes, not ", p.bytes);
    write(bytes_of(stored), p.bytes);
  }
  out.commit();
}

}  // namespace isonorm::hub
