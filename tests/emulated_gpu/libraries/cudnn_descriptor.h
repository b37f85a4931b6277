// Descriptors of the emulated cuDNN: attributes by name, and the program of a graph's operations.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "tests/emulated_gpu/libraries/cudnn_program.h"

namespace isonorm::gpu::emulated {

struct Descriptor {
  struct Value {
    int64_t count;
    std::vector<std::byte> bytes;
  };
  cudnnBackendDescriptorType_t type;
  bool finished = false;
  std::map<int, Value> values = {};
  std::shared_ptr<const Program> program = nullptr;  // for graphs, their proposed engines, and plans

  template <class T> std::vector<T> all(cudnnBackendAttributeName_t name) const {
    const auto at = values.find(name);
    if (at == values.end()) return {};
    std::vector<T> v(static_cast<size_t>(at->second.count));
    std::memcpy(v.data(), at->second.bytes.data(), at->second.bytes.size());
    return v;
  }
  template <class T> T one(cudnnBackendAttributeName_t name, T otherwise = {}) const {
    const auto v = all<T>(name);
    return v.empty() ? otherwise : v[0];
  }
  Descriptor* other(cudnnBackendAttributeName_t name) const { return static_cast<Descriptor*>(one<void*>(name)); }
};

// The type of an attribute, and the size of its values in bytes.
cudnnBackendAttributeType_t type_of(cudnnBackendAttributeName_t name);
size_t size_of(cudnnBackendAttributeType_t type);

// The operations of a graph. Throws a line (std::string) if an operation lacks a tensor, or if a tensor is read before
// it is written.
std::shared_ptr<const Program> program_of(const Descriptor& graph);

}  // namespace isonorm::gpu::emulated
