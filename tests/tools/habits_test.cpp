// Habits of trainers: epochs, the best checkpoint, patience, times, tables of numbers, a file of options.
#include "tests/tools/small_run.h"

using nlohmann::json;

namespace {

const std::string kTrain = "train +small --dtype f64 --lr 0.2 --schedule constant --warmup 0 ";

// The cells of a CSV file, row by row.
std::vector<Words> rows(const std::string& path) {
  std::vector<Words> all;
  std::istringstream lines(read(path));
  for (std::string line; std::getline(lines, line);) {
    Words& row = all.emplace_back();
    std::istringstream cells(line + ",");
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
  }
  return all;
}

// The test losses of a log by step.
std::map<int, double> tests_of(const Folder& f, const std::string& log) {
  std::map<int, double> losses;
  for (const json& line : f.lines(log))
    if (line.contains("evaluation")) losses[line["evaluation"]["step"]] = line["evaluation"]["loss"];
  return losses;
}

}  // namespace

TEST_CASE("train --epochs: a number of passes over the tokens; excludes --steps") {
  const Folder f;  // 800 bytes, of which 720 are shown: 22.5 batches of 4 rows of 8
  f.succeeds(kTrain + "--epochs 1.5 -q --checkpoint @c");
  CHECK(load_checkpoint(f / "c").values.at("steps") == "34");
  CHECK(integer_at(load_checkpoint(f / "c").values, "step") == 34);
  f.succeeds(kTrain + "--epochs 1.5 -q --checkpoint @c");
  f.refuses(kTrain + "--epochs 2 -q --checkpoint @c", 3, "was trained with --steps 34, not 45; --extend");
  f.refuses(kTrain + "--epochs 2 --steps 3", 2, "--steps excludes --epochs");
  for (const char* word : {"0", "-1", "nan", "inf", "x"})
    f.refuses(kTrain + "--epochs " + word, 2, text("--epochs: \"", word, "\" is not a number above 0"));
  f.refuses(kTrain + "--epochs 1e30", 3, "--epochs");
}

TEST_CASE("train --best: the checkpoint of the least test loss, wherever the training was interrupted") {
  const Folder f;
  const std::string train = kTrain + "--steps 240 --evaluate-every 7 ";  // whose losses go up and down
  f.succeeds(train + "-q --log @log --best @best --checkpoint @c --json @json");
  const auto losses = tests_of(f, "log");
  const auto least = std::ranges::min_element(losses, {}, [](const auto& l) { return l.second; });
  const Checkpoint best = load_checkpoint(f / "best");
  CHECK(integer_at(best.values, "step") == least->first);
  REQUIRE(least->first < 240);  // else it were the last
  CHECK(f.json("json")["best"]["loss"] == least->second);
  f.succeeds("evaluate @best --data @text.txt --json @tested");
  CHECK(f.json("tested")["loss"] == Approx(least->second).epsilon(1e-14));
  f.succeeds("train --data @text.txt --threads 1 -q --checkpoint @best");  // it can be gone on with
  CHECK(load_checkpoint(f / "best").weights.at("head.weight").to_vector<double>() ==
        load_checkpoint(f / "c").weights.at("head.weight").to_vector<double>());

  f.succeeds(train + "-q --best @whole_best --checkpoint @whole");
  f.gives(130, train + "--best @part_best --checkpoint @part --save-every 5", {.interrupt_after = "step 84/"});
  f.succeeds(train + "-q --best @part_best --checkpoint @part");
  CHECK(read(f / "part") == read(f / "whole"));
  CHECK(read(f / "part_best") == read(f / "whole_best"));
}

TEST_CASE("train --patience: ends with 0 after N test passes without a smaller loss, and reports it") {
  const Folder f;
  const std::string train = kTrain + "--steps 2000 --evaluate-every 5 ";
  const ChildResult r = f.succeeds(train + "--patience 3 -q --log @log --checkpoint @c --json @json");
  const auto losses = tests_of(f, "log");
  double best = 1e9;
  int since = 0, end = 0, at = 0;
  for (const auto& [step, loss] : losses) {
    since = loss < best ? 0 : since + 1;
    if (loss < best) best = loss, at = step;
    if (since == 3 && end == 0) end = step;
  }
  REQUIRE(end > 0);
  CHECK(losses.rbegin()->first == end);
  CHECK(integer_at(load_checkpoint(f / "c").values, "step") == end);
  CHECK(contains(r.out, std::to_string(end) + " of 2000 steps, since 3 test passes had no loss below "));
  CHECK(contains(r.out, "that after step " + std::to_string(at)));
  // Once more it has ended already; the command that it prints stops there, too; gone on with it ends with the same
  // file.
  const std::string before = read(f / "c");
  CHECK(f.succeeds(train + "--patience 3 -q --checkpoint @c").out == r.out);
  CHECK(read(f / "c") == before);
  CHECK(f.succeeds(f.json("json")["command"].get<std::string>().substr(8) + " -q").out == r.out);
  f.succeeds(train + "--patience 3 -q --save-every 20 --checkpoint @part");
  REQUIRE(integer_at(load_checkpoint(f / "part.previous").values, "step") < end);
  std::filesystem::rename(f / "part.previous", f / "earlier");
  f.succeeds(train + "--patience 3 -q --checkpoint @earlier");
  CHECK(read(f / "earlier") == before);
  // More patience goes on.
  f.succeeds(train + "--patience 1000 -q --checkpoint @c");
  CHECK(integer_at(load_checkpoint(f / "c").values, "step") > end);
  f.refuses(kTrain + "--patience 3", 2, "--patience needs --evaluate-every");
  f.refuses(kTrain + "--best @b", 2, "--best needs --evaluate-every");
}

TEST_CASE("train --best: the best loss is kept through a part of the training without --best") {
  const Folder f;
  const std::string train = kTrain + "-q --checkpoint @c --extend ";
  f.succeeds(kTrain + "-q --checkpoint @c --steps 20 --evaluate-every 5 --best @best");
  const std::string tests = load_checkpoint(f / "c").values.at("tests");
  f.succeeds(train + "--steps 22");
  CHECK(load_checkpoint(f / "c").values.at("tests") == tests);
}

TEST_CASE("train --best: a missing file, or another training's, is written by the first test pass after a resumption") {
  const Folder f;
  const std::string train = kTrain + "-q --checkpoint @c --extend --evaluate-every 1 ";
  f.succeeds(train.substr(0, train.find("--extend")) + "--steps 5 --evaluate-every 1 --best @first");
  Checkpoint c = load_checkpoint(f / "c");
  c.values["tests"] = "0.5 3 2 5";  // less than any later loss
  save_checkpoint(f / "c", c);
  std::filesystem::copy_file(f / "c", f / "copy");
  std::filesystem::copy_file(f / "first", f / "other");  // which has another loss
  c = load_checkpoint(f / "first");
  c.values["tests"] = "0.5 3 0 3";
  save_checkpoint(f / "first", c);
  const std::string first = read(f / "first");
  f.succeeds(train + "--steps 9 --best @first");
  CHECK(read(f / "first") == first);
  CHECK(load_checkpoint(f / "c").values.at("tests") == "0.5 3 5 8");
  std::filesystem::rename(f / "copy", f / "c");
  f.succeeds(train + "--steps 9 --best @other --log @log");
  const auto losses = tests_of(f, "log");
  const auto least = std::ranges::min_element(losses, {}, [](const auto& l) { return l.second; });
  CHECK(integer_at(load_checkpoint(f / "other").values, "step") == least->first);
  CHECK(losses.begin()->first == 5);  // the step that it goes on after is tested once more
  CHECK(f.run("train --data @text.txt --threads 1 -q --checkpoint @other").code == 0);
}

TEST_CASE("train --save-every: a time") {
  const Folder f;
  f.gives(130, kTrain + "--steps 100000 --save-every 0.01s --checkpoint @c", {.interrupt_after = "step 20000/"});
  CHECK(std::filesystem::exists(f / "c.previous"));  // so there were two before the end
  f.succeeds(kTrain + "--steps 10 --save-every 1h -q --checkpoint @d");
  CHECK_FALSE(std::filesystem::exists(f / "d.previous"));
  for (const char* wrong : {"10d", "-1", "m", "1e3s", "0s"})
    f.refuses(kTrain + "--save-every=" + wrong, 2,
              text(wrong, "\" is not a number of steps, or a time such as 30s, 10m or 2h"));
}

TEST_CASE("train --log FILE.csv: a row per step and test pass; one training, cut at its resumption") {
  const Folder f;
  const std::string train = kTrain + "--steps 400 --evaluate-every 20 -q ";
  f.succeeds(train + "--log @l.csv --checkpoint @c");
  f.succeeds(train + "--log @l.jsonl");
  const auto table = rows(f / "l.csv");
  REQUIRE(table.size() == 1 + 400 + 20);
  CHECK(table[0] == Words{"step", "lr", "loss", "gradient_norm", "seconds", "test_loss", "test_accuracy", "test_right",
                          "test_predictions"});
  size_t row = 1;
  for (const json& line : f.lines("l.jsonl")) {
    if (line.contains("lr")) {
      CHECK(std::stoi(table[row][0]) == line["step"]);
      CHECK(std::stod(table[row][1]) == line["lr"]);
      CHECK(std::stod(table[row][2]) == line["loss"]);
      CHECK(std::stod(table[row++][3]) == line["gradient_norm"]);
    } else if (line.contains("evaluation")) {
      CHECK(table[row][1].empty());
      CHECK(std::stod(table[row++][5]) == line["evaluation"]["loss"]);
    }
  }
  f.refuses(train + "--log @l.csv", 3, "has rows of a training; a CSV log is for one training: choose another file");
  f.refuses(train + "--log @text.txt.csv --data @none", 4, "none");
  write_text(f / "foreign.csv", "a,b\n1,2\n");
  f.refuses(train + "--log @foreign.csv", 3, "this is not a log");

  const std::string part = kTrain + "--steps 400 --evaluate-every 20 --log @p.csv --checkpoint @p ";
  f.gives(130, part, {.interrupt_after = "step 100/"});
  std::filesystem::copy_file(f / "p", f / "p40");
  write_text(f / "p.csv", read(f / "p.csv") + "399,0.1,0.2,,1,,,,\n400,0.0");  // behind the checkpoint, and cut off
  f.succeeds(part + "-q --report @page");
  const auto again = rows(f / "p.csv");
  REQUIRE(again.size() == table.size());
  for (size_t i = 0; i < again.size(); ++i)
    for (const size_t column : {0, 1, 2, 3, 5, 6, 7, 8}) CHECK(again[i][column] == table[i][column]);
  CHECK(contains(read(f / "page"), "earlier steps are from the log"));
}

TEST_CASE(
    "train --config: options from a file, after the command line's; the file of a checkpoint repeats the training") {
  const Folder f;
  const std::string train = kTrain + "--steps 12 --affine --no-bias --no-decay **.norm1.*,head.* -q ";
  f.succeeds(train + "--checkpoint @c --json @json");
  const std::string again = "train -q --config @c.toml ";
  f.succeeds(again + "--json @again");
  CHECK(f.json("again")["options"] == f.json("json")["options"]);
  CHECK(f.json("again")["course"]["losses"] == f.json("json")["course"]["losses"]);
  f.succeeds(again + "--checkpoint @d");
  CHECK(read(f / "d") == read(f / "c"));
  CHECK(read(f / "d.toml") == read(f / "c.toml"));
  // Going on with what the file says writes the same file, even where little was given.
  std::filesystem::copy_file(f / "c", f / "e");
  f.succeeds("train -q --data @text.txt --checkpoint @e --steps 20 --extend");
  CHECK(contains(read(f / "e.toml"), "no-bias = true\n"));
  CHECK(contains(read(f / "e.toml"), "steps = 20\n"));

  f.succeeds(again + "--lr 0.5 --epochs 1 --json @other");
  CHECK(f.json("other")["options"]["lr"] == 0.5);
  CHECK(f.json("other")["options"]["steps"] == 23);
  f.refuses(again + "--lr 0.5 --checkpoint @c", 3, "was trained with --lr 0.2, not 0.5");

  const auto refused = [&](const std::string& lines, const std::string& says, int code = 2) {
    write_text(f / "x.toml", lines);
    f.refuses("train +small -q --config @x.toml --steps 1", code, says);
  };
  refused("lrr = 0.5\n", "x.toml: there is no option lrr (is --lr meant?)");
  refused("wiidth = 8\n", "x.toml: there is no option wiidth (is --width meant?)");
  refused("config = \"x\"\n", "--config cannot be set in a config file, only on the command line");
  refused("lr = \"fast\"\n", "--lr: \"fast\" is not a number above 0");
  refused("affine = \"maybe\"\n", "affine");
  refused("patience = 1.5\nevaluate-every = 3\n", "patience");
  refused("[prove]\nlr = 0.5\n", "there is no section prove, expected train");
  for (const std::string line :
       {"lr", "q", "affine", "q =", "; lr = 0.5", "width = 8 9", "lr = 0.5 warmup = 3", "[train", "width = eight",
        "data = \"a", "data = \"\\q\"", "data = \"\xff\"", "width = 9"})
    refused("width = 8\n\n# two lines\n" + line + "\nlr = 0.5\n", "x.toml: line 4: ");
  refused("no-decay = [\"a\"\nlr = 0.5\n", "x.toml: line 2: ");
  refused("-- = 3\n", "there is no option --");
  refused("model.width = 8\n", "there is no section model, expected train");
  refused("[[train]]\nlr = 0.5\n", "there is no option train");
  refused("no-decay = [[\"a\"]]\n", "no-decay is an array in an array");
  refused("no-decay = [{a = 1}]\n", "no-decay is a table, which no option is");
  refused("data = 2026-11-28\n", "data is a time, which no option is");
  refused("no-bias = true\nno_bias = true\n", "no_bias is there twice");
  refused("q = 1\n", "there is no option q");
  for (const char* empty : {"[]", "\"\""})
    refused(text("affine = ", empty, "\n"), "--affine: \"\" is not true or false");
  refused("json = \"a\\u0000b\"\n", "json has a character 0");
  f.refuses("train -q --config @none", 4, "none: cannot open");
  write_text(
      f / "y.toml",
      "# a comment\r\n[train]\nlr=0.5#fast\n\"no_bias\"= true\nno-decay = [\n \"head.*\", # one\n'**.weight',\n]\n\n");
  f.succeeds("train +small -q --config @y.toml --steps 1 --json @y");
  CHECK(f.json("y")["options"]["lr"] == 0.5);
  CHECK(f.json("y")["options"]["bias"] == false);
  CHECK(f.json("y")["options"]["no_decay"] == "head.*,**.weight");

  // Text of quotes and lines; what C++ reads as a number and TOML does not, or as another one; bytes that are no UTF-8.
  const auto repeated = [&](const std::string& name, const std::string& more) {
    std::filesystem::copy_file(f / "text.txt", f / name);
    for (const char* kept : {"odd", "same"}) std::filesystem::remove(f / kept);
    Words odd = f.words("train +small -q --steps 1 --checkpoint @odd " + more);
    *(std::ranges::find(odd, f / "text.txt")) = f / name;
    REQUIRE(run_child(odd).code == 0);
    const ChildResult r = f.run("train -q --config @odd.toml --checkpoint @same");
    return r.code == 0 && read(f / "same") == read(f / "odd") ? "same" : r.err;
  };
  CHECK(repeated("a#b \"c\" \\ \t'\x1b \x7f \u00e9", "--seed 18446744073709551615") == "same");
  CHECK(repeated("\"\"\"\n'''", "--seed 9223372036854775808") == "same");
  CHECK(repeated("1e5", "--seed 9223372036854777856 --weight-decay=-0") == "same");
  CHECK(contains(repeated("\xff", ""), "odd.toml: line "));
}

TEST_CASE("train begins with a description of the training, unless it is quiet") {
  const Folder f;
  const ChildResult r = f.succeeds("train +small --steps 1 --dtype f64");
  CHECK(contains(r.err, "tensors of f64"));
  CHECK(contains(r.err, "qkv"));
  CHECK(f.succeeds("train +small --steps 1 -q").err.empty());
}

TEST_CASE("train --tensorboard: an event file for each start; a folder that cannot be made is refused") {
  const Folder f;
  f.succeeds(kTrain + "--steps 3 -q --tensorboard @runs/first/one --checkpoint @c");  // with its parents
  f.succeeds(kTrain + "--steps 6 -q --tensorboard @runs/first/one --checkpoint @c --extend");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(f / "runs/first/one")) {
    CHECK(entry.path().filename().string().starts_with("events.out.tfevents."));
    CHECK(contains(read(entry.path()), "train/loss"));
    ++files;
  }
  CHECK(files == 2);
  f.refuses(kTrain + "--tensorboard @c/runs", 4, "c/runs: cannot be made a folder");
  for (const std::string folder : {"@new/d", "@new/d/runs"})
    f.refuses(kTrain + "--checkpoint @new/d --tensorboard " + folder, 2, "new/d a file");
  CHECK_FALSE(std::filesystem::exists(f / "new"));
}

TEST_CASE("train --beta1, --min-lr, --no-decay: what does not fit is refused") {
  const Folder f;
  f.refuses("train +small -q --optimizer sgd --beta2 0.9", 3, "--beta2: the optimizer sgd does not have this setting");
  f.refuses("train +small -q --beta1 1", 2, "--beta1: \"1\" is not a number from 0 to below 1");
  f.refuses("train +small -q --lr 0.1 --min-lr 0.2", 2, "--min-lr: 0.2 is above --lr 0.1");
  f.refuses("train +small -q --schedule constant --min-lr 0.0001", 2, "--schedule constant has no other rate");
  f.refuses("train +small -q --random-flip", 2, "--random-flip requires --model vit");
  f.refuses("train +small -q --random-crop 2", 2, "--random-crop requires --model vit");
  f.refuses("train +small -q --mixup 0.2", 2, "--mixup requires --model vit");
  f.refuses("train --model vit -q --mixup -1", 2, "--mixup: \"-1\" is not a number from 0 on");
  f.refuses("train +small -q --no-decay nothing.*", 3, "no_decay: no parameter is called 'nothing.*'");
  f.succeeds(
      "train +small -q --steps 4 --lr 0.1 --min-lr 0.05 --warmup 0 --schedule linear --beta2 0.9 --log @log "
      "--checkpoint @c");
  CHECK(f.lines("log")[4]["lr"] == Approx(0.1 - 0.05 * 0.75));
  CHECK(load_checkpoint(f / "c").values.at("beta2") == "0.9");
  CHECK(load_checkpoint(f / "c").values.at("beta1") == "0.9");
  f.refuses("train +small -q --beta1 0.5 --checkpoint @c", 3, "was trained with --beta1 0.9, not 0.5");
}

TEST_CASE("completion and man: scripts and pages name every verb and option") {
  const Folder f;
  const std::string bash = f.succeeds("completion bash").out, zsh = f.succeeds("completion zsh").out;
  for (const char* word : {"train", "prove", "lr-find", "--evaluate-every", "--no-norm-bias"}) {
    CHECK(contains(bash, word));
    CHECK(contains(zsh, word));
  }
  CHECK(contains(bash, "train,--model) words=\"vit gpt translator\" ;;"));
  write_text(f / "script", bash +
                               "COMP_WORDS=(isonorm train --sched); COMP_CWORD=2; _isonorm; echo ${COMPREPLY[0]} > " +
                               (f / "said") + "\n");
  REQUIRE(std::system(("bash " + (f / "script")).c_str()) == 0);
  CHECK(read(f / "said") == "--schedule\n");
  const std::string page = f.succeeds("man train").out;
  CHECK(page.starts_with(".TH isonorm-train 1\n"));
  CHECK(contains(page, ".B \\-\\-evaluate\\-every N\n"));
  CHECK(contains(f.succeeds("man").out, ".B lr\\-find\n"));
  // The build writes completions and manual pages into the program's folder. The installation copies them from there.
  const std::string beside = std::filesystem::path(ISONORM_PROGRAM).parent_path() / "manual";
  CHECK(read(beside + "/isonorm") == bash);
  CHECK(read(beside + "/_isonorm") == zsh);
  for (const char* name : {"isonorm", "isonorm-train"}) {
    const std::string file = beside + "/man1/" + name + ".1";
    CHECK((std::filesystem::exists(file) || std::filesystem::exists(file + ".gz")));
  }
  f.refuses("man nothing", 2, "there is no verb \"nothing\"");
  f.refuses("completion fish", 2, "fish");
}
