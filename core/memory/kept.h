// Caches of tensors that are computed from a few numbers and used again and again, such as tables of angles. The most
// recently used ones are kept.
#pragma once

#include <array>
#include <functional>
#include <mutex>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

// One cache for all threads. An object should live until the process ends: at exit, a device may be gone before it.
class KeptTensors {
 public:
  struct Key {
    std::array<double, 3> numbers;
    DType dtype;
    Device device;
    bool operator==(const Key&) const = default;
  };

  // Keeps the tensors of at most `most` keys.
  explicit KeptTensors(size_t most) : most_(most) {}
  KeptTensors(const KeptTensors&) = delete;
  KeptTensors& operator=(const KeptTensors&) = delete;

  // Returns the tensors for this key, and calls make() if they are not cached. Nobody may write to them. Exceptions
  // from make() pass through.
  std::vector<Tensor> get(const Key& key, const std::function<std::vector<Tensor>()>& make);

 private:
  struct Kept {
    Key key;
    std::vector<Tensor> tensors;
  };
  const size_t most_;
  std::mutex mutex_;
  std::vector<Kept> last_;  // the most recently used at the end
};

// While it lives, tensors that the calling thread gets from any KeptTensors are also added to `list`. Used by callers
// that use the addresses for longer than the cache keeps the tensors.
class HoldKept {
 public:
  [[nodiscard]] explicit HoldKept(std::vector<Tensor>& list);
  ~HoldKept();
  HoldKept(const HoldKept&) = delete;
  HoldKept& operator=(const HoldKept&) = delete;

 private:
  std::vector<Tensor>* outer_;
};

}  // namespace isonorm
