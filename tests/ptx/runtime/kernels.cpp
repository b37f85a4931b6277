// nvcc puts PTX into the objects as fat binaries. When the program starts, they are registered, and each kernel with
// the address of its host function. The toolkit's fatbinary_section.h has the layout of the wrapper.
#include "tests/ptx/runtime/kernels.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "tests/ptx/block.h"
#include "tests/ptx/runtime/runtime.h"

namespace isonorm::ptx {
namespace {

template <class T> T read(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// The text of the last PTX entry (kind 1). The entries follow a header and each other.
std::string_view ptx_of(const char* fat_binary) {
  std::string_view found;
  const char* entry = fat_binary + read<uint16_t>(fat_binary + 6);
  const char* const end = entry + read<uint64_t>(fat_binary + 8);
  while (entry < end) {
    const auto header = read<uint32_t>(entry + 4);
    const auto bytes = read<uint64_t>(entry + 8);
    if (read<uint16_t>(entry) == 1) found = std::string_view(entry + header, strnlen(entry + header, bytes));
    entry += header + bytes;
  }
  if (found.find(".version") == found.npos)
    throw Fault(Fault::Kind::refused, "ptx: a fat binary has no PTX, or compressed PTX (nvcc --compress-mode=none)");
  return found;
}

// The kernels of one source file. The first launch parses them.
struct Binary {
  const char* data;
  std::unique_ptr<Module> module = nullptr;

  Function& function(const std::string& name) {
    if (!module) module = parse(ptx_of(data));
    const auto found = module->functions.find(name);
    if (found == module->functions.end()) throw Fault(Fault::Kind::refused, "ptx: there is no kernel " + name);
    return *found->second;
  }
};

struct Registered {
  Binary* binary = nullptr;
  std::string name;
  std::unique_ptr<Kernel> kernel = nullptr;  // the first launch makes it
  int dynamic_limit = 48 << 10;
};
std::map<const void*, Registered>& registered() {
  static auto& all = *new std::map<const void*, Registered>;
  return all;
}

Kernel& kernel_of(Registered& r) {
  if (!r.kernel) r.kernel = std::make_unique<Kernel>(r.binary->function(r.name));
  return *r.kernel;
}

// The error with which the driver refuses a launch, or cudaSuccess.
cudaError_t refusal(const Registered& r, const Function& f, dim3 grid, dim3 block, size_t dynamic) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const bool has_blocks =
      grid.x > 0 && grid.x <= 0x7fff'ffff && grid.y > 0 && grid.y <= 65535 && grid.z > 0 && grid.z <= 65535;
  if (!has_blocks || threads == 0 || threads > 1024) return cudaErrorInvalidConfiguration;
  if (threads > f.most_threads) return cudaErrorLaunchOutOfResources;
  if (dynamic + f.shared_bytes > static_cast<size_t>(r.dynamic_limit)) return cudaErrorInvalidValue;
  return cudaSuccess;
}

}  // namespace

Decoded decode_all_kernels() {
  Decoded d;
  for (auto& [host, r] : registered()) {
    try {
      decode(r.binary->function(r.name));
    } catch (const Fault& fault) {
      if (d.refused.empty()) d.refused = fault.what();
    }
    ++d.kernels;
  }
  return d;
}

}  // namespace isonorm::ptx

using namespace isonorm::ptx;
using Guard = std::lock_guard<std::recursive_mutex>;

extern "C" {

struct FatBinaryWrapper {
  int magic, version;
  const char* data;
  void* names;
};

void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(new Binary{static_cast<FatBinaryWrapper*>(wrapper)->data});
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  registered()[host] = {.binary = reinterpret_cast<Binary*>(binary), .name = name};
}

// The host functions of kernels call these. gpu/launch.h does not call the host functions.
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) { return cudaErrorNotSupported; }
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) { return cudaErrorNotSupported; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t) { return cudaErrorNotSupported; }

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  const Guard guard(lock());
  const auto r = registered().find(function);
  if (r == registered().end()) return noted(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value > 227 << 10)
    return noted(cudaErrorInvalidValue);
  r->second.dynamic_limit = value;
  return lost();
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t dynamic,
                             cudaStream_t stream) {
  const Guard guard(lock());
  if (lost()) return lost();
  const auto r = registered().find(function);
  if (r == registered().end()) return noted(cudaErrorInvalidDeviceFunction);
  try {
    Kernel& kernel = kernel_of(r->second);
    const Function& f = kernel.function();
    if (const cudaError_t e = refusal(r->second, f, grid, block, dynamic)) return noted(e);
    std::vector<std::byte> parameters(f.parameter_bytes);
    for (size_t k = 0; k < f.parameters.size(); ++k)
      std::memcpy(parameters.data() + f.parameters[k].at, arguments[k], f.parameters[k].bytes);
    return give(stream, [&kernel, grid, block, dynamic, parameters] {
      kernel.launch({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, parameters, dynamic);
    });
  } catch (const Fault& fault) {
    lose(fault);
    return lost();
  }
}

}  // extern "C"
