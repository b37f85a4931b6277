// Indices of a module's children, of an optimizer's parameter groups, and of a parameter's entries.
#include "nn/container.h"
#include "nn/parameter_free.h"
#include "nn/linear.h"
#include "optim/sgd.h"
#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/methods.h"
#include "autograd/ops/create.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("children and modules of a list count from the end, and an index out of range is refused") {
  nn::ModuleList<nn::Linear> list;
  for (int64_t width : {3, 4, 5}) list.append(nn::Linear(2, width));
  CHECK(list[-1].weight.size(0) == 5);
  CHECK(&list[-3] == &list[0]);
  CHECK(&std::as_const(list)[-1] == &list[2]);
  CHECK(list.children()[-1].get() == &list[2]);
  CHECK_THROWS_WITH(list[3], Contains("list: index 3 is out of range for 3 entries"));
  CHECK_THROWS_WITH(list[-4], Contains("list: index -4 is out of range for 3 entries"));
  CHECK_THROWS_WITH(list.children()[3], Contains("list: index 3 is out of range for 3 entries"));
}

TEST_CASE("layers of a Sequential are modules by index, and their own class by at()") {
  nn::Sequential net(nn::Linear(2, 3), nn::Relu(), nn::Sequential(nn::Linear(3, 4)));
  CHECK(net.size() == 3);
  CHECK(&net[-1] == net.children()[2].get());
  CHECK(&net.at<nn::Linear>(0) == &net[0]);
  CHECK(net.at<nn::Linear>(-3).weight.shape() == Dims{3, 2});
  CHECK(net.at<nn::Sequential>(-1).at<nn::Linear>(0).weight.size(0) == 4);
  net[0].freeze();  // members of Module need no class
  CHECK_FALSE(requires_grad(net.at<nn::Linear>(0).weight));
  CHECK(net[1](full({2}, -1.0)).to_vector<double>() == std::vector<double>{0, 0});
  CHECK_THROWS_WITH(net[3], "list: index 3 is out of range for 3 entries");
  CHECK_THROWS_WITH(net.at<nn::Linear>(-4), "list: index -4 is out of range for 3 entries");
  CHECK_THROWS_WITH(net.at<nn::Linear>(1), "sequential: layer 1 is a nn::Pointwise<&relu>, not a nn::Linear");
  const nn::Sequential& constant = net;
  CHECK(constant[0].parameter_count() == 9);
  // After a layer is replaced, its index returns the new layer.
  net.replace("0", nn::Linear(2, 5));
  CHECK(net.at<nn::Linear>(0).weight.size(0) == 5);
}

TEST_CASE("groups of an optimizer count from the end, and an index out of range is refused") {
  nn::Linear a(2, 2), b(2, 2);
  optim::Sgd opt({{a.parameters(), {.lr = 0.5}}, {b.parameters(), {.lr = 0.25}}});
  CHECK(opt.lr(-1) == 0.25);
  opt.set_lr(-2, 1);
  CHECK(opt.lr(0) == 1);
  CHECK_THROWS_WITH(opt.lr(2), "sgd: there is no group 2 among 2");
  CHECK_THROWS_WITH(opt.set_lr(-3, 1), "sgd: there is no group -3 among 2");
}

TEST_CASE("a parameter is indexed as a tensor is") {
  nn::Linear fc(3, 2);
  const std::vector<float> weight = fc.weight.to_vector<float>();
  CHECK(fc.weight(1, Slice(0, 2)).to_vector<float>() == std::vector<float>{weight[3], weight[4]});
  CHECK(fc.weight(0).to_vector<float>() == fc.weight[0].to_vector<float>());
  CHECK(fc.weight().shape() == Dims{2, 3});
  const NoGrad no_grad;
  fc.weight(0, Slice()) = 0;
  CHECK(fc.weight.to_vector<float>() == std::vector<float>{0, 0, 0, weight[3], weight[4], weight[5]});
}
