// load_state(): one function for files of PyTorch and NumPy.
#include "io/load_state.h"

#include "autograd/ops/create.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/same_bytes.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE(
    "load_state: torch.save and safetensors hold the same numbers, F16 and integers included") {  // python_files.py
  const TensorMap a = load_state("tests/fixtures/python_torch.bin"),
                  b = load_state("tests/fixtures/python_torch.safetensors");
  REQUIRE(a.size() == 20);
  REQUIRE(b.size() == 20);
  for (const auto& [name, x] : b) {
    INFO(name);
    CHECK(same_bytes(a.at(name), x));
    CHECK(a.at(name).dtype() == x.dtype());
  }
}

TEST_CASE("load_state: numbers of dtypes that no tensor has keep their values") {  // python_files.py
  const TensorMap a = load_state("tests/fixtures/python_torch.bin");
  for (const auto& [name, dtype] : {std::pair("float16", DType::f32),
                                    {"bool", DType::i64},
                                    {"int8", DType::i64},
                                    {"int16", DType::i64},
                                    {"int32", DType::i64}}) {
    INFO(name);
    CHECK(a.at(name).dtype() == dtype);
    CHECK(a.at(name).to_vector<double>() == std::vector<double>{1, 0, std::string(name) == "bool" ? 1. : 3.});
  }
  CHECK(a.at("half_columns").to_vector<float>()[1] == 2);
}

TEST_CASE("load_state: an npz archive") {
  const TensorMap a = load_state("tests/fixtures/python_stored.npz"), b = load_npz("tests/fixtures/python_stored.npz");
  REQUIRE(a.size() == b.size());
  for (const auto& [name, x] : b) CHECK(same_bytes(a.at(name), x));
}

TEST_CASE("load_state: unknown dtypes and files without tensors are refused by name") {
  const TempFolder folder;
  save_safetensors(folder / "c", {{.name = "z", .dtype = DType::u8, .shape = {2, 8}, .foreign = "C64"}}, {},
                   [](const std::string&) {
                     return zeros({2, 8}, {DType::u8});
                   });
  CHECK_THROWS_WITH(load_state(folder / "c"), Contains("c: tensor 'z' is of C64, which no dtype holds"));
  std::ofstream(folder / "t") << "epoch,loss\n1,0.5\n";
  CHECK_THROWS_WITH(load_state(folder / "t"), Contains("t: safetensors: "));
  CHECK_THROWS_WITH(load_safetensors("tests/fixtures/python_torch.safetensors"), Contains("load_state() converts it"));
}
