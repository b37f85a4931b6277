// A program that runs ONNX files: as far as `isonorm export` uses the format, by the operators' definitions
// (github.com/onnx/onnx, docs/Operators.md), in the dtype of their numbers.
#pragma once

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/error.h"
#include "core/memory/bytes.h"
#include "tests/support/temp_folder.h"

namespace isonorm::onnx_runtime {

struct Field {
  int number;
  uint64_t value = 0;           // of a varint or a fixed32
  std::string_view bytes = {};  // of the others
};

inline std::vector<Field> fields_of(std::string_view m) {
  std::vector<Field> fields;
  const auto varint = [&] {
    uint64_t x = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(m.at(0));
      m.remove_prefix(1);
      x |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return x;
    }
  };
  while (!m.empty()) {
    const uint64_t tag = varint();
    Field f{static_cast<int>(tag >> 3)};
    uint64_t length = 0;
    switch (tag & 7) {
      case 0:
        f.value = varint();
        break;
      case 2:
        length = varint();
        check(length <= m.size(), "field ", f.number, " is longer than its message");
        f.bytes = m.substr(0, length), m.remove_prefix(length);
        break;
      case 5:
        std::memcpy(&f.value, m.data(), 4), m.remove_prefix(4);
        break;
      default:
        check(false, "wire type ", tag & 7);
    }
    fields.push_back(f);
  }
  return fields;
}

inline std::string_view only(std::string_view m, int number) {
  for (const Field& f : fields_of(m))
    if (f.number == number) return f.bytes;
  return {};
}

struct Attribute {
  int64_t i = 0;
  float f = 0;
  std::vector<int> ints = {};
};

struct Node {
  std::string op;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Attribute> attributes;

  int64_t whole(const char* name) const { return attributes.at(name).i; }
};

struct Model {
  int64_t opset = 0;
  std::map<std::string, std::string> metadata;
  std::vector<Node> nodes;
  std::map<std::string, Tensor> constants;
  std::vector<std::string> inputs, outputs;
  std::vector<int64_t> sizes;  // of the last input; 0: any
  bool apart = false;          // numbers lie in another file
};

inline Tensor tensor_of(std::string_view m, const std::string& folder, Model& model, std::string& name) {
  Dims shape;
  DType dtype = DType::u8;
  std::string numbers;
  std::map<std::string, std::string> place;
  for (const Field& f : fields_of(m)) {
    if (f.number == 1) shape.push_back(static_cast<int64_t>(f.value));
    if (f.number == 2) dtype = f.value == 1 ? DType::f32 : f.value == 7 ? DType::i64 : DType::f64;
    if (f.number == 8) name = f.bytes;
    if (f.number == 9) numbers = f.bytes;
    if (f.number == 13) place[std::string(only(f.bytes, 1))] = only(f.bytes, 2);
  }
  if (!place.empty()) {
    model.apart = true;
    const std::vector<uint8_t> all = read_bytes(folder + "/" + place.at("location"));
    const auto* begin = reinterpret_cast<const char*>(all.data()) + std::stoll(place.at("offset"));
    numbers.assign(begin, static_cast<size_t>(std::stoll(place.at("length"))));
  }
  const Tensor x = empty(shape, {dtype});
  check(byte_size(x) == std::ssize(numbers), name, ": ", numbers.size(), " bytes for ", x.shape());
  std::memcpy(mutable_bytes_of(x), numbers.data(), numbers.size());
  return x;
}

// Of a ValueInfoProto.
inline std::vector<int64_t> sizes_of(std::string_view info) {
  std::vector<int64_t> sizes;
  for (const Field& axis : fields_of(only(only(only(info, 2), 1), 2))) {
    sizes.push_back(0);
    for (const Field& size : fields_of(axis.bytes))
      if (size.number == 1) sizes.back() = static_cast<int64_t>(size.value);
  }
  return sizes;
}

inline Model open(const std::string& path) {
  const std::vector<uint8_t> file = read_bytes(path);
  Model model;
  for (const Field& f : fields_of({reinterpret_cast<const char*>(file.data()), file.size()})) {
    if (f.number == 8)
      for (const Field& o : fields_of(f.bytes))
        if (o.number == 2) model.opset = static_cast<int64_t>(o.value);
    if (f.number == 14) model.metadata[std::string(only(f.bytes, 1))] = only(f.bytes, 2);
    if (f.number != 7) continue;
    for (const Field& g : fields_of(f.bytes)) {
      if (g.number == 11) model.inputs.emplace_back(only(g.bytes, 1)), model.sizes = sizes_of(g.bytes);
      if (g.number == 12) model.outputs.emplace_back(only(g.bytes, 1));
      if (g.number == 5) {
        std::string name;
        const Tensor x = tensor_of(g.bytes, std::filesystem::path(path).parent_path().string(), model, name);
        check(model.constants.emplace(name, x).second, name, " is there twice");
      }
      if (g.number != 1) continue;
      Node& node = model.nodes.emplace_back();
      for (const Field& n : fields_of(g.bytes)) {
        if (n.number == 1) node.inputs.emplace_back(n.bytes);
        if (n.number == 2) node.outputs.emplace_back(n.bytes);
        if (n.number == 4) node.op = n.bytes;
        if (n.number != 5) continue;
        Attribute& a = node.attributes[std::string(only(n.bytes, 1))];
        for (const Field& v : fields_of(n.bytes)) {
          if (v.number == 2) a.f = std::bit_cast<float>(static_cast<uint32_t>(v.value));
          if (v.number == 3) a.i = static_cast<int64_t>(v.value);
          if (v.number == 8) a.ints.push_back(static_cast<int>(v.value));
        }
      }
    }
  }
  return model;
}

inline std::vector<Tensor> run(const Node& n, const std::vector<Tensor>& in, int64_t opset) {
  const Tensor& x = in.at(0);
  const auto ints = [&](size_t i) { return in.at(i).to_vector<int64_t>(); };
  const auto dim = [&](int64_t axis) { return static_cast<int>(axis); };
  const auto squares = [](const Tensor& v) { return mean(square(v), {-1}, true); };
  const auto eps = [&] { return static_cast<double>(n.attributes.at("epsilon").f); };
  if (n.op == "Identity") return {x};
  if (n.op == "Add") return {x + in.at(1)};
  if (n.op == "Sub") return {x - in.at(1)};
  if (n.op == "Mul") return {x * in.at(1)};
  if (n.op == "Div") return {x / in.at(1)};
  if (n.op == "Pow") return {pow(x, in.at(1))};
  if (n.op == "Sqrt") return {sqrt(x)};
  if (n.op == "Cos") return {cos(x)};
  if (n.op == "Sin") return {sin(x)};
  if (n.op == "Erf") return {erf(x)};
  if (n.op == "Tanh") return {tanh(x)};
  if (n.op == "Relu") return {relu(x)};
  if (n.op == "Sigmoid") return {sigmoid(x)};
  if (n.op == "Greater") return {gt(x, in.at(1))};
  if (n.op == "Where") return {where(x, in.at(1), in.at(2))};
  if (n.op == "Cast") return {x.to(n.whole("to") == 1 ? DType::f32 : DType::f64)};
  if (n.op == "Softmax") return {softmax(x, dim(n.whole("axis")))};
  if (n.op == "MatMul") {
    if (x.rank() == in.at(1).rank()) {  // what comes before the matrices is broadcast
      Dims shape = x.shape();
      shape[shape.rank - 2] = in.at(1).size(-2), shape[shape.rank - 1] = in.at(1).size(-1);
      return {matmul(x, expand(in.at(1), shape))};
    }
    return {matmul(x, in.at(1))};
  }
  if (n.op == "Gemm") return {matmul(x, n.whole("transB") == 1 ? transpose(in.at(1), 0, 1) : in.at(1))};
  if (n.op == "Transpose") return {permute(x, n.attributes.at("perm").ints)};
  if (n.op == "Concat") return {cat(in, dim(n.whole("axis")))};
  if (n.op == "Shape") {
    std::vector<int64_t> sizes;
    const bool part = n.attributes.contains("start");
    for (int64_t i = part ? n.whole("start") : 0; i < (part ? n.whole("end") : x.rank()); ++i)
      sizes.push_back(x.size(dim(i)));
    return {from_vector(sizes, {std::ssize(sizes)})};
  }
  if (n.op == "Range") return {arange(x.item(), in.at(1).item(), in.at(2).item(), {.dtype = x.dtype()})};
  if (n.op == "Squeeze") return {squeeze(x, dim(ints(1).at(0)))};
  if (n.op == "Unsqueeze") return {unsqueeze(x, dim(ints(1).at(0)))};
  if (n.op == "Gather") {
    const int axis = n.attributes.contains("axis") ? dim(n.whole("axis")) : 0;
    return {in.at(1).rank() == 0 ? select(x, axis, static_cast<int64_t>(in.at(1).item())) : embedding(x, in.at(1))};
  }
  if (n.op == "Slice") {  // ends beyond the last row are the last
    const int axis = dim(ints(3).at(0));
    return {slice(x, axis, ints(1).at(0), std::min(ints(2).at(0), x.size(axis)))};
  }
  if (n.op == "Reshape") {  // 0: unchanged, if allowed
    Dims shape;
    const std::vector<int64_t> sizes = ints(1);
    const bool zero = n.attributes.contains("allowzero");
    for (size_t i = 0; i < sizes.size(); ++i)
      shape.push_back(sizes[i] == 0 && !zero ? x.size(static_cast<int>(i)) : sizes[i]);
    return {reshape(x, shape)};
  }
  if (n.op == "Expand") {
    Dims shape;
    for (int64_t size : ints(1)) shape.push_back(size);
    return {expand(x, shape)};
  }
  if (n.op == "Split") {
    std::vector<Tensor> parts;
    int64_t at = 0;
    for (int64_t size : ints(1)) parts.push_back(narrow(x, dim(n.whole("axis")), at, size)), at += size;
    check(at == x.size(dim(n.whole("axis"))), "Split: the sizes are not the axis");
    return parts;
  }
  if (n.op == "ReduceSum" || n.op == "ReduceMean") {
    const bool attribute = n.op == "ReduceMean" && opset < 18;  // later the axes are an input
    const int axis = attribute ? n.attributes.at("axes").ints.at(0) : dim(ints(1).at(0));
    const bool keeps = !n.attributes.contains("keepdims") || n.whole("keepdims") == 1;
    return {n.op == "ReduceSum" ? sum(x, {axis}, keeps) : mean(x, {axis}, keeps)};
  }
  if (n.op == "LayerNormalization") {
    const Tensor centred = x - mean(x, {-1}, true);
    return {centred / sqrt(squares(centred) + eps()) * in.at(1)};
  }
  if (n.op == "RMSNormalization") {
    check(opset >= 23, "RMSNormalization is not in opset ", opset);
    return {x / sqrt(squares(x) + eps()) * in.at(1)};
  }
  check(false, "no operator is called ", n.op);
  return {};
}

// Runs the model on its one input. Throws if the input does not have the declared sizes, or if a node reads a value
// that no node before it computed.
inline Tensor run(const Model& model, const Tensor& input) {
  std::map<std::string, Tensor> values = model.constants;
  check(model.inputs.size() == 1 && model.outputs.size() == 1, model.inputs.size(), " inputs");
  check(input.rank() == std::ssize(model.sizes), "the input has ", input.rank(), " axes");
  for (int i = 0; i < input.rank(); ++i)
    check(model.sizes[static_cast<size_t>(i)] == 0 || model.sizes[static_cast<size_t>(i)] == input.size(i),
          "the input's axis ", i, " has ", input.size(i));
  values[model.inputs[0]] = input;
  for (const Node& n : model.nodes) {
    std::vector<Tensor> in;
    for (const std::string& name : n.inputs) in.push_back(values.at(name));
    const std::vector<Tensor> out = run(n, in, model.opset);
    for (size_t i = 0; i < out.size(); ++i)
      check(values.emplace(n.outputs.at(i), out[i]).second, n.outputs[i], " is given twice");
  }
  return values.at(model.outputs[0]);
}

}  // namespace isonorm::onnx_runtime
