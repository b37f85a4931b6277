// A model folder of the hub. The input gives config.json (up to a byte 0) and the index (the rest); the weights are
// valid. The generated description must be readable again.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "exchange/hub/family.h"
#include "streams/layout.h"
#include "tests/fuzz/fuzz.h"

using namespace isonorm;
namespace fs = std::filesystem;

namespace {

// A GPT-2 with one layer, with one number in each tensor.
fs::path made() {
  const fs::path folder = fs::temp_directory_path() / text("isonorm_fuzz_hub_", getpid());
  fs::create_directory(folder);
  TensorMap state;
  for (const char* name : {"wte", "wpe", "ln_f", "h.0.ln_1", "h.0.ln_2", "h.0.attn.c_attn", "h.0.attn.c_proj",
                           "h.0.mlp.c_fc", "h.0.mlp.c_proj"}) {
    const Tensor one = empty({1, 1});
    *one.mutable_data<float>() = 1;
    state.add(text(name, ".weight"), one);
  }
  save_safetensors(folder / "a.safetensors", state);
  std::atexit([] { fs::remove_all(fs::temp_directory_path() / text("isonorm_fuzz_hub_", getpid())); });
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fs::path folder = made();
  return fuzz(data, size, [&](const Bytes&) {
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const std::string_view config = all.substr(0, all.find('\0')),
                           index = all.substr(std::min(size, config.size() + 1));
    std::ofstream(folder / "config.json") << config;
    std::ofstream(folder / "model.safetensors.index.json") << index;
    const hub::Folder opened = hub::open_folder(folder);
    streams::Layout::streams_from_json(hub::describe(opened));
  });
}
