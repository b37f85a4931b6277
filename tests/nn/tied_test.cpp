// Weight tying: a tensor that has several names in a module.
#include "nn/linear.h"
#include "optim/sgd.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using Names = std::vector<std::string>;

namespace {

struct Head : Module {
  explicit Head(const Tensor& table) { add_parameter("weight", table); }
};
struct Constructed : Module {
  Embedding& table = add("table", Embedding(3, 2));
  Head& head = add("head", Head(table.weight));
};

TensorMap tensors(std::initializer_list<std::pair<std::string, double>> filled) {
  TensorMap map;
  for (const auto& [name, value] : filled) map.add(name, full({3, 2}, value));
  return map;
}

}  // namespace

TEST_CASE("tied: a tensor is listed, counted and saved once, under its first name") {
  Constructed net;
  const std::vector<NamedParameter> listed = net.named_parameters();
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].name == "table.weight");
  CHECK(listed[0].aliases == Names{"head.weight"});
  CHECK(net.parameters().size() == 1);
  CHECK(net.parameter_count() == 6);
  CHECK(net.state_dict().size() == 1);
  CHECK(net.head.named_parameters()[0].aliases.empty());
}

TEST_CASE("tied: a tensor loads under any of its names, and under several if the values are equal") {
  Constructed net;
  const auto value = [&] { return net.table.weight.to_vector<float>()[5]; };
  net.load_state_dict(tensors({{"table.weight", 1}}));
  CHECK(value() == 1);
  net.load_state_dict(tensors({{"head.weight", 2}}));
  CHECK(value() == 2);
  net.load_state_dict(tensors({{"head.weight", 3}, {"table.weight", 3}}));
  CHECK(value() == 3);
  CHECK(net.load_state_dict(tensors({{"head.weight", 4}, {"other", 4}}), {.strict = false}).unexpected ==
        Names{"other"});
  CHECK(value() == 4);
  CHECK_THROWS_WITH(net.load_state_dict(tensors({{"head.weight", 5}, {"table.weight", 6}})),
                    "load_state_dict: the tensors do not fit this module:\n"
                    "  tied        head.weight is the tensor table.weight, given other values");
  CHECK(value() == 4);
}
