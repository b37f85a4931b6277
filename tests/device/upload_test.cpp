// Copies that run next to a device's work: their order with respect to other work, and the loaders that use them.
#include "core/memory/upload.h"

#include "io/data/loader.h"
#include "io/data/text.h"
#include "gpu/device.h"
#include "gpu/recorder.h"
#include "gpu/stream.h"
#include "tests/support/device.h"
#include "tests/support/emulation.h"
#include "tests/support/ops.h"
#include "training/source.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using test::kCuda, test::kCuda1;

namespace {

constexpr int64_t kMany = 3000;  // elements; their block has its own size class in the allocator

Tensor counted(double from) { return arange(kMany, {DType::f32}) + from; }

// Makes enough uploads that the oldest ones must be finished.
void push_out() {
  for (int i = 0; i < 6; ++i) upload(counted(i), kCuda)->take();
}

template <class F> void at_every_pace(F&& f) {
  test::at_every_pace([&] {
    f();
    gpu::stream_of(kCuda).wait();
  });
}

data::LabelledImages some_images() { return {randint(0, 256, {20, 4, 4}).to(DType::u8), randint(0, 10, {20})}; }

}  // namespace

TEST_CASE("an upload arrives with every dtype's bytes, and the host may overwrite its source") {
  at_every_pace([] {
    for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8}) {
      Tensor x = randint(0, 100, {7, 5}).to(dtype);
      const Tensor kept = detached::clone(x);
      const auto coming = upload(x, kCuda);
      fill(x, 1);
      const Tensor there = coming->take();
      CHECK(there.device() == kCuda);
      CHECK(same_bytes(to(there, kCpu), kept));
    }
    CHECK(upload(empty({0, 3}), kCuda)->take().shape() == Dims{0, 3});
    if (gpu::device_count() > 1)
      CHECK(upload(arange(3), kCuda1)->take().to_vector<double>() == std::vector<double>{0, 1, 2});
  });
  const Tensor x = arange(3);
  CHECK(upload(x, kCpu)->take().handle() == x.handle());
  CHECK_THROWS_WITH(upload(to(x, kCuda), kCuda), Contains("[3] on cuda:0"));
  CHECK_THROWS_WITH(upload(detached::expand(x, {2, 3}), kCuda), Contains("with gaps"));
}

TEST_CASE("an upload is taken without a wait for the copy or the device's work") {
  const Tensor a = to(counted(0), kCuda), b = a + 1.0;
  const auto coming = upload(counted(2), kCuda);
  const gpu::Recorder recorder;
  const Tensor sum = coming->take() + b;
  CHECK(recorder.count(gpu::Recorded::Kind::wait) == 0);
  CHECK(same_bytes(to(sum, kCpu), counted(2) + (counted(0) + 1.0)));
}

TEST_CASE("an upload into reused memory waits for the earlier reads") {
  at_every_pace([] {
    gpu::stream_of(kCuda).wait();
    Tensor result;
    const void* block;
    {
      const Tensor served = to(counted(5), kCuda);
      result = served * 2.0;
      block = served.data<float>();
    }
    std::vector<Tensor> arrived;
    for (int i = 0; i < 6; ++i) arrived.push_back(upload(counted(100 * i), kCuda)->take());
    CHECK(arrived[0].data<float>() == block);
    CHECK(same_bytes(to(result, kCpu), counted(5) * 2.0));
    for (int i = 0; i < 6; ++i) CHECK(same_bytes(to(arrived[static_cast<size_t>(i)], kCpu), counted(100 * i)));
  });
}

TEST_CASE("more uploads than pinned blocks: each block serves again when its copy is over") {
  at_every_pace([] {
    std::vector<std::unique_ptr<Upload>> coming;
    for (int i = 0; i < 11; ++i) coming.push_back(upload(counted(i), kCuda));
    for (int i = 0; i < 11; ++i) CHECK(same_bytes(to(coming[static_cast<size_t>(i)]->take(), kCpu), counted(i)));
  });
}

TEST_CASE("a dropped upload does not write to the next owner of its memory") {
  at_every_pace([] {
    gpu::stream_of(kCuda).wait();
    upload(counted(7), kCuda);
    const Tensor next = zeros({kMany}, {DType::f32, kCuda});
    CHECK(same_bytes(to(next, kCpu), zeros({kMany})));
    push_out();
    CHECK(same_bytes(to(next, kCpu), zeros({kMany})));
  });
}

TEST_CASE("loaders give the batches of the CPU on a device, in order, after a seek, and by number") {
  at_every_pace([] {
    const data::LabelledImages set = some_images();
    const std::string letters = "the quick brown fox jumps over the lazy dog";
    const data::Text text(memory_bytes(letters, "letters"), 3);
    for (int prefetch : {0, 1, 3}) {
      data::Loader here(set, {.rows = 6, .seed = 4}),
          there(set, {.rows = 6, .seed = 4, .prefetch = prefetch, .device = kCuda});
      data::TextLoader words(text, {.rows = 3, .length = 8, .prefetch = prefetch, .device = kCuda});
      const auto check_step = [&](int64_t step, bool by_number) {
        const data::Batch a = by_number ? there.batch(step) : there.next(), b = here.batch(step);
        CHECK(a.images.device() == kCuda);
        CHECK(same_bytes(to(a.images, kCpu), b.images));
        CHECK(same_bytes(to(a.labels, kCpu), b.labels));
        const data::TextBatch c = by_number ? words.batch(step) : words.next(), d = text.batch(3, 8, step);
        CHECK(c.y.device() == kCuda);
        CHECK(same_bytes(to(c.x, kCpu), d.x));
        CHECK(same_bytes(to(c.y, kCpu), d.y));
      };
      for (int64_t step = 0; step < 7; ++step) check_step(step, false);
      check_step(2, true);
      check_step(7, false);
      there.seek(3), words.seek(3);
      check_step(3, false);
    }
  });
}

TEST_CASE("the batches of a training on a device are the CPU's, in whatever order they are asked for") {
  training::TrainingOptions o;
  o.model = {training::kGpt, {}, {{"context", 8}}};
  o.letters = 5, o.batch = 3;
  training::Source here(o);
  o.device = kCuda;
  training::Source there(o);
  for (int64_t step : {0, 1, 2, 2, 7, 8, 0, 1}) {
    const training::Examples a = here.batch(step), b = there.batch(step);
    CHECK(b.inputs.device() == kCuda);
    CHECK(same_bytes(to(b.inputs, kCpu), a.inputs));
    CHECK(same_bytes(to(b.targets, kCpu), a.targets));
  }
  CHECK_THROWS_WITH(there.batch(-1), Contains("step -1"));
  CHECK(same_bytes(to(there.batch(0).inputs, kCpu), here.batch(0).inputs));
}
