// load_state_dict() says how to convert tensors that do not fit: names with a prefix, PyTorch's names and layouts. A
// PyTorch convolution whose shape fits both layouts is refused.
#include "autograd/methods.h"
#include "autograd/ops/create.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "io/load_state.h"
#include "io/safetensors.h"
#include "nn/conv.h"
#include "nn/group_norm.h"
#include "nn/linear.h"
#include "nn/torch_state.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using test::thrown;

namespace {

struct Mlp : nn::Module {
  nn::Linear& fc = add("fc", nn::Linear(2, 3));
  nn::BatchNorm& bn = add("bn", nn::BatchNorm(3));
};

// With 3 channels and a 3 x 3 window, PyTorch's [out, in, height, width] and [out, height, width, in] have the same
// shape.
struct Picture : nn::Module {
  nn::Conv2d& conv = add("conv", nn::Conv2d(3, 4, 3));
};

TensorMap prefixed(const TensorMap& state, const std::string& prefix) {
  TensorMap all;
  for (const auto& [name, x] : state) all.add(prefix + name, x);
  return all;
}

constexpr const char* kFromTorch = "they are PyTorch's, which nn::from_torch(module, tensors) converts";

}  // namespace

TEST_CASE("load_state_dict: names with a prefix are answered with the call that removes it") {
  Mlp net, other;
  const TensorMap parallel = prefixed(net.state_dict(), "module.");
  const std::string said = thrown([&] { other.load_state_dict(parallel); });
  CHECK_THAT(said, Contains("do not fit this module; their names begin with 'module.', which "
                            "tensors.below(\"module.\") removes:\n"));
  CHECK_THAT(said, !Contains("from_torch"));
  other.load_state_dict(parallel.below("module."));
  CHECK(equal(other.fc.weight, net.fc.weight));

  CHECK_THAT(thrown([&] { other.load_state_dict(parallel, {.strict = false}); }),
             Contains("none of the 6 tensors has a name of this module: module.fc.weight is the first, here fc.weight; "
                      "their names begin with 'module.'"));
  // A state dict of PyTorch's DataParallel needs both calls, in this order.
  const TensorMap torch = prefixed(nn::to_torch(net), "module.");
  CHECK_THAT(thrown([&] { other.load_state_dict(torch); }),
             Contains(text("removes; ", kFromTorch)) && Contains("tensors.below(\"module.\")"));
  other.load_state_dict(nn::from_torch(other, torch.below("module.")));
  // No common prefix: the file belongs to another module.
  TensorMap wrong;
  wrong.add("head.kernel", ones({2}));
  CHECK_THAT(thrown([&] { other.load_state_dict(wrong); }), Contains("do not fit this module:\n"));
}

TEST_CASE("load_state_dict: the message quotes a prefix on one line, with any characters") {
  Mlp net;
  CHECK_THAT(thrown([&] { net.load_state_dict(prefixed(net.state_dict(), "a\n\x1b.")); }),
             Contains("their names begin with 'a \\x1b.'"));
}

TEST_CASE("load_state_dict: a convolution of a PyTorch file is refused if its shape fits") {
  const TempFolder f;
  Picture net, other;
  const Tensor before = other.conv.weight.clone();
  const auto check_refused = [&](const TensorMap& state) {
    CHECK(state.is_torch());
    CHECK(thrown([&] { other.load_state_dict(state); }) ==
          "load_state_dict: the tensors are PyTorch's, where conv.weight has another layout, though its shape fits; "
          "nn::from_torch(module, tensors) converts it");
    CHECK(equal(other.conv.weight, before));
  };
  check_refused(nn::to_torch(net));
  save_safetensors(f / "torch", nn::to_torch(net));
  check_refused(load_state(f / "torch"));
  check_refused(load_safetensors(f / "torch"));
  check_refused(nn::clone(load_state(f / "torch").below("")));
  other.load_state_dict(nn::from_torch(other, load_state(f / "torch")));
  CHECK(equal(other.conv.weight, net.conv.weight));

  // This library's files carry no mark, and other layers have only one layout.
  save_safetensors(f / "own", net.state_dict());
  Metadata metadata;
  CHECK_FALSE(load_safetensors(f / "own", &metadata).is_torch());
  CHECK(metadata.empty());
  other.load_state_dict(load_state(f / "own"));
  Mlp mlp, given;
  TensorMap linear;
  for (const auto& [name, x] : nn::to_torch(given))
    if (!name.ends_with("tracked")) linear.add(name, x);
  linear.set_torch(true);
  mlp.load_state_dict(linear);
}

TEST_CASE("load_state_dict: the state of torch.save is PyTorch's") {
  CHECK(load_state("tests/fixtures/python_torch.bin").is_torch());
}
