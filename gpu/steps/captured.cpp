#include "gpu/steps/captured.h"

#include <cstring>
#include <mutex>

#include "core/kernels/copy.h"
#include "core/memory/allocator.h"
#include "core/memory/kept.h"
#include "gpu/device.h"
#include "gpu/memory.h"
#include "gpu/recorder.h"
#include "gpu/steps/capture.h"

namespace isonorm::gpu {
namespace {

// Allocators for the memory of graphs. None is ever destroyed, since tensors may outlive a graph; a new graph takes one
// that no other graph uses.
class Pools {
 public:
  DeviceAllocator* take(Device device) {
    const std::lock_guard lock(mutex_);
    for (auto at = free_.begin(); at != free_.end(); ++at)
      if ((*at)->index() == device.index) {
        DeviceAllocator* pool = *at;
        free_.erase(at);
        return pool;
      }
    return new DeviceAllocator(device.index, &device_allocator(device));
  }
  void give(DeviceAllocator* pool) {
    pool->empty_cache();
    const std::lock_guard lock(mutex_);
    free_.push_back(pool);
  }

 private:
  std::mutex mutex_;
  std::vector<DeviceAllocator*> free_;
};
Pools& pools() {
  static auto& all = *new Pools;
  return all;
}

constexpr int64_t kNumbersAt = 64;  // offset in the block: the state of the generator comes first

}  // namespace

struct Captured::State {
  Device device;
  std::function<void()> work;
  std::function<std::vector<kernels::Update>()> numbers;
  DeviceAllocator* pool;
  int runs = 0;
  int64_t updates = 0;  // number of updates in the second run
  Tensor block;         // the graph reads it in every replay: a Generator, then NumberBytes of each update
  std::vector<size_t> rules;
  uint64_t drawn = 0;  // random blocks that a step takes from the generator
  std::vector<Tensor> held;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t graph_exec = nullptr;

  ~State() {
    const OnDevice on(device.index);
    (void)cudaStreamSynchronize(stream_of(device).handle());
    if (graph_exec) (void)cudaGraphExecDestroy(graph_exec);
    if (graph) (void)cudaGraphDestroy(graph);
    held.clear();
    pools().give(pool);
  }

  void run_in_pool() {
    const UseAllocator use(device, *pool);
    work();
  }

  // Copies the numbers to the device after its earlier work, like the launch of the graph.
  void bring(const Generator& base, const std::vector<NumberBytes>& all) {
    const Tensor host = empty(block.shape(), {DType::u8, kCpu});
    auto* to = reinterpret_cast<std::byte*>(host.mutable_data<uint8_t>());
    std::memset(to, 0, static_cast<size_t>(host.numel()));
    std::memcpy(to, &base, sizeof base);
    if (!all.empty()) std::memcpy(to + kNumbersAt, all.data(), all.size() * sizeof(NumberBytes));
    kernels::transfer(block, host);
  }

  void write_down() {
    const Stream& stream = stream_of(device);
    const OnDevice on(device.index);
    std::unique_lock alone(captures());
    auto* at = reinterpret_cast<std::byte*>(block.mutable_data<uint8_t>());
    const Generator base = default_generator();
    Capture capture(stream, base, reinterpret_cast<const Generator*>(at),
                    reinterpret_cast<const NumberBytes*>(at + kNumbersAt), updates);
    check_stream(stream, cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal));
    try {
      const SetCapture set(capture);
      const HoldKept hold(held);
      run_in_pool();
    } catch (...) {
      cudaGraph_t none = nullptr;
      (void)cudaStreamEndCapture(stream.handle(), &none);
      if (none) (void)cudaGraphDestroy(none);
      (void)cudaGetLastError();  // the thrown error says more
      throw;
    }
    check_stream(stream, cudaStreamEndCapture(stream.handle(), &graph));
    alone.unlock();
    check(default_generator().seed == base.seed && default_generator().offset >= base.offset,
          "captured step: it sets the thread's random generator, which a graph cannot do again");
    drawn = default_generator().offset - base.offset;
    rules = capture.rules();
    check_stream(stream, cudaGraphInstantiate(&graph_exec, graph, 0));
    bring(base, capture.first());
    start();
  }

  void replay() {
    const std::vector<kernels::Update> now = numbers ? numbers() : std::vector<kernels::Update>();
    check(now.size() == rules.size(), "captured step: ", now.size(), " updates now, ", rules.size(),
          " when it was written down");
    std::vector<NumberBytes> all;
    for (size_t i = 0; i < now.size(); ++i) {
      check(now[i].rule.index() == rules[i], "captured step: update ", i, " is by rule ", now[i].rule.index(), " now, ",
            rules[i], " when it was written down");
      all.push_back(bytes_of(now[i]));
    }
    bring(default_generator().take(drawn), all);
    start();
  }

  void start() {
    const Stream& stream = stream_of(device);
    const OnDevice on(device.index);
    record(Recorded::Kind::launch, "captured step", 1);
    check_stream(stream, cudaGraphLaunch(graph_exec, stream.handle()));
    note_launch(stream, "captured step");
  }
};

Captured::Captured(Device device, std::function<void()> work, std::function<std::vector<kernels::Update>()> numbers) {
  check_device(device);
  (void)allocator_of(device);  // starts the device
  state_ = std::make_unique<State>();
  state_->device = device;
  state_->work = std::move(work), state_->numbers = std::move(numbers);
  state_->pool = pools().take(device);
}
Captured::~Captured() = default;

bool Captured::replays() const { return state_->graph_exec != nullptr; }

void Captured::operator()() {
  State& s = *state_;
  if (s.graph_exec) return s.replay();
  const int run = s.runs++;
  if (run == 0) {
    s.work();
  } else if (run == 1) {
    const int64_t before = updates_given();
    s.run_in_pool();  // so that the third run finds the memory that it needs
    s.updates = updates_given() - before;
    s.block = empty({kNumbersAt + s.updates * int64_t{sizeof(NumberBytes)}}, {DType::u8, s.device});
  } else {
    s.write_down();
  }
}

}  // namespace isonorm::gpu
