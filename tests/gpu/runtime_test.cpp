// Emulated streams, events, memory, graphs and failures.
#include "tests/emulated_gpu/device_memory.h"
#include "tests/emulated_gpu/sanitizers.h"
#include "tests/gpu/child.h"
#include "tests/gpu/device_floats.h"
#include "tests/gpu/primitives.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::gpu;
using namespace isonorm::test;
using Catch::Matchers::Contains;
using emulated::Fault;
using emulated::Pace;
using emulated::runtime_settings;

namespace {

// Restores the settings at the end of a test.
struct Restored {
  emulated::RuntimeSettings settings = runtime_settings();
  ~Restored() { runtime_settings() = settings; }
};

const std::vector<float> kTwo{1, 2}, kPlusOne{2, 3};
std::vector<float> host_of(const DeviceFloats& x) { return {x.host(), x.host() + 2}; }

}  // namespace

TEST_CASE("work is done when it is waited for") {
  DeviceFloats x(2), y(2);
  x.give(kTwo);
  start_add_one(stream_of(kGpu), y.data(), x.data(), 2);
  std::fill_n(y.host(), 2, -1.f);
  y.take();
  CHECK(emulated::pending_work() == 3);
  CHECK(host_of(y) == std::vector<float>{-1, -1});
  SECTION("of the stream") { stream_of(kGpu).wait(); }
  SECTION("of the device") { must(cudaDeviceSynchronize(), "test"); }
  SECTION("of an event") {
    Event e(0);
    e.record(stream_of(kGpu));
    e.wait();
  }
  CHECK(host_of(y) == kPlusOne);
  CHECK(emulated::pending_work() == 0);
}

TEST_CASE("the source of a copy has been read when the copy is done") {
  DeviceFloats x(2);
  x.give(kTwo);
  x.host()[0] = 7;  // too early: the copy has not finished
  CHECK(x.taken() == std::vector<float>{7, 2});
}

TEST_CASE("work can be done at once, or at any time") {
  const Restored restored;
  DeviceFloats x(2), y(2);
  SECTION("at once") {
    runtime_settings().pace = Pace::at_once;
    x.give(kTwo);
    start_add_one(stream_of(kGpu), y.data(), x.data(), 2);
    y.take();
    CHECK(host_of(y) == kPlusOne);
  }
  SECTION("drawn") {
    runtime_settings().pace = Pace::drawn;
    bool early = false, late = false;
    for (int i = 0; i < 200; ++i) {
      x.give(kTwo);
      start_add_one(stream_of(kGpu), y.data(), x.data(), 2);
      y.take();
      (emulated::pending_work() ? late : early) = true;
      stream_of(kGpu).wait();
      CHECK(host_of(y) == kPlusOne);
    }
    CHECK((early && late));
  }
}

TEST_CASE("one stream waits for another by an event alone") {
  DeviceFloats x(2), y(2);
  Stream second(0);
  x.give(kTwo);
  start_add_one(stream_of(kGpu), y.data(), x.data(), 2);
  Event ready(0);
  ready.record(stream_of(kGpu));
  const bool waits = GENERATE(true, false);
  if (waits) second.wait_for(ready);
  must(cudaMemcpyAsync(y.host(), y.data(), 8, cudaMemcpyDeviceToHost, second.handle()), "test");
  second.wait();
  CHECK((host_of(y) == kPlusOne) == waits);
  stream_of(kGpu).wait();
}

TEST_CASE("times of events come in order, when they are over") {
  Event begin(0, true), end(0, true);
  CHECK_THROWS_AS(end.seconds_since(begin), Error);
  begin.record(stream_of(kGpu));
  end.record(stream_of(kGpu));
  CHECK_THROWS_WITH(end.seconds_since(begin), Contains("not ready"));
  end.wait();
  CHECK(end.seconds_since(begin) >= 0);
}

TEST_CASE("copies stay within a block and use pinned memory") {
  DeviceFloats x(2), y(2);
  std::vector<float> pageable(2);
  const auto stream = stream_of(kGpu).handle();
  CHECK_THROWS_WITH(cudaMemcpyAsync(x.data(), y.host(), 12, cudaMemcpyHostToDevice, stream),
                    Contains("12 bytes that are not"));
  CHECK_THROWS_WITH(cudaMemcpyAsync(x.data() + 1, y.host(), 8, cudaMemcpyHostToDevice, stream),
                    Contains("not all of one block"));
  CHECK_THROWS_WITH(cudaMemcpyAsync(pageable.data(), x.data(), 8, cudaMemcpyDeviceToHost, stream),
                    Contains("not pinned"));
  CHECK_THROWS_WITH(cudaMemcpyAsync(x.data(), y.data(), 8, cudaMemcpyHostToDevice, stream), Contains("direction"));
  CHECK(cudaMemcpyAsync(x.data(), y.data(), 8, cudaMemcpyDeviceToDevice, stream) == cudaSuccess);
  stream_of(kGpu).wait();
}

TEST_CASE("memory is all ones, serves again, and is watched after its release") {
  void *a = nullptr, *b = nullptr;
  must(cudaMalloc(&a, 123457), "test");
  {
    DeviceFloats x(2);
    CHECK(x.taken()[0] != x.taken()[0]);  // NaN
  }
  must(cudaFree(a), "test");
  CHECK(cudaFree(a) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
  start_empty(stream_of(kGpu), 1, 32, 0);
  synchronize();
  if (!emulated::kAddressChecks) {
    must(cudaMalloc(&b, 123457), "test");
    CHECK(a == b);
    must(cudaFree(b), "test");
    start_empty(stream_of(kGpu), 1, 32, 0);
    synchronize();
    const std::string said = said_by([&] {
      try {
        DeviceFloats x(2);
        // b is already released, and no argument shows its use: the kernel's write is found at the next allocation.
        float* late = static_cast<float*>(b);
        emulated::launch_kernel(stream_of(kGpu).handle(), "late", {1}, {32}, 0, [=] {
          if (threadIdx.x == 0) *late = 1;
        });
        synchronize();
        void* again = nullptr;
        (void)cudaMalloc(&again, 123457);
      } catch (const Fault& e) {
        std::fprintf(stderr, "%s", e.what());
      }
    });
    CHECK_THAT(said, Contains("written to after it was released"));
  }
}

TEST_CASE("two devices: neither uses the other's memory") {
  REQUIRE(device_count() == 2);
  DeviceFloats here(2), there(2, kOther);
  there.give(kTwo);
  start_add_one(stream_of(kOther), there.data(), there.data(), 2);
  CHECK(there.taken() == kPlusOne);
  CHECK_THROWS_WITH(start_add_one(stream_of(kGpu), here.data(), there.data(), 2),
                    Contains("test.add_one: an argument is an address of cuda:1, the stream is of cuda:0"));
  const float on_stack[2] = {};
  CHECK_THROWS_WITH(start_add_one(stream_of(kGpu), here.data(), on_stack, 2), Contains("not pinned"));
  // An address that is not among the arguments.
  if (!emulated::kRaceChecks) {  // which know no order between a process that ran kernels and its child
    const std::string said = said_by([&] {
      float* p = there.data();
      emulated::launch_kernel(stream_of(kGpu).handle(), "hidden", {1}, {32}, 0, [=] { *p = 1; });
      synchronize();
    });
    CHECK((said.find("signal 11") != std::string::npos || said.find("SEGV") != std::string::npos));
    if (!emulated::kAddressChecks)
      CHECK_THAT(said, Contains("kernel hidden touches memory of cuda:1, where it does not run"));
  }
  // A stream of a device that is not the thread's current one is refused, as in CUDA.
  const OnDevice on(1);
  CHECK(emulated::launch_kernel(stream_of(kGpu).handle(), "elsewhere", {1}, {32}, 0, [] {}) ==
        cudaErrorInvalidResourceHandle);
  (void)cudaGetLastError();
}

TEST_CASE("a captured graph does its work again and again") {
  DeviceFloats x(2), y(2);
  Stream s(0), second(0);
  x.give(kTwo);
  synchronize();
  must(cudaStreamBeginCapture(s.handle(), cudaStreamCaptureModeThreadLocal), "test");
  start_add_one(s, y.data(), x.data(), 2);
  Event forked(0), joined(0);
  forked.record(s);
  second.wait_for(forked);
  start_add_one(second, x.data(), y.data(), 2);
  cudaGraph_t graph = nullptr;
  SECTION("whole") {
    joined.record(second);
    s.wait_for(joined);
    must(cudaStreamEndCapture(s.handle(), &graph), "test");
    CHECK(emulated::pending_work() == 0);
    cudaGraphExec_t exec = nullptr;
    must(cudaGraphInstantiate(&exec, graph, 0), "test");
    for (int i = 0; i < 3; ++i) must(cudaGraphLaunch(exec, s.handle()), "test");
    s.wait();
    CHECK(x.taken() == std::vector<float>{7, 8});
    must(cudaGraphExecDestroy(exec), "test");
    must(cudaGraphDestroy(graph), "test");
  }
  SECTION("a stream that was not joined") {
    CHECK(cudaStreamEndCapture(s.handle(), &graph) == cudaErrorStreamCaptureUnjoined);
  }
  SECTION("a wait spoils it") {
    CHECK_THROWS_WITH(s.wait(), Contains("not permitted when stream is capturing"));
    CHECK(cudaStreamEndCapture(s.handle(), &graph) == cudaErrorStreamCaptureInvalidated);
  }
  SECTION("a request for memory spoils it") {
    void* p = nullptr;
    CHECK(cudaMalloc(&p, 8) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaStreamEndCapture(s.handle(), &graph) == cudaErrorStreamCaptureInvalidated);
  }
  (void)cudaGetLastError();
}

TEST_CASE("an event that was recorded in a capture cannot be queried until it is recorded again") {
  Stream s(0);
  cudaEvent_t e = nullptr;
  must(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "test");
  cudaGraph_t graph = nullptr;
  for (const bool asked_in_capture : {false, true}) {
    must(cudaStreamBeginCapture(s.handle(), cudaStreamCaptureModeThreadLocal), "test");
    must(cudaEventRecord(e, s.handle()), "test");
    if (asked_in_capture) CHECK(cudaEventQuery(e) == cudaErrorCapturedEvent);
    CHECK(cudaStreamEndCapture(s.handle(), &graph) ==
          (asked_in_capture ? cudaErrorStreamCaptureInvalidated : cudaSuccess));
    if (graph) must(cudaGraphDestroy(graph), "test");
    CHECK(cudaEventQuery(e) == cudaErrorCapturedEvent);
    CHECK(cudaEventSynchronize(e) == cudaErrorCapturedEvent);
    CHECK(cudaStreamWaitEvent(s.handle(), e) == cudaErrorCapturedEvent);
    must(cudaEventRecord(e, s.handle()), "test");
    CHECK(cudaEventSynchronize(e) == cudaSuccess);
    CHECK(cudaEventQuery(e) == cudaSuccess);
  }
  // Another event, whose work is over: a thread that captures may not query it, either.
  must(cudaStreamBeginCapture(s.handle(), cudaStreamCaptureModeThreadLocal), "test");
  CHECK(cudaEventQuery(e) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(s.handle(), &graph) == cudaErrorStreamCaptureInvalidated);
  must(cudaEventDestroy(e), "test");
  (void)cudaGetLastError();
}

TEST_CASE("a lost device does no work and answers every call so") {
  DeviceFloats x(2);
  x.give(kTwo);
  synchronize();
  cudaEvent_t e = nullptr;
  must(cudaEventCreateWithFlags(&e, cudaEventDefault), "test");
  start_add_one(stream_of(kGpu), x.data(), x.data(), 2);
  const cudaStream_t stream = stream_of(kGpu).handle();
  constexpr cudaError_t lost = cudaErrorMisalignedAddress;
  emulated::lose_device(lost);
  void* p = nullptr;
  float ms = 0;
  CHECK(cudaStreamSynchronize(stream) == lost);
  CHECK(cudaDeviceSynchronize() == lost);
  CHECK(cudaMalloc(&p, 8) == lost);
  CHECK(cudaFree(x.data()) == lost);
  CHECK(cudaEventRecord(e, stream) == lost);
  CHECK(cudaEventQuery(e) == lost);
  CHECK(cudaEventElapsedTime(&ms, e, e) == lost);
  CHECK(cudaMemsetAsync(x.data(), 0, 8, stream) == lost);
  emulated::lose_device(cudaSuccess);
  must(cudaEventDestroy(e), "test");
  CHECK(x.taken() == kTwo);
}

TEST_CASE("failures can be made") {
  void* p = nullptr;
  emulated::fail_next("cudaMalloc", cudaErrorMemoryAllocation, 1);
  CHECK(cudaMalloc(&p, 8) == cudaSuccess);
  must(cudaFree(p), "test");
  CHECK(cudaMalloc(&p, 8) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  emulated::lose_device(cudaErrorLaunchFailure);
  CHECK(cudaMalloc(&p, 8) == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  emulated::lose_device(cudaSuccess);
  CHECK(cudaMalloc(&p, 8) == cudaSuccess);
  must(cudaFree(p), "test");
}
