// Tensors that are made of a few numbers and used again and again, as tables of angles: the last few are kept, by what
// they are made of.
#pragma once

#include <array>
#include <functional>
#include <mutex>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

// One list of such tensors, for all threads. An object of it lives until the process ends: at exit a device may be gone
// before it.
class KeptTensors {
 public:
  struct Key {
    std::array<double, 3> numbers;
    DType dtype;
    Device device;
    bool operator==(const Key&) const = default;
  };

  // Keeps the tensors of at most so many keys.
  explicit KeptTensors(size_t most) : most_(most) {}
  KeptTensors(const KeptTensors&) = delete;
  KeptTensors& operator=(const KeptTensors&) = delete;

  // What make() gave for this key, or gives now; nobody may write to it. What make() throws goes on to the caller.
  std::vector<Tensor> get(const Key& key, const std::function<std::vector<Tensor>()>& make);

 private:
  struct Kept {
    Key key;
    std::vector<Tensor> tensors;
  };
  const size_t most_;
  std::mutex mutex_;
  std::vector<Kept> last_;  // the one that was asked for last at the end
};

// While it lives, what the calling thread gets of any KeptTensors is put into `list`, too: for those who use the
// addresses for longer than they are kept.
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
