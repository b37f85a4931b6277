// Internal: a graph of ONNX operators, built node by node, and its file. Source of field names and numbers:
// github.com/onnx/onnx, onnx/onnx.proto (IR version 8), docs/Operators.md.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/lazy_state.h"
#include "io/safetensors.h"

namespace isonorm::onnx {

// Writes a message in protobuf's wire format. Source: protobuf.dev/programming-guides/encoding.

class Message {
 public:
  Message& number(int field, int64_t x) { return tag(field, 0).varint(static_cast<uint64_t>(x)); }
  Message& real(int field, float x) {
    tag(field, 5);
    for (int i = 0; i < 4; ++i) bytes_.push_back(static_cast<char>(std::bit_cast<uint32_t>(x) >> (8 * i)));
    return *this;
  }
  Message& text(int field, std::string_view s) {
    begin(field, static_cast<int64_t>(s.size())).bytes_.append(s);
    return *this;
  }
  Message& message(int field, const Message& m) { return text(field, m.bytes_); }
  Message& append(const Message& fields) {
    bytes_ += fields.bytes_;
    return *this;
  }
  // Begins a field of `bytes` bytes, which the caller writes after this message's bytes.
  Message& begin(int field, int64_t bytes) { return tag(field, 2).varint(static_cast<uint64_t>(bytes)); }

  const std::string& bytes() const { return bytes_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

 private:
  Message& tag(int field, int type) { return varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type)); }
  Message& varint(uint64_t x) {
    for (; x > 0x7f; x >>= 7) bytes_.push_back(static_cast<char>(x | 0x80));
    bytes_.push_back(static_cast<char>(x));
    return *this;
  }

  std::string bytes_;
};

// Returns the ONNX number of a dtype. Throws for dtypes other than f32, f64 and i64.
int64_t data_type(DType dtype);

using Value = std::string;  // the name of a node's output, an input or a constant

struct Attribute {
  const char* name;
  std::variant<int64_t, float, std::vector<int64_t>> value;
};

// A size, or the name of a size that is chosen at run time.
using Axis = std::variant<int64_t, const char*>;

class Graph {
 public:
  // dtype: f32 or f64, for all floating-point values.
  Graph(DType dtype, int64_t opset) : dtype_(dtype), opset_(opset) {}

  DType dtype() const { return dtype_; }
  int64_t opset() const { return opset_; }

  // The names of the following nodes begin with `part`.
  void enter(const std::string& part) { part_ = part; }

  Value input(const char* name, DType dtype, const std::vector<Axis>& axes);
  void output(const char* name, const Value& of, const std::vector<Axis>& axes);
  Value add(const char* op, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes = {}) {
    return add_all(op, inputs, attributes, 1)[0];
  }
  std::vector<Value> split(const Value& x, int64_t axis, const std::vector<int64_t>& sizes) {
    return add_all("Split", {x, whole(sizes)}, {{"axis", axis}}, sizes.size());
  }

  // The tensor `name` of the state. transposed: a matrix [out, in] as [in, out]. Throws if the same tensor is requested
  // both ways.
  Value weight(const std::string& name, bool transposed = false);
  // Constants: a scalar of dtype(), i64 [n], a tensor, an i64 scalar.
  Value number(double x);
  Value whole(const std::vector<int64_t>& x);
  Value constant(const std::string& name, const Tensor& x);
  Value index(int64_t x) { return constant(text("index ", x), from_vector(std::vector{x}, {})); }

  // Replaces the file. Writes the graph, `metadata`, and the weights that the graph uses, in dtype(). Holds one weight
  // in memory at a time. If the file would have more than `most` bytes (protobuf's limit: 2^31 - 1), the weights go to
  // data_file(path) instead. Throws what io::Replacement throws. Throws (io) if data_file(path) is needed and exists,
  // but `path` is no ONNX file of isonorm.
  void save(const std::string& path, const LazyState& state, const Metadata& metadata,
            int64_t most = (int64_t{1} << 31) - 1) const;

 private:
  std::vector<Value> add_all(const char* op, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes,
                             size_t outputs);

  struct Constant {
    Value name;
    Tensor value;             // undefined: the tensor of this name in the state
    bool transposed = false;  // of the state's tensor
  };
  Tensor outline(const Constant& c, const LazyState& state) const;
  Tensor numbers(const Constant& c, const LazyState& state) const;

  const DType dtype_;
  const int64_t opset_;
  std::string part_ = "model";
  Message nodes_, inputs_, outputs_;
  int64_t count_ = 0;
  std::vector<Constant> constants_;
  std::map<Value, size_t> place_;  // index of a constant in constants_
};

}  // namespace isonorm::onnx
