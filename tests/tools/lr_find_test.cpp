// isonorm lr-find: the range test of a training, given by options or by the file that train writes.
#include "tests/tools/small_run.h"

using nlohmann::json;

TEST_CASE("lr-find: rates, losses and a suggestion; it trains like a training with the same options") {
  const Folder f;
  const std::string find = "lr-find +small --dtype f64 --optimizer sgd --clip 0 --steps 200 --from 0.001 --to 100 ";
  const ChildResult r = f.succeeds(find + "-q --json @json --report @page");
  CHECK(r.out.starts_with("--lr "));
  const double lr = f.json("json")["suggested_rate"];
  CHECK((lr > 0.001 && lr < 100));
  const json losses = f.json("json")["points"];
  const std::string train =
      "train +small --form layer_norm --dtype f64 --optimizer sgd --clip 0 --warmup 0 --schedule constant --lr 0.001";
  CHECK(losses.dump().find(json(first_loss(f, train)).dump()) != std::string::npos);  // of the same weights and batch
  CHECK(f.gives(0, find + "-q").out == r.out);
  f.refuses("lr-find +small --from 2 --to 1", 2, "expected two rates above 0, the larger last");
  f.refuses("lr-find +small --lr 1", 2, "not expected: --lr 1");
}

TEST_CASE("lr-find: fewer than 11 steps are a usage error") {
  const Folder f;
  for (const char* steps : {"10", "2", "1"})
    f.refuses(std::string("lr-find +small --steps ") + steps, 2,
              std::string("--steps: ") + steps + " are too few for a range test, expected at least 11");
  f.succeeds("lr-find +small -q --steps 11");
}

TEST_CASE("lr-find --config: the training that train wrote; its rate, its steps and its outputs are not the test's") {
  const Folder f;
  f.succeeds(
      "train +small --form crms_norm --optimizer sgd --clip 0 --steps 20 --lr 0.5 --warmup 2 --evaluate-every 10 -q "
      "--checkpoint @c");
  const std::string given = f.succeeds("lr-find +small --form crms_norm --optimizer sgd --clip 0 -q --json @given").out;
  CHECK(f.succeeds("lr-find --config @c.toml -q --json @file").out == given);
  CHECK(f.json("file")["points"] == f.json("given")["points"]);
  CHECK(f.json("file")["points"].size() > 20);                               // 100 steps, unless the loss explodes
  CHECK(f.succeeds("lr-find --config @c.toml -q --steps 50").out != given);  // the command line wins
  write_text(f / "own.toml", "[train]\nwidth = 8\nspeed = 9\n");
  f.refuses("lr-find +small --config @own.toml", 2, "own.toml: there is no option speed");
  write_text(f / "own.toml", "[prove]\nwidth = 8\n");
  f.refuses("lr-find +small --config @own.toml", 2, "own.toml: there is no section prove, expected train");
}

TEST_CASE("lr-find --init: the first loss belongs to the weights in the file") {
  const Folder f;
  f.succeeds("train +small --dtype f64 --steps 40 --lr 0.01 -q --checkpoint @c");
  const std::string train = "train --data @text.txt --batch 4 --threads 1 --dtype f64 --init @c";
  f.succeeds("lr-find --data @text.txt --batch 4 --threads 1 --dtype f64 --init @c -q --json @json");
  CHECK(f.json("json")["points"][0]["loss"].get<double>() == Approx(first_loss(f, train)).epsilon(1e-12));
}
