// Reads GGUF files (ggml's docs/gguf.md), and their tensors as this library's.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "autograd/ops/create.h"
#include "autograd/ops/shape.h"
#include "core/memory/bytes.h"
#include "io/half.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"

namespace isonorm::gguf {

struct Stored {
  uint32_t type;  // 0: f32, 1: f16, 30: bf16
  Dims shape;     // the innermost last
  std::string bytes;
};

struct Gguf {
  std::map<std::string, nlohmann::json> keys;
  std::map<std::string, Stored> tensors;
};

inline Gguf gguf_of(const std::string& path) {
  const std::string file = test::read_text(path);
  size_t at = 0;
  const auto number = [&]<class T>(T) {
    T x;
    std::memcpy(&x, file.substr(at, sizeof x).data(), sizeof x);
    return at += sizeof x, x;
  };
  const auto u32 = [&] { return number(uint32_t{}); };
  const auto u64 = [&] { return number(uint64_t{}); };
  const auto words = [&] {
    const uint64_t n = u64();
    return at += n, file.substr(at - n, n);
  };
  const std::function<nlohmann::json(uint32_t)> value = [&](uint32_t type) -> nlohmann::json {
    if (type == 4) return u32();
    if (type == 5) return number(int32_t{});
    if (type == 6) return number(float{});
    if (type == 7) return number(uint8_t{}) != 0;
    if (type == 8) return words();
    REQUIRE(type == 9);
    const uint32_t element = u32();
    nlohmann::json all = nlohmann::json::array();
    for (uint64_t n = u64(); n > 0; --n) all.push_back(value(element));
    return all;
  };
  Gguf g;
  REQUIRE(file.substr(0, 4) == "GGUF");
  at = 4;
  REQUIRE(u32() == 3);
  const uint64_t tensors = u64(), keys = u64();
  for (uint64_t i = 0; i < keys; ++i) {
    const std::string key = words();
    REQUIRE(g.keys.emplace(key, value(u32())).second);
  }
  std::map<std::string, uint64_t> offsets;
  for (uint64_t i = 0; i < tensors; ++i) {
    const std::string name = words();
    std::vector<int64_t> sizes;
    for (uint32_t n = u32(); n > 0; --n) sizes.insert(sizes.begin(), static_cast<int64_t>(u64()));
    Dims shape;
    for (int64_t size : sizes) shape.push_back(size);
    const uint32_t type = u32();
    REQUIRE(g.tensors.emplace(name, Stored{type, shape, ""}).second);
    REQUIRE((offsets[name] = u64()) % 32 == 0);
  }
  const size_t data = (at + 31) / 32 * 32;
  for (auto& [name, t] : g.tensors) {
    const size_t size = static_cast<size_t>(numel(t.shape)) * (t.type == 0 ? 4 : 2);
    REQUIRE(data + offsets[name] + size <= file.size());
    t.bytes = file.substr(data + offsets[name], size);
  }
  return g;
}

// The numbers in f32.
inline Tensor held(const Stored& s) {
  if (s.type == 1) {
    Dims shape = s.shape;
    shape.push_back(2);
    const Tensor bytes = empty(shape, {DType::u8});
    std::memcpy(mutable_bytes_of(bytes), s.bytes.data(), s.bytes.size());
    return io::from_half(bytes);
  }
  const Tensor x = empty(s.shape, {s.type == 30 ? DType::bf16 : DType::f32});
  std::memcpy(mutable_bytes_of(x), s.bytes.data(), s.bytes.size());
  return x.to(DType::f32);
}

// llama.cpp's name for our tensor. For queries, keys and values in three tensors, the name of a joined one.
inline std::string their_name(std::string name) {
  const std::pair<const char*, const char*> parts[] = {{"blocks.", "blk."},
                                                       {"attn.qkv", "attn_qkv"},
                                                       {"attn.proj", "attn_output"},
                                                       {"attn.q_norm", "attn_q_norm"},
                                                       {"attn.k_norm", "attn_k_norm"},
                                                       {"norm1", "attn_norm"},
                                                       {"norm2", "ffn_norm"},
                                                       {"mlp.fc1", "ffn_up"},
                                                       {"mlp.fc2", "ffn_down"},
                                                       {"mlp.gate", "ffn_gate"},
                                                       {"token.", "token_embd."},
                                                       {"position.", "position_embd."},
                                                       {"head.", "output."}};
  for (const auto& [ours, theirs] : parts)
    if (const size_t at = name.find(ours); at != name.npos) name.replace(at, std::string(ours).size(), theirs);
  return name.starts_with("norm.") ? "output_" + name : name;
}

// The tensor `name` of our model, in f32; undefined if the file does not have it. Queries, keys and values in three
// tensors become one. size: of a head. turns: the file has the two halves of each head's queries and keys interleaved.
inline Tensor ours(const Gguf& g, const std::string& name, int64_t size, bool turns) {
  const std::string theirs = their_name(name);
  if (const auto whole = g.tensors.find(theirs); whole != g.tensors.end()) return held(whole->second);
  const size_t at = theirs.find("attn_qkv");
  std::vector<Tensor> rows;
  for (const char* part : {"attn_q", "attn_k", "attn_v"}) {
    const auto one = at == theirs.npos ? g.tensors.end() : g.tensors.find(std::string(theirs).replace(at, 8, part));
    if (one == g.tensors.end()) return {};
    const Tensor there = held(one->second);
    for (int64_t row = 0; row < there.size(0); ++row) {
      const int64_t i = row % size, half = size / 2;  // entry i of a half belongs to pair i there
      const bool turned = turns && part != std::string("attn_v");
      rows.push_back(select(there, 0, turned ? row - i + i % half * 2 + i / half : row));
    }
  }
  return stack(rows);
}

}  // namespace isonorm::gguf
