#include "exchange/onnx/graph.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/memory/bytes.h"
#include "core/printed.h"
#include "core/system/file.h"
#include "core/view.h"
#include "exchange/onnx/model.h"
#include "io/fits.h"
#include "io/packed.h"
#include "io/replacement.h"

namespace isonorm::onnx {
namespace {

// Field numbers of the messages.
enum ModelField { kIrVersion = 1, kProducer = 2, kGraph = 7, kOpsetImport = 8, kMetadata = 14 };
enum GraphField { kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12 };
enum NodeField { kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kOpType = 4, kAttribute = 5 };
enum AttributeField { kAttributeName = 1, kFloat = 2, kInt = 3, kInts = 8, kType = 20 };
enum TensorField { kDims = 1, kDataType = 2, kTensorName = 8, kRawData = 9, kExternalData = 13, kDataLocation = 14 };

constexpr int64_t kIr = 8;         // IR version of ONNX 1.12, the first release with opset 17
constexpr int64_t kBeside = 1024;  // upper bound for the bytes of a tensor's message without its numbers

// StringStringEntryProto.
Message entry(std::string_view key, std::string_view value) { return Message().text(1, key).text(2, value); }

// ValueInfoProto with a TypeProto.Tensor.
Message described(const char* name, DType dtype, const std::vector<Axis>& axes) {
  Message shape;
  for (const Axis& a : axes)
    if (const int64_t* size = std::get_if<int64_t>(&a))
      shape.message(1, Message().number(1, *size));
    else
      shape.message(1, Message().text(2, std::get<const char*>(a)));
  const Message tensor = Message().number(1, data_type(dtype)).message(2, shape);
  return Message().text(1, name).message(2, Message().message(1, tensor));
}

Message described(const Attribute& a) {
  Message m;
  m.text(kAttributeName, a.name);
  if (const int64_t* x = std::get_if<int64_t>(&a.value))
    m.number(kInt, *x).number(kType, 2);
  else if (const float* x = std::get_if<float>(&a.value))
    m.real(kFloat, *x).number(kType, 1);
  else {
    for (int64_t x : std::get<std::vector<int64_t>>(a.value)) m.number(kInts, x);
    m.number(kType, 7);
  }
  return m;
}

}  // namespace

int64_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 1;
    case DType::i64:
      return 7;
    case DType::f64:
      return 11;
    default:
      check(false, "onnx: the file cannot have ", dtype, ", expected f32, f64 or i64");
      return 0;
  }
}

Value Graph::input(const char* name, DType dtype, const std::vector<Axis>& axes) {
  inputs_.message(kInput, described(name, dtype, axes));
  return name;
}

void Graph::output(const char* name, const Value& of, const std::vector<Axis>& axes) {
  nodes_.message(kNode, Message().text(kNodeInput, of).text(kNodeOutput, name).text(kOpType, "Identity"));
  outputs_.message(kOutput, described(name, dtype_, axes));
}

std::vector<Value> Graph::add_all(const char* op, const std::vector<Value>& inputs,
                                  const std::vector<Attribute>& attributes, size_t outputs) {
  const std::string name = text(part_, '/', op, '_', count_++);
  Message node;
  for (const Value& v : inputs) node.text(kNodeInput, v);
  std::vector<Value> given = {name};
  for (size_t i = 1; i < outputs; ++i) given.push_back(text(name, '.', i));
  for (const Value& v : given) node.text(kNodeOutput, v);
  node.text(kNodeName, name).text(kOpType, op);
  for (const Attribute& a : attributes) node.message(kAttribute, described(a));
  nodes_.message(kNode, node);
  return given;
}

Value Graph::weight(const std::string& name, bool transposed) {
  const auto [at, is_new] = place_.try_emplace(name, constants_.size());
  if (is_new) constants_.push_back({name, {}, transposed});
  check(constants_[at->second].transposed == transposed, "onnx: tensor '", name, "' is read in two ways");
  return name;
}

Value Graph::number(double x) {
  if (dtype_ == DType::f32) io::narrowed_to_f32(x, "onnx: a constant");
  return constant(printed("number %.17g", x), detached::to(from_vector(std::vector{x}, {}), dtype_));
}

Value Graph::whole(const std::vector<int64_t>& x) {
  std::string name = "whole";
  for (int64_t n : x) name += text(' ', n);
  return constant(name, from_vector(x, {std::ssize(x)}));
}

Value Graph::constant(const std::string& name, const Tensor& x) {
  if (place_.try_emplace(name, constants_.size()).second) constants_.push_back({name, x});
  return name;
}

Tensor Graph::outline(const Constant& c, const LazyState& state) const {
  if (c.value.defined()) return c.value;
  const Tensor& x = state.outline.at(c.name);
  return isonorm::outline(c.transposed ? Dims{x.size(1), x.size(0)} : x.shape(), dtype_);
}

Tensor Graph::numbers(const Constant& c, const LazyState& state) const {
  if (c.value.defined()) return c.value;
  const Tensor x = rounded(state.read(c.name), dtype_, c.name);
  return io::packed(c.transposed ? detached::transpose(x, 0, 1) : x);
}

std::string data_file(const std::string& path) { return path + ".data"; }

void Graph::save(const std::string& path, const LazyState& state, const Metadata& metadata, int64_t most) const {
  int64_t whole = nodes_.size();
  for (const Constant& c : constants_) whole = checked_add(whole, byte_size(outline(c, state)) + kBeside, "onnx");
  const bool apart = whole > most;
  const std::string beside = data_file(path), location = std::filesystem::path(beside).filename().string();

  // The length of a message is written before it, so the sizes of the numbers are counted first. They are not in a
  // Message.
  std::vector<Message> heads;
  int64_t graph = nodes_.size() + inputs_.size() + outputs_.size(), at = 0;
  for (const Constant& c : constants_) {
    Message tensor;  // TensorProto
    const Tensor x = outline(c, state);
    for (int64_t size : x.shape()) tensor.number(kDims, size);
    tensor.number(kDataType, data_type(x.dtype())).text(kTensorName, c.name);
    const int64_t here = byte_size(x);
    const bool in_file = c.value.defined() || !apart;
    if (in_file) {
      tensor.begin(kRawData, here);
    } else {
      for (const auto& [key, value] : {std::pair("location", location), {"offset", text(at)}, {"length", text(here)}})
        tensor.message(kExternalData, entry(key, value));
      tensor.number(kDataLocation, 1);
      at += here;
    }
    Message head;
    head.begin(kInitializer, tensor.size() + (in_file ? here : 0)).append(tensor);
    graph += head.size() + (in_file ? here : 0);
    heads.push_back(std::move(head));
  }
  Message model;
  model.number(kIrVersion, kIr).text(kProducer, "isonorm");
  check_io(
      !apart || !file_exists(beside) || (file_exists(path) && io::begins_with(path, model.bytes())), beside,
      ": is in the way: the weights are written there, but the file that is there belongs to no ONNX file of isonorm");
  model.message(kOpsetImport, Message().text(1, "").number(2, opset_));
  for (const auto& [key, value] : metadata) model.message(kMetadata, entry(key, value));
  const Message name = Message().text(kName, "isonorm");
  model.begin(kGraph, graph + name.size()).append(name);

  std::optional<io::Replacement> data;
  if (apart) data.emplace(beside);
  io::Replacement file(path);
  for (const Message* m : std::initializer_list<const Message*>{&model, &nodes_, &inputs_, &outputs_})
    file.write(m->bytes());
  for (size_t i = 0; i < heads.size(); ++i) {
    const Tensor x = numbers(constants_[i], state);
    file.write(heads[i].bytes());
    (apart && !constants_[i].value.defined() ? *data : file).write(bytes_of(x), byte_size(x));
  }
  if (data) data->commit();
  file.commit();
}

}  // namespace isonorm::onnx
