// The list of slots, and properties of slots that no row of tests/op_cases tests, on a device compared with the CPU.
#include <cstring>
#include <filesystem>
#include <regex>
#include <set>

#include "autograd/fused/mlp.h"
#include "core/memory/bytes.h"
#include "tests/support/device.h"
#include "tests/support/ops.h"
#include "tests/support/read_text.h"
#include "tests/support/slots.h"

using namespace isonorm;
using namespace isonorm::test;

TEST_CASE(
    "the list of slots is that of core/kernels, and each has a function on a device, but for the CPU's ways to "
    "convolve and to interpolate") {
  std::set<std::string> declared, listed;
  for (const auto& file : std::filesystem::directory_iterator("core/kernels")) {
    const std::string source = read_text(file.path().string());
    const std::regex slot(R"(inline constinit Kernel<[^{]*>\s+(\w+)\{)");
    for (std::sregex_iterator at(source.begin(), source.end(), slot), end; at != end; ++at) declared.insert((*at)[1]);
  }
  for_all_slots([&]<auto & slot>() {
    const std::string name = name_of_slot<slot>();
    listed.insert(name);
    INFO(name);
    CHECK((slot.cuda() == nullptr) == std::set<std::string>{"convolve", "filter_gradient", "resample"}.contains(name));
  });
  CHECK(declared.size() > 40);
  CHECK(listed == declared);
}

TEST_CASE("rows are recentred in place") {
  Generator g{.seed = 5};
  const Tensor x = randn({3, 7, 5}, {DType::f64}, g), there = to(x, kCuda);
  kernels::recentre.on(kCuda, {3, 7, 5}, there, there);
  check_close(there, recentre(x, 1), 64 * epsilon(DType::f64));
}

TEST_CASE("sums of blocks have the bits of the CPU's, by packs and by elements, also into the first block") {
  Generator g{.seed = 7};
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const int64_t block : {1, 8, 13, 2048}) {
      INFO(text(dtype, " ", block));
      const int64_t parts = 2, ranks = 3;
      const Tensor x = to(randn({parts * ranks * block}, {DType::f32}, g), dtype), there = to(x, kCuda);
      const Tensor own = empty({block}, {dtype}), first = narrow(there, 0, 0, block);
      kernels::sum_blocks.on(kCpu, own, x, parts, ranks);
      kernels::sum_blocks.on(kCuda, first, there, parts, ranks);
      const Tensor back = to(first, kCpu);
      CHECK(std::memcmp(bytes_of(back), bytes_of(own), static_cast<size_t>(byte_size(own))) == 0);
    }
}

TEST_CASE("mlp keeps its hidden rows in bf16") {
  Generator g{.seed = 6};
  // Enough hidden units that a copy in bf16 is worth it (rounds_activation()).
  const auto leaf = [&](const Dims& shape) { return require_grad(randn(shape, {}, g)); };
  const Tensor inputs[] = {leaf({64, 24}), leaf({96, 24}), leaf({96}), leaf({24, 96}), leaf({24})};
  const auto gradients = [&](Device device) {
    const SaveActivations in_half(DType::bf16);
    std::vector<Tensor> x;
    for (const Tensor& t : inputs) x.push_back(require_grad(to(detach(t), device)));
    return grad(sum(square(mlp(x[0], x[1], x[2], x[3], x[4]))), {x[0], x[1], x[2], x[3], x[4]});
  };
  REQUIRE([] {
    const SaveActivations in_half(DType::bf16);
    return rounds_activation(DType::f32, 64 * 96);
  }());
  const auto here = gradients(kCpu), there = gradients(kCuda);
  for (size_t i = 0; i < here.size(); ++i) check_close(there[i], here[i], 0x1p-12);
}
