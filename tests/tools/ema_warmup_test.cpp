// train --ema: the decay grows to its value; verbs that read a checkpoint say that its weights are not the averages.
#include "tests/tools/small_run.h"

namespace {

const std::string kTrain = "train +small --dtype f64 -q --schedule constant --warmup 0 --lr 0.01 ";

using Values = std::vector<double>;

// All weights, one after the other, in the order of their names.
Values values_of(const TensorMap& weights) {
  Values all;
  for (const auto& [name, tensor] : weights)
    for (const double x : tensor.to_vector<double>()) all.push_back(x);
  return all;
}

Values weights_of(const std::string& file) { return values_of(load_checkpoint(file).weights); }

// The test loss of a training of 60 steps.
double test_loss(const Folder& f, const std::string& options) {
  f.succeeds("train +small -q --lr 0.01 --steps 60 --json @json " + options);
  return f.json("json")["test"]["loss"];
}

}  // namespace

TEST_CASE("train --ema: update t = 1, 2, ... has the decay min(decay, (1 + t) / (10 + t))") {
  const Folder f;
  std::vector<Values>
      w;  // after step 0, 1, ...: the rate is constant, so a shorter training is the beginning of a longer
  f.succeeds("train +small --dtype f64 -q --warmup 0 --lr 1e-300 --weight-decay 0 --steps 1 --checkpoint @0");
  w.push_back(weights_of(f / "0"));
  constexpr int kSteps = 6;
  for (int t = 1; t <= kSteps; ++t) {
    const std::string c = std::to_string(t);
    f.succeeds(kTrain + "--steps " + c + " --ema 0.35 --ema-file @average --checkpoint @" + c);
    w.push_back(weights_of(f / c));
    Values average = w[0];
    for (int u = 1; u <= t; ++u) {
      const double decay = std::min(0.35, (1.0 + u) / (10 + u));  // 2/11, 3/12, 4/13, 0.35 from u = 4 on
      for (size_t i = 0; i < average.size(); ++i) average[i] = decay * average[i] + (1 - decay) * w[u][i];
    }
    const Values found = values_of(training::load_model(f / "average")->state_dict());
    REQUIRE(found.size() == average.size());
    for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(average[i]).epsilon(1e-13).margin(1e-15));
    std::filesystem::remove(f / "average");
  }
  CHECK(load_checkpoint(f / "6").values.at("ema_warmup") == "true");
}

TEST_CASE("train --ema 0.999: after 60 steps the test is of trained weights") {
  const Folder f;
  const double untrained = test_loss(f, "--steps 1 --lr 1e-30"), trained = test_loss(f, ""),
               average = test_loss(f, "--ema 0.999"), constant = test_loss(f, "--ema 0.999 --no-ema-warmup");
  REQUIRE(trained < untrained - 0.1);
  CHECK(average < untrained - 0.8 * (untrained - trained));
  CHECK(constant > untrained - 0.2 * (untrained - trained));  // 0.999^60 = 0.94 of the average are the first weights
}

TEST_CASE("train --ema: an older checkpoint and its log go on with a constant decay") {
  const Folder f;
  const std::string train = kTrain + "--steps 6 --ema 0.5 --save-every 3 ";
  f.succeeds(train + "--no-ema-warmup --checkpoint @c --log @log --ema-file @constant");
  CHECK(load_checkpoint(f / "c").values.at("ema_warmup") == "false");
  CHECK(contains(read(f / "c.toml"), "no-ema-warmup = true\n"));
  Checkpoint older = load_checkpoint(f / "c.previous");
  REQUIRE(integer_at(older.values, "step") == 3);
  REQUIRE(older.values.erase("ema_warmup") == 1);
  save_checkpoint(f / "older", older);
  const std::string log = read(f / "log"), entry = "\"ema_warmup\":false,";
  REQUIRE(contains(log, entry));
  write_text(f / "log", std::string(log).erase(log.find(entry), entry.size()));

  f.refuses(train + "--ema-warmup=true --checkpoint @older", 2, "not expected: --ema-warmup=true");
  f.gives(3, train + "--no-ema-warmup=false --checkpoint @older");
  f.succeeds(train + "--checkpoint @older --log @log --ema-file @average");
  CHECK(read(f / "average") == read(f / "constant"));
  CHECK(weights_of(f / "older") == weights_of(f / "c"));
  std::vector<int> steps;
  for (const nlohmann::json& line : f.lines("log"))
    if (line.contains("lr")) steps.push_back(line["step"]);
  CHECK(steps == std::vector<int>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("train --ema: readers of the checkpoint are told that the test passes used the average") {
  const Folder f;
  const std::string trained =
      f.succeeds("train +small -q --steps 30 --lr 0.05 --ema 0.9 --checkpoint @c --ema-file @averages").out;
  f.succeeds("train +small -q --steps 3 --checkpoint @plain");
  const std::string told =
      "these are the weights of the last step, not the averages that the test passes of isonorm train "
      "--ema 0.9 used; isonorm train --ema-file FILE writes the averages\n";
  for (const std::string line : {"evaluate IN --data @text.txt", "sample IN abc -q --length 5", "export IN @out.onnx",
                                 "convert IN @out --to crms_norm -q"}) {
    INFO(line);
    const auto err = [&](const char* file) {
      return f.succeeds(std::string(line).replace(line.find("IN"), 2, file)).err;
    };
    CHECK_THAT(err("@c"), Contains("isonorm " + line.substr(0, line.find(' ')) + ": " + f / "c" + ": " + told));
    CHECK_THAT(err("@averages"), !Contains("averages that"));
    CHECK_THAT(err("@plain"), !Contains("averages that"));
  }
  // train prints the loss of the averages last. The loss of the weights is another number.
  const auto line_of = [&](const char* file) {
    const std::string out = f.succeeds(text("evaluate ", file, " --data @text.txt")).out;
    const size_t begin = out.find("held-out loss ");  // after how the data were read
    return out.substr(begin, out.find('\n', begin) - begin);
  };
  CHECK_THAT(trained, Contains(line_of("@averages")));
  CHECK(line_of("@c") != line_of("@averages"));
}
