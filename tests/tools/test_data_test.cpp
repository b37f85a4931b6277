// The data of a test pass: --test-data, --test-share, and the whole of a file that the model was not trained on.
#include "autograd/grad_mode.h"
#include "tests/tools/small_run.h"

namespace {

struct Loss {
  double mean = 0;
  int64_t right = 0, count = 0;
};

// The loss of a model of bytes on a text, window by window: window k predicts bytes k context + 1 to (k + 1) context
// from those before them in the window.
Loss naive_loss(const std::string& file, const std::string& bytes, int64_t context) {
  const NoGrad no_grad;
  const auto model = training::load_model(file);
  const data::Alphabet alphabet = training::spec_of(SafetensorsFile(file)).alphabet;
  Loss loss;
  for (int64_t begin = 0; begin + 1 < std::ssize(bytes); begin += context) {
    const int64_t n = std::min(context, std::ssize(bytes) - 1 - begin);
    const Tensor x =
        alphabet.encode(std::string_view(bytes).substr(static_cast<size_t>(begin), static_cast<size_t>(n)));
    const Tensor logits = (*model)(from_vector(x.to_vector<int64_t>(), {1, n}));
    const std::vector<double> all = logits.to(DType::f64).to_vector<double>();
    const int64_t vocab = alphabet.size();
    for (int64_t t = 0; t < n; ++t) {
      const double* row = all.data() + t * vocab;
      double sum = 0;
      for (int64_t v = 0; v < vocab; ++v) sum += std::exp(row[v]);
      const int64_t target = alphabet.id(static_cast<uint8_t>(bytes[static_cast<size_t>(begin + t + 1)]));
      loss.mean += std::log(sum) - row[target];
      loss.right += std::max_element(row, row + vocab) - row == target;
      ++loss.count;
    }
  }
  loss.mean /= static_cast<double>(loss.count);
  return loss;
}

// f64, so that only the order of sums differs: some 1e3 terms of order 1.
void check_same(const nlohmann::json& json, const Loss& loss) {
  CHECK(json["predictions"] == loss.count);
  CHECK(json["right"] == loss.right);
  CHECK(json["loss"].get<double>() == Approx(loss.mean).epsilon(1e-12));
  CHECK(json["perplexity"].get<double>() == Approx(std::exp(loss.mean)).epsilon(1e-12));
}

}  // namespace

TEST_CASE("evaluate: all of a text that the model was not trained on, to its last byte, as a naive loop computes it") {
  const Folder f;
  f.succeeds("train +small --dtype f64 --steps 20 -q --checkpoint @c --ema 0.5 --ema-file @model");
  const std::string trained = read(f / "text.txt");
  for (const size_t size : {2u, 5u, 8u, 9u, 10u, 117u, 700u}) {  // of windows of 8
    INFO(size);
    write_text(f / "other", trained.substr(40, size));
    const std::string out = f.succeeds("evaluate @model --data @other --json @json").out;
    CHECK_THAT(out, Contains(text("other: a text of ", size,
                                  " bytes; all of it, since it is not the file of the training\n")));
    check_same(f.json("json"), naive_loss(f / "model", read(f / "other"), 8));
    CHECK(f.json("json")["bytes"] == size);
    CHECK(f.json("json")["tokens"] == size);
  }
  write_text(f / "other", "a");
  f.refuses("evaluate @model --data @other", 3, "other: there is nothing to test on");
  // The text of the training is known by what is in it, not by its name.
  write_text(f / "copy", trained);
  CHECK_THAT(f.succeeds("evaluate @model --data @copy --json @json").out,
             Contains("copy: a text of 800 bytes; the last 10 %, which the model was not trained on\n"));
  check_same(f.json("json"),
             naive_loss(f / "model", trained.substr(720, 73), 8));  // whole windows, as in the training's test passes
  CHECK(f.json("json")["predictions"] == 72);
  f.succeeds("evaluate @model --test-data @copy --json @json");
  check_same(f.json("json"), naive_loss(f / "model", trained, 8));
  const std::string said = ", but the model was trained on the first 90 % of the file\n";
  CHECK_THAT(f.succeeds("evaluate @model --test-data @copy").out, Contains("; all of it" + said));
  CHECK_THAT(f.succeeds("evaluate @model --data @copy --test-share 0.07").out, Contains("; the last 7 %\n"));
  f.refuses("evaluate @model --data @copy --test-share 0.5", 3,
            "copy: --test-share 0.5 is more than 0.1, the share that the training held out; to test on "
            "data of the training anyway, use --test-data");
  write_text(f / "text.txt", trained.substr(1));
  f.succeeds("evaluate @model --data @text.txt --json @json");
  check_same(f.json("json"), naive_loss(f / "model", trained.substr(1), 8));
  f.refuses("evaluate @model --data @copy --test-data @copy", 2, "--test-data excludes --data");
  f.refuses("evaluate @model --test-data @copy --test-share 0.5", 2, "--test-share requires --data");
}

TEST_CASE("evaluate: a text above the limit of train's own test passes, which says how much it takes") {
  const Folder f;
  std::string words;
  while (words.size() < 1'400'000) words += read(f / "text.txt");
  write_text(f / "long", words);
  f.succeeds("train +small --steps 1 -q --checkpoint @c");
  const std::string small = " --width 2 --heads 1 --context 64 --batch 64";
  const auto trained = f.succeeds("train +small --data @long --steps 1 --checkpoint @l --json @t" + small);
  CHECK_THAT(trained.err, Contains(text("a test pass predicts 131072 of ", words.size() / 10, " held-out tokens\n")));
  CHECK_THAT(trained.out, Contains(" of 131072 tokens)"));
  f.succeeds("evaluate @l --data @long --json @json");
  CHECK(f.json("json")["predictions"] == (words.size() / 10 - 1) / 64 * 64);
  // --test-data has the same limit. Nothing is said if the test pass takes the whole file.
  CHECK_THAT(f.succeeds("train +small --steps 1 --data @text.txt --test-data @long" + small + " --batch 4").err,
             Contains(text("a test pass predicts 131072 of ", words.size(), " held-out tokens\n")));
  CHECK_THAT(f.succeeds("train +small --steps 1 --test-data @text.txt").err, !Contains("a test pass predicts"));
}

TEST_CASE("train --test-data: all of --data is trained on, and the file is the test") {
  const Folder f;
  const std::string words = read(f / "text.txt");
  write_text(f / "train", words.substr(0, 600));
  write_text(f / "val", words.substr(600));
  const std::string train = "train +small --dtype f64 --data @train --steps 6 -q ";
  f.succeeds(train + "--test-data @val --checkpoint @c --json @trained");
  f.succeeds("evaluate @c --test-data @val --json @json");
  CHECK(f.json("trained")["test"]["loss"] == f.json("json")["loss"]);
  check_same(f.json("json"), naive_loss(f / "c", read(f / "val"), 8));
  CHECK_THAT(f.succeeds("evaluate @c --test-data @train").out,
             Contains("; all of it, but the model was trained on all of the file\n"));
  const std::string warns = "train: the model is trained on the data that it is tested on\n";
  CHECK_THAT(f.succeeds("train +small --steps 1 --data @train --test-data @train").err, Contains(warns));
  CHECK_THAT(f.succeeds("train +small --steps 1 --data @train --test-data @val").err, !Contains(warns));
  // --test-data takes nothing from the training: the weights equal the weights of a training without tests.
  f.succeeds(train + "--test-share 0 --checkpoint @none");
  f.succeeds(train + "--checkpoint @tenth");
  const auto head = [&](const char* file) {
    return load_checkpoint(f / file).weights.find("head.weight")->to_vector<double>();
  };
  CHECK(head("c") == head("none"));
  CHECK(head("c") != head("tenth"));
  f.refuses("evaluate @c --data @train", 3,
            "train: the model was trained on all of it; to test on it anyway, use --test-data");
  // A resumed training has the same tests.
  const std::string more = "train -q --threads 1 --data @train --steps 7 --extend --checkpoint @c";
  f.refuses(more, 3, "was trained with other test data: checksum sha256:");
  f.refuses(more + " --test-data @train", 3, "was trained with other test data: checksum sha256:");
  f.succeeds(more + " --test-data @val");
  CHECK_THAT(read(f / "c.toml"), Contains("test-data = ") && !Contains("test-share"));
  f.succeeds("train -q --config @c.toml --checkpoint @c --steps 8 --extend");
  f.refuses("train -q --threads 1 --data @train --checkpoint @none --test-data @val", 3, "checksum nothing");
  write_text(f / "val", "abQ");
  f.refuses(train + "--test-data @val", 3, "val: byte 81 at position 2 is none of the 7 ");
  f.refuses(train + "--test-data @val --test-share 0.2", 2, "--test-share and --test-data");
  f.refuses("train --model gpt -q --test-data @val", 2, "--test-data needs --data");
  f.refuses(train + "--test-data @none/x", 4, "none/x");
}

TEST_CASE("evaluate: data that only the weights of --init were trained on are no unseen data") {
  const Folder f;
  const std::string words = read(f / "text.txt");
  write_text(f / "a", words), write_text(f / "b", words.substr(0, 500)), write_text(f / "c", words.substr(0, 300));
  f.succeeds("train +small --steps 1 -q --data @a --checkpoint @on_a");
  const std::string train = "train -q --batch 4 --threads 1 ";
  f.succeeds(train + "--steps 1 --init @on_a --data @b --checkpoint @on_b");
  f.succeeds(train + "--steps 2 --extend --data @b --checkpoint @on_b");
  f.succeeds(train + "--steps 1 --init @on_b --data @c --checkpoint @on_c --ema 0.5 --ema-file @ema");
  f.succeeds("convert @on_c @converted --to crms_norm -q");
  const std::string said = "; all of it, but the weights that the training began with were trained on the file\n";
  for (const char* model : {"@on_c", "@ema", "@converted"})
    for (const char* data : {"@a", "@b"}) {
      INFO(model << data);
      CHECK_THAT(f.succeeds(text("evaluate ", model, " --data ", data)).out, Contains(said));
    }
  CHECK_THAT(f.succeeds("evaluate @on_c --data @c").out,
             Contains("; the last 10 %, which the model was not trained on\n"));
  CHECK_THAT(f.succeeds("evaluate @on_b --data @c").out,
             Contains("; all of it, since it is not the file of the training\n"));
  // The same data, of which a part is held out only now.
  f.succeeds("train +small --steps 1 -q --data @a --test-share 0 --checkpoint @whole");
  f.succeeds(train + "--steps 1 --init @whole --data @a --checkpoint @tenth");
  CHECK_THAT(f.succeeds("evaluate @tenth --data @a").out,
             Contains("; the last 10 %, but the weights that the training began with were trained on the file\n"));
}

TEST_CASE("train --test-share: the end of the text is held out, recorded, and used by evaluate") {
  const Folder f;
  f.succeeds(
      "train +small --dtype f64 --steps 3 -q --test-share 0.25 --checkpoint @c --ema 0.5 --ema-file @ema --json @t");
  f.succeeds("evaluate @ema --data @text.txt --json @json");  // the file of averages has the share, too
  CHECK(f.json("json")["predictions"] == 192);
  CHECK(f.json("json")["loss"] == f.json("t")["test"]["loss"]);
  f.refuses("train -q --threads 1 --data @text.txt --checkpoint @c --test-share 0.5", 3,
            "was trained with --test-share 0.25, not 0.5");
  f.refuses("train +small --test-share 1", 2, "--test-share: \"1\" is not a number from 0 to below 1");
  // A checkpoint of a version without these options is of a training with their defaults.
  f.succeeds("train +small --steps 3 --save-every 1 -q --checkpoint @old");
  Checkpoint old = load_checkpoint(f / "old");
  for (const char* name : {"test_share", "ids", "text"}) REQUIRE(old.values.erase(name) == 1);
  save_checkpoint(f / "old", old);
  f.succeeds("train -q --threads 1 --data @text.txt --steps 4 --extend --checkpoint @old");
}

TEST_CASE("pairs: test data have the bytes of the training, and errors name file and line") {
  const Folder f;
  const auto write = [&](const std::string& folder, const std::string& source, const std::string& target) {
    std::filesystem::create_directories(f / folder);
    write_text(f / folder + "/source.txt", source);
    write_text(f / folder + "/target.txt", target);
  };
  std::string source, target;
  for (int i = 0; i < 20; ++i) source += text("ab", "cde"[i % 3], "\n"), target += text("x", "yz"[i % 2], "\n");
  write("pairs", source, target);
  write("val", "ab\nea\ncc\n", "xy\nzz\ny\n");  // without d: its own alphabet would be another one
  const std::string train = "train +small --model translator --data @pairs --steps 3 -q ";
  f.succeeds(train + "--test-data @val --checkpoint @c --json @t");
  f.succeeds("evaluate @c --test-data @val --json @json");
  CHECK(f.json("json")["loss"] == f.json("t")["test"]["loss"]);
  CHECK(f.json("json")["predictions"] == 8);  // five bytes and three ends
  CHECK_THAT(f.succeeds("evaluate @c --data @val --json @json").out,
             Contains("val: 3 pairs; all of it, since it is not the file of the training\n"));
  CHECK(f.json("json")["predictions"] == 8);
  CHECK_THAT(f.succeeds("evaluate @c --test-data @pairs").out,
             Contains("pairs: 20 pairs; all of it, but the model was trained on all of the file\n"));
  f.refuses("evaluate @c", 2, "--data is needed: the model was trained on a folder of pairs");
  // A text with as many other bytes must not be read with the model's ids.
  write("other", "fg\nhi\n", "jk\nlm\n");
  f.refuses("evaluate @c --data @other", 3, "source.txt: line 1 has byte 102, which is none of the 8 bytes");
  write("val", "ab\n", "xQ\n");
  f.refuses(train + "--test-data @val", 3, "target.txt: line 1 has byte 81, which is none of the 8 bytes");
  write("val", "ab\n\u00e9\u00e9\u00e9\u00e9\n", "x\ny\n");
  f.refuses("train +small --model translator --data @val -q", 3,
            "source.txt: line 2 has 8 bytes, a context of 8 has place for 7 and an end");
}
