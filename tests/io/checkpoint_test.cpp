// Checkpoints: round trips, and the files that are refused.
#include "io/checkpoint.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/support/catch.h"
#include "tests/support/same_bytes.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

Checkpoint example(const char* step = "17") {
  Checkpoint c;
  c.weights.add("blocks.0.fc.weight", from_vector<float>({1, -0.f, NAN, 4}, {2, 2}));
  c.weights.add("head.bias", from_vector<double>({0.1}, {1}));
  c.optimizer.add("head.bias", from_vector<double>({0.2}, {1}));  // the same name in both maps
  c.optimizer.add("step", from_vector<int64_t>({17}, {}));
  c.values = {{"step", step}, {"lr", exact(0.1)}, {"options", "--width 64"}, {"", "ä\n"}};
  return c;
}

Checkpoint parse(const std::vector<uint8_t>& b) { return load_checkpoint(memory_bytes(b, "x")); }

}  // namespace

TEST_CASE("checkpoint: everything comes back bit by bit") {
  const TempFolder f;
  const Checkpoint c = example();
  save_checkpoint(f / "c", c);
  const Checkpoint back = load_checkpoint(f / "c");
  CHECK(back.values == c.values);
  REQUIRE(back.weights.size() == 2);
  REQUIRE(back.optimizer.size() == 2);
  for (const auto& [name, t] : c.weights) CHECK(same_bytes(back.weights.at(name), t));
  for (const auto& [name, t] : c.optimizer) CHECK(same_bytes(back.optimizer.at(name), t));
  CHECK(back.weights.begin()->first == "blocks.0.fc.weight");

  save_checkpoint(f / "weights", {c.weights, {}, {}});
  CHECK(load_checkpoint(f / "weights").values.empty());
  CHECK_THROWS_WITH(save_checkpoint(f / "c", {{}, c.optimizer, c.values}), Contains("there are no weights to save"));
  CHECK(load_checkpoint(f / "c").values == c.values);
}

TEST_CASE("checkpoint: the one before the last is there when the last is damaged") {
  const TempFolder f;
  const auto save = [&](const char* step) { save_checkpoint(f / "c", example(step)); };
  const auto newest = [&] { return load_newest_checkpoint(f / "c"); };
  CHECK_THROWS_WITH(newest(), Contains("cannot open"));
  save("1");
  CHECK(newest().path == f / "c");
  for (const char* step : {"2", "3"}) {
    keep_previous_checkpoint(f / "c");
    save(step);
  }
  CHECK(newest().checkpoint.values.at("step") == "3");
  CHECK(load_checkpoint(f / "c.previous").values.at("step") == "2");

  std::filesystem::resize_file(f / "c", std::filesystem::file_size(f / "c") - 1);
  CHECK(newest().path == f / "c.previous");
  CHECK(newest().checkpoint.values.at("step") == "2");
  std::filesystem::resize_file(f / "c.previous", 20);
  CHECK_THROWS_WITH(newest(), Contains("/c: "));  // the error of the last checkpoint, not of the previous one
  std::filesystem::remove(f / "c.previous");
  CHECK_THROWS_WITH(newest(), Contains("/c: "));
}

TEST_CASE("checkpoint: if the path is a link, the previous checkpoint is next to the target") {
  const TempFolder f;
  std::filesystem::create_directory(f / "disk");
  std::filesystem::create_symlink("disk/c", f / "link");
  for (const char* step : {"1", "2"}) {
    keep_previous_checkpoint(f / "link");
    save_checkpoint(f / "link", example(step));
  }
  CHECK(std::filesystem::is_symlink(f / "link"));
  CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(f / "disk/c.previous")));
  std::filesystem::resize_file(f / "disk/c", 20);
  CHECK(load_newest_checkpoint(f / "link").path == f / "disk/c.previous");
  CHECK(load_newest_checkpoint(f / "link").checkpoint.values.at("step") == "1");
}

TEST_CASE("checkpoint: numbers keep their bits") {
  for (double x : {0.1, -0.0, 1e-320, 1e308, M_PI, -1 / 3.0, 0.0, std::numeric_limits<double>::infinity()}) {
    const double y = number_at({{"x", exact(x)}}, "x");
    CHECK(std::memcmp(&x, &y, sizeof x) == 0);
  }
  CHECK(std::isnan(number_at({{"x", exact(NAN)}}, "x")));
  CHECK(integer_at({{"n", std::to_string(INT64_MIN)}}, "n") == INT64_MIN);
  CHECK_THROWS_WITH(integer_at({}, "n"), Contains("no value 'n'"));
  for (const char* bad : {"", "1.5", "x", "1 ", " 1", "9223372036854775808"})
    CHECK_THROWS_WITH(integer_at({{"n", bad}}, "n"), Contains("value 'n' is '") && Contains("expected a whole number"));
  for (const char* bad : {"", "1.g", "1p", "1p99999"})
    CHECK_THROWS_WITH(number_at({{"n", bad}}, "n"), Contains("value 'n' is '"));
}

TEST_CASE("checkpoint: any damaged byte is noticed") {
  const TempFolder f;
  save_checkpoint(f / "c", example());
  const auto good = read_bytes(f / "c");
  for (size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] ^= 0x10;
    INFO("byte " << i << " of " << good.size());
    // The only harmless change: the padding at the end of the header may be other white space.
    const bool padding = i >= 8 && good[i] == ' ' && i + 8 >= size_t{8} + good[0] + 256 * size_t{good[1]};
    if (!padding) CHECK_THROWS_AS(parse(bad), Error);
  }
  for (size_t n = 0; n < good.size(); ++n)
    CHECK_THROWS_AS(parse({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)}), Error);
}

TEST_CASE("checkpoint: other files are refused in words") {
  const TempFolder f;
  TensorMap m;
  m.add("weights.x", from_vector<float>({1}, {1}));
  save_safetensors(f / "plain", m);
  CHECK_THROWS_WITH(load_checkpoint(f / "plain"),
                    Contains("plain: checkpoint: this safetensors file is not a checkpoint"));
  save_safetensors(f / "newer", m, {{"isonorm.checkpoint", "2"}});
  CHECK_THROWS_WITH(load_checkpoint(f / "newer"), Contains("version 2, expected 1"));
  save_safetensors(f / "unsigned", m, {{"isonorm.checkpoint", "1"}});
  CHECK_THROWS_WITH(load_checkpoint(f / "unsigned"), Contains("damaged"));
  CHECK_THROWS_WITH(load_checkpoint(f / "none"), Contains("none: cannot open"));
  Checkpoint c;
  c.weights.add("x", Tensor());
  CHECK_THROWS_WITH(save_checkpoint(f / "c", c), Contains("'weights.x' is undefined"));
}
