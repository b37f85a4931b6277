#include "io/data/ahead.h"

#include "core/formulas/philox.h"
#include "core/memory/upload.h"
#include "core/random.h"
#include "io/data/prefetch.h"

namespace isonorm::data {
namespace {

constexpr uint64_t kDraws = 0x10ade5;  // separates these draws from samplers and sets with the same seed

}  // namespace

// A batch on its way to a device.
struct Arrivals::Travelling {
  Batch batch;
  std::vector<std::unique_ptr<Upload>> uploads;

  Travelling(Batch made, Device device) : batch(std::move(made)) {
    for (Tensor* x : batch.tensors) uploads.push_back(upload(*x, device));
  }
  Batch arrived() && {
    for (size_t i = 0; i < uploads.size(); ++i) *batch.tensors[i] = uploads[i]->take();
    return std::move(batch);
  }
};

struct Arrivals::Coming : Prefetch<Travelling> {
  using Prefetch::Prefetch;
};

Arrivals::Arrivals(std::function<Batch(int64_t)> make, uint64_t seed, int ahead, Device device)
    : make_([make = std::move(make), seed](int64_t step) {
        const DrawsFrom draws({philox(seed, static_cast<uint64_t>(step), kDraws).wide(0), 0});
        return make(step);
      }),
      device_(device),
      coming_(std::make_unique<Coming>([make = make_, device](int64_t step) { return Travelling(make(step), device); },
                                       ahead)) {}
Arrivals::~Arrivals() = default;

Arrivals::Batch Arrivals::batch(int64_t step) const { return Travelling(make_(step), device_).arrived(); }
Arrivals::Batch Arrivals::next() { return coming_->next().arrived(); }
void Arrivals::seek(int64_t step) { coming_->seek(step); }
int64_t Arrivals::step() const { return coming_->position(); }

}  // namespace isonorm::data
