// Modules, shapes and tensors as text.
#include "nn/print.h"

#include <sstream>

#include "autograd/ops/create.h"
#include "core/print.h"
#include "nn/container.h"
#include "nn/gpt.h"
#include "nn/group_norm.h"
#include "nn/parameter_free.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::nn;

namespace {
template <class T> std::string printed_by(const T& x) {
  std::ostringstream s;
  s << x;
  return s.str();
}
}  // namespace

TEST_CASE("print: a module is a tree with classes, counts and shapes") {
  struct Net : Module {
    Linear& fc1 = add("fc1", Linear(4, 30));
    BatchNorm& norm = add("norm", BatchNorm(30));
    Sequential& head = add("head", Sequential(Relu(), Linear(30, 2, {.bias = false})));
  };
  Net net;
  net.fc1.freeze();
  CHECK(printed_by(net) ==
        "Net                           270\n"
        "  fc1   nn::Linear            150  weight [30, 4] (frozen), bias [30] (frozen)\n"
        "  norm  nn::BatchNorm          60  weight [30], bias [30], running_mean [30] (buffer), running_var [30] "
        "(buffer)\n"
        "  head  nn::Sequential         60\n"
        "    0   nn::Pointwise<&relu>\n"
        "    1   nn::Linear             60  weight [2, 30]");
}

TEST_CASE("print: equal blocks share one line") {
  Gpt gpt({.vocab = 5, .context = 4, .transformer = {.width = 8, .depth = 3, .heads = 2}});
  CHECK(printed_by(gpt) ==
        "nn::Gpt                               2637\n"
        "  token       nn::Embedding             40  weight [5, 8]\n"
        "  position    nn::Embedding             32  weight [4, 8]\n"
        "  blocks      nn::TransformerStack    2520\n"
        "    0 to 2    nn::TransformerBlock     840  each\n"
        "      norm1   nn::PreNorm\n"
        "      attn    nn::MultiheadAttention   288\n"
        "        qkv   nn::Linear               216  weight [24, 8], bias [24]\n"
        "        proj  nn::BranchOutput          72  weight [8, 8], bias [8]\n"
        "      norm2   nn::PreNorm\n"
        "      mlp     nn::FeedForward          552\n"
        "        fc1   nn::Linear               288  weight [32, 8], bias [32]\n"
        "        fc2   nn::BranchOutput         264  weight [8, 32], bias [8]\n"
        "  norm        nn::PreNorm\n"
        "  head        nn::Linear                45  weight [5, 8], bias [5]");
}

TEST_CASE("print: shapes, dtypes, devices and tensors go to a stream") {
  CHECK(printed_by(Dims{2, 3}) == "[2, 3]");
  CHECK(printed_by(Dims{}) == "[]");
  CHECK(printed_by(DType::bf16) == "bf16");
  CHECK(printed_by(kCpu) == "cpu");
  CHECK(printed_by(ones({2})) == "[1., 1.]  f32 [2]");
}
