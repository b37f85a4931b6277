// Invalid ids and weights on a device: skipped at first, then reported once by the next wait, with the CPU's message.
#include "autograd/fused/linear_cross_entropy.h"
#include "core/kernels/checks.h"
#include "core/kernels/index.h"
#include "gpu/device.h"
#include "gpu/recorder.h"
#include "nn/linear.h"
#include "tests/support/device.h"
#include "tests/support/ops.h"
#include "tests/support/thrown.h"

using namespace isonorm;
using namespace isonorm::test;

namespace {

using Kind = gpu::Recorded::Kind;

// Returns the pending error message of a device, which clears it.
std::string told(Device device = kCuda) {
  return thrown([&] { gpu::synchronize(device); });
}

Tensor ids(const std::vector<int64_t>& v, const Dims& shape, Device device) {
  return to(from_vector(v, shape), device);
}

const std::vector<double> kTable{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
Tensor table(Device device) { return to(from_vector(kTable, {5, 2}), device); }

}  // namespace

TEST_CASE("an op's complaint is told by the next wait, in the CPU's words, once") {
  const auto check_op = [](const char* op, Tensor (*call)(Device)) {
    INFO(op);
    const Scope outer("model"), inner("layer");
    const std::string expected = thrown([&] { call(kCpu); });
    CHECK(expected.starts_with(text("model.layer: ", op, ": ")));
    gpu::synchronize(kCuda);  // so that no copy from the host is pending
    const gpu::Recorder recorder;
    Tensor kept;
    CHECK(thrown([&] { kept = call(kCuda); }).empty());
    CHECK(recorder.count(Kind::wait) == 0);
    CHECK(told() == expected);
    CHECK(told().empty());
  };
  check_op("embedding", [](Device d) { return embedding(table(d), ids({4, 0, 7, -1}, {2, 2}, d)); });
  check_op("index_select", [](Device d) { return index_select(table(d), 1, ids({0, 2}, {2}, d)); });
  check_op("gather", [](Device d) { return gather(table(d), 0, ids({4, -5, 5, 0}, {2, 2}, d)); });
  check_op("one_hot", [](Device d) { return one_hot(ids({1, 3}, {2}, d), 3); });
  check_op("cross_entropy", [](Device d) { return cross_entropy(table(d), ids({0, 1, 2, -100, 1}, {5}, d)); });
  check_op("linear_cross_entropy", [](Device d) {
    return linear_cross_entropy(table(d), table(d), {}, ids({0, 1, 5, -100, 9}, {5}, d));
  });
  check_op("multinomial", [](Device d) { return multinomial(to(tensor({1., 2., -0.5}), d), 1); });
  check_op("multinomial", [](Device d) { return multinomial(to(from_vector<double>({1, INFINITY, 0.5}, {3}), d), 1); });
  check_op("multinomial", [](Device d) {
    return multinomial(to(from_vector<double>({1, NAN, 0.5}, {3}), d), 1, true);
  });
  check_op("multinomial", [](Device d) { return multinomial(to(tensor({1., 0., 0.5}), d), 3); });
}

TEST_CASE("the first id outside is told, whatever the others are") {
  std::vector<int64_t> v(1000, 5);
  const auto check = [&](int64_t bound, std::optional<int64_t> allowed) {
    const auto run = [&](Device d) {
      kernels::check_ids.on(d, ids(v, {static_cast<int64_t>(v.size())}, d),
                            {.op = "find", .what = "a list", .bound = bound, .allowed = allowed, .shape = {10, 100}});
    };
    run(kCuda);
    const std::string found = told();
    CHECK(found == thrown([&] { run(kCpu); }));
    return found;
  };
  CHECK(check(6, {}).empty());
  CHECK(check(5, {}) == "find: id 5 at element 0 of shape [10, 100] is outside of a list of size 5");
  CHECK(check(5, 5).empty());
  v[700] = -1, v[300] = 6;
  CHECK(check(6, {}) == "find: id 6 at element 300 of shape [10, 100] is outside of a list of size 6");
  CHECK(check(6, 6) == "find: id -1 at element 700 of shape [10, 100] is outside of a list of size 6");
  CHECK(check(0, {}).find("id 5 at element 0") != std::string::npos);
  for (int64_t alone : {999, 0, 999, 256, 512}) {  // in any block, whichever finishes last
    v.assign(1000, 5);
    v[static_cast<size_t>(alone)] = 9;
    CHECK(check(6, {}).find(text("id 9 at element ", alone)) != std::string::npos);
  }
}

TEST_CASE("of several complaints the first is told, and a later one after it") {
  (void)embedding(table(kCuda), ids({0, 8}, {2}, kCuda));
  (void)embedding(table(kCuda), ids({9, 0}, {2}, kCuda));
  CHECK(told() == "embedding: id 8 at element 1 of shape [2] is outside of the table of size 5");
  CHECK(told().empty());
  (void)embedding(table(kCuda), ids({9, 0}, {2}, kCuda));
  CHECK(told() == "embedding: id 9 at element 0 of shape [2] is outside of the table of size 5");
}

TEST_CASE("each device has its complaints, and a copy to the host tells them", "[two devices]") {
  const Tensor rows = embedding(table(kCuda1), ids({5}, {1}, kCuda1));
  CHECK(told(kCuda).empty());
  CHECK(thrown([&] { (void)rows.to_vector<double>(); }) ==
        "embedding: id 5 at element 0 of shape [1] is outside of the table of size 5");
  CHECK(rows.to_vector<double>() == std::vector<double>{0, 0});
}

// The emulation aborts the program if a kernel accesses memory outside of a block.
TEST_CASE("ids outside of the table are skipped") {
  const std::vector<int64_t> wrong{1, 5, int64_t{1} << 60, -1, 4, 1, std::numeric_limits<int64_t>::min(), 0};
  const std::vector<bool> right{true, false, false, false, true, true, false, true};
  for (DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (int64_t width : {1, 2, 16}) {
      INFO(text(dtype, ' ', width));
      Generator g{.seed = 3};
      const Tensor weight = randn({5, width}, {}, g).to(dtype), dy = randn({8, width}, {}, g).to(dtype);
      // Expected values: on the CPU, with the valid ids only.
      std::vector<int64_t> kept;
      std::vector<int64_t> at;
      for (size_t i = 0; i < right.size(); ++i)
        if (right[i]) kept.push_back(wrong[i]), at.push_back(static_cast<int64_t>(i));
      const Tensor places = from_vector(at, {std::ssize(at)}), ok = from_vector(kept, {std::ssize(kept)});
      const Tensor expected = empty({5, width}, {acc_dtype(dtype)});
      kernels::add_rows.on(kCpu, {1, 5, width}, expected, index_select(dy, 0, places), ok);

      Tensor leaf = require_grad(to(weight, kCuda));
      const Tensor y = embedding(leaf, ids(wrong, {8}, kCuda));
      backward(y, to(dy, kCuda));
      CHECK(told().find("id 5 at element 1") != std::string::npos);
      const Tensor rows = to(y, kCpu);
      check_close(index_select(rows, 0, places), embedding(weight, ok), 0);
      CHECK(sum(abs(rows.to(DType::f64))).item() ==
            sum(abs(index_select(rows, 0, places).to(DType::f64))).item());  // the other rows are zero
      check_close(to(leaf.grad(), kCpu), expected.to(dtype), 0);

      if (width < 2) continue;
      // gather along the first dimension, and its gradient.
      leaf = require_grad(to(weight, kCuda));
      std::vector<int64_t> index;
      for (int64_t id : wrong) index.insert(index.end(), static_cast<size_t>(width), id);
      const Tensor z = gather(leaf, 0, ids(index, {8, width}, kCuda));
      backward(z, to(dy, kCuda));
      CHECK(told().find("gather: id 5 at element") != std::string::npos);
      check_close(to(z, kCpu), rows, 0);
      check_close(to(leaf.grad(), kCpu), expected.to(dtype), 0);
    }
}

TEST_CASE("ids that are outside are not taken for others with the same lowest digit") {
  constexpr int64_t kIds = 90, kRows = 5;
  Generator g{.seed = 6};
  const Tensor dy = randn({kIds, 4}, {}, g);
  std::vector<int64_t> all, kept, at;
  for (int64_t j = 0; j < kIds; ++j) {
    all.push_back(j * 7 % kRows + (j % 3 - 1) * 256);
    if (j % 3 == 1) kept.push_back(all.back()), at.push_back(j);
  }
  const Tensor here = empty({kRows, 4}), there = empty({kRows, 4}, {DType::f32, kCuda});
  kernels::add_rows.on(kCpu, {1, kRows, 4}, here, index_select(dy, 0, from_vector(at, {std::ssize(at)})),
                       from_vector(kept, {std::ssize(kept)}));
  kernels::add_rows.on(kCuda, {1, kRows, 4}, there, to(dy, kCuda), ids(all, {kIds}, kCuda));
  check_close(to(there, kCpu), here, 0);
}

TEST_CASE("a target that is outside has no loss and no gradient") {
  Generator g{.seed = 4};
  const Tensor logits = randn({4, 6}, {}, g);
  for (double smoothing : {0.0, 0.1}) {
    const CrossEntropyOptions o{.label_smoothing = smoothing, .reduction = Reduction::none};
    const auto run = [&](Device d, std::vector<int64_t> targets) {
      const Tensor x = require_grad(to(detached::clone(logits), d));
      const Tensor loss = cross_entropy(x, ids(targets, {4}, d), o);
      backward(sum(loss));
      return std::vector<Tensor>{loss, x.grad()};
    };
    const auto there = run(kCuda, {2, 6, int64_t{1} << 61, -1});
    CHECK(told() == "cross_entropy: id 6 at element 1 of shape [4] is outside of the classes of size 6");
    const auto here = run(kCpu, {2, -100, -100, -100});
    for (size_t i = 0; i < 2; ++i) check_close(to(there[i], kCpu), here[i], 64 * epsilon(DType::f32));
  }
}

TEST_CASE("positions and the indices of topk are not looked at") {
  nn::Embedding positions(6, 4);
  positions.to(kCuda);
  const Tensor x = table(kCuda);
  gpu::Recorder recorder;
  (void)positions.first(5);
  (void)topk(x, 2, 0);
  for (const gpu::Recorded& r : recorder.all()) CHECK(r.name.find("check_ids") == std::string::npos);
  CHECK(recorder.count(Kind::wait) == 0);
  CHECK_THROWS_WITH(positions.first(7), Catch::Matchers::Contains("embedding: 7 rows of a table of 6"));
}
