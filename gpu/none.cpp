// The library without CUDA (ISONORM_GPU=off).
#include "gpu/device.h"

#include "core/kernels/optimizer.h"
#include "core/memory/storage.h"
#include "gpu/steps/captured.h"

namespace isonorm {
namespace gpu {
namespace {
[[noreturn]] void refuse() { raise(ErrorKind::invalid, "cuda: " + why_none(), __FILE__, __LINE__); }
}  // namespace

int device_count() { return 0; }
std::string why_none() { return "this library was built without it"; }
std::string device_name(Device) { refuse(); }
Memory memory(Device) { refuse(); }
std::vector<LibraryFacts> libraries() { return {}; }
void set_memory_limit(int64_t, Device) { refuse(); }
void empty_cache(Device) { refuse(); }
void synchronize(Device) { refuse(); }

struct Captured::State {};
Captured::Captured(Device, std::function<void()>, std::function<std::vector<kernels::Update>()>) { refuse(); }
Captured::~Captured() = default;
void Captured::operator()() { refuse(); }
bool Captured::replays() const { refuse(); }

}  // namespace gpu

void start_cuda() { gpu::refuse(); }

}  // namespace isonorm
