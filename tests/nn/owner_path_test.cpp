// Errors name the whole path of a module, even if its owner is a module that is never run itself.
#include "autograd/ops/create.h"
#include "nn/container.h"
#include "nn/linear.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::StartsWith;

namespace {

// A block whose forward is never called: its layers are called one by one.
struct Block : nn::Module {
  nn::Linear& fc = add("fc", nn::Linear(3, 3));
};

struct Net : nn::Module {
  nn::ModuleList<Block>& blocks = add("blocks", nn::ModuleList<Block>());
  Net() { blocks.append(Block()), blocks.append(Block()); }
  Tensor forward(const Tensor& x) override { return blocks[1].fc(blocks[0].fc(x)); }
};

struct Outer : nn::Module {
  Net& net = add("net", Net());
  Tensor forward(const Tensor& x) override { return net.blocks[1].fc(x); }
};

struct Borrower : nn::Module {
  nn::Linear& fc;
  explicit Borrower(Net& net) : fc(borrow(net.blocks[0].fc)) {}
  Tensor forward(const Tensor& x) override { return fc(x); }
};

}  // namespace

TEST_CASE("module path: an error names the owners between the running module and the layer") {
  const Tensor wide = zeros({2, 4});
  Net net;
  CHECK_THROWS_WITH(net(wide), StartsWith("blocks.0.fc: "));
  Outer outer;
  CHECK_THROWS_WITH(outer(wide), StartsWith("net.blocks.1.fc: "));
}

TEST_CASE("module path: of a layer that is called from outside it begins at the root") {
  Net net;
  CHECK_THROWS_WITH(net.blocks[1].fc(zeros({2, 4})), StartsWith("blocks.1.fc: "));
}

TEST_CASE("module path: a borrowed layer has its own name alone") {
  Net net;
  Borrower borrower(net);
  CHECK_THROWS_WITH(borrower(zeros({2, 4})), StartsWith("fc: "));
}
