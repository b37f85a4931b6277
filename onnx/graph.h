// Internal: a graph of ONNX operators, built node by node, and its file. Source of names and numbers of fields:
// github.com/onnx/onnx, onnx/onnx.proto (IR version 8), docs/Operators.md.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "io/lazy_state.h"
#include "io/safetensors.h"
#include "onnx/message.h"

namespace isonorm::onnx {

// The number of a dtype in the format. Throws for all but f32, f64 and i64.
int64_t data_type(DType dtype);

using Value = std::string;  // what a node gives, an input, or a constant: by its name in the graph

struct Attribute {
  const char* name;
  std::variant<int64_t, float, std::vector<int64_t>> value;
};

// A size, or the name of one that the caller of the graph chooses.
using Axis = std::variant<int64_t, const char*>;

class Graph {
 public:
  // dtype: of all floating numbers, f32 or f64.
  Graph(DType dtype, int64_t opset) : dtype_(dtype), opset_(opset) {}

  DType dtype() const { return dtype_; }
  int64_t opset() const { return opset_; }

  // Nodes that follow are named after this part of the model.
  void enter(const std::string& part) { part_ = part; }

  Value input(const char* name, DType dtype, const std::vector<Axis>& axes);
  void output(const char* name, const Value& of, const std::vector<Axis>& axes);
  Value add(const char* op, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes = {}) {
    return add_all(op, inputs, attributes, 1)[0];
  }
  std::vector<Value> split(const Value& x, int64_t axis, const std::vector<int64_t>& sizes) {
    return add_all("Split", {x, whole(sizes)}, {{"axis", axis}}, sizes.size());
  }

  // A tensor of the model's file under its own name; transposed: of a matrix, [in, out]. Throws where it is asked for in both
  // ways.
  Value weight(const std::string& name, bool transposed = false);
  // Numbers that the graph knows: one of dtype(), whole ones [n], a tensor, a whole one.
  Value number(double x);
  Value whole(const std::vector<int64_t>& x);
  Value constant(const std::string& name, const Tensor& x);
  Value index(int64_t x) { return constant(text("index ", x), from_vector(std::vector{x}, {})); }

  // Replaces the file. Writes the graph, `metadata`, and the weights that the graph uses, in dtype(). Holds one weight in
  // memory at a time. If the file would have more than `most` bytes (protobuf's limit: 2^31 - 1), the weights go to
  // data_file(path) instead. Throws as io::Replacement. Throws (io) if data_file(path) is needed and exists, but `path` is no
  // ONNX file of isonorm.
  void save(const std::string& path, const LazyState& state, const Metadata& metadata,
            int64_t most = (int64_t{1} << 31) - 1) const;

 private:
  std::vector<Value> add_all(const char* op, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes,
                             size_t outputs);

  struct Constant {
    Value name;
    Tensor value;             // undefined: the file's tensor of that name
    bool transposed = false;  // of that
  };
  Tensor outline(const Constant& c, const LazyState& state) const;
  Tensor numbers(const Constant& c, const LazyState& state) const;

  const DType dtype_;
  const int64_t opset_;
  std::string part_ = "model";
  Message nodes_, inputs_, outputs_;
  int64_t count_ = 0;
  std::vector<Constant> constants_;
  std::map<Value, size_t> place_;  // of a constant
};

}  // namespace isonorm::onnx
