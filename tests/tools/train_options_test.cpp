// Options of train: the options in a checkpoint, dropout, parts of a batch, averages, precision, launchers.
#include "tests/tools/small_run.h"

TEST_CASE("train: a checkpoint has its own options; options on the command line must agree") {
  const Folder f;
  f.succeeds(
      "train +small --dtype f64 -q --connection sandwich --affine --scaled-gains --no-norm-bias --form crms_norm "
      "--mlp-width 24 --lr 0.0123456789012 --schedule linear --dropout 0.25 --label-smoothing 0.25 --ema 0.5 --steps 6 "
      "--save-every 2 --checkpoint @c");
  std::filesystem::copy_file(f / "c.previous", f / "d");
  REQUIRE(integer_at(load_checkpoint(f / "d").values, "step") == 4);
  const std::string train = "train --data @text.txt -q --threads 1 --checkpoint ";
  f.succeeds(train + "@d --save-every 2");
  CHECK(read(f / "d") == read(f / "c"));

  f.refuses("train --model vit -q --checkpoint @c", 3,
            "isonorm train: " + f / "c" + ": was trained with --model gpt, not vit\n");
  for (const auto& [option, said, asked] :
       std::vector<std::tuple<std::string, std::string, std::string>>{{"--width", "8", "16"},
                                                                      {"--connection", "sandwich", "pre_ln"},
                                                                      {"--dropout", "0.25", "0"},
                                                                      {"--label-smoothing", "0.25", "0"},
                                                                      {"--scaled-gains", "true", "false"},
                                                                      {"--lr", "0.0123456789012", "0.0123456789013"}})
    f.refuses(train + "@c " + option + "=" + asked, 3,
              "isonorm train: " + f / "c" + ": was trained with " + option + " " + said + ", not " + asked +
                  (option == "--lr" ? "; --extend continues with that\n" : "\n"));

  const Checkpoint whole = load_checkpoint(f / "c");
  for (const auto& [name, value, says] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"model.width", "wide", "model file: entry 'model.width' is 'wide', expected a whole number from 2 to "},
           {"step", "5", "it is after step 5, its optimizer after 6\n"},  // parts that contradict each other
           {"unknown_option", "5", "unknown_option"},
           {"width", "9", "width"},
           {"threads", "99999", "threads"},
           {"resume_at", "2", "was trained with --resume-at 2"}}) {
    Checkpoint forged = whole;
    forged.values[name] = value;
    save_checkpoint(f / "forged", forged);
    CHECK(contains(f.gives(3, train + "@forged").err, says));  // of --resume-at, which train does not have, too
  }
}

TEST_CASE("prove --label-smoothing has the losses of a training with it") {
  const Folder f;
  for (const char* smoothing : {"0", "0.5"}) {
    const std::string options = text(" --dtype f64 --form layer_norm --label-smoothing ", smoothing);
    f.succeeds("prove +small --dtype f64 --steps 1 --forms rms_norm -q --json @p --label-smoothing " +
               std::string(smoothing));
    const double loss = f.json("p")["runs"][0]["losses"][0];
    CHECK(loss == Approx(first_loss(f, "train +small" + options)).epsilon(1e-12));
  }
}

TEST_CASE("train --dropout, --accumulate and --layer-scale change a step as documented") {
  const Folder f;
  const std::string train = "train +small --dtype f64 -q ";
  const double plain = first_loss(f, train), dropped = first_loss(f, train + "--dropout 0.5");
  CHECK(dropped != plain);
  CHECK(first_loss(f, train + "--dropout 0.5") == dropped);
  CHECK(first_loss(f, train + "--dropout 0.5 --seed 2") != dropped);
  CHECK(first_loss(f, train + "--layer-scale 1") == Approx(plain).epsilon(1e-13));
  CHECK(first_loss(f, train + "--layer-scale 0.1") != plain);
  CHECK(first_loss(f, train + "--accumulate 4") == Approx(plain).epsilon(1e-13));
  for (const std::string wrong : {"--accumulate 3", "--dropout 1", "--ema -1", "--ema-file x"})
    f.refuses(train + wrong, 2, wrong.substr(0, wrong.find(' ')));
}

TEST_CASE("train --ema: the average of the weights after each step, in the checkpoint and in a file of its own") {
  const Folder f;
  const auto weights = [&](const std::string& name, const std::string& more) {
    f.succeeds("train +small --dtype f64 -q --schedule constant --warmup 0 --ema 0.5 --no-ema-warmup --checkpoint @" +
               name + " --ema-file @" + name + ".ema " + more);
    return load_checkpoint(f / name).weights;
  };
  const TensorMap w0 = weights("0", "--lr 1e-300 --steps 1"), w1 = weights("1", "--lr 0.01 --steps 1"),
                  w2 = weights("2", "--lr 0.01 --steps 2");
  const std::unique_ptr<nn::Module> averaged = training::load_model(f / "2.ema");
  CHECK_FALSE(averaged->training());
  const TensorMap averages = averaged->state_dict();
  REQUIRE(averages.size() == w2.size());
  double moved = 0;
  for (const auto& [name, tensor] : averages) {
    const auto a0 = w0.at(name).to_vector<double>(), a1 = w1.at(name).to_vector<double>(),
               a2 = w2.at(name).to_vector<double>(), average = tensor.to_vector<double>();
    for (size_t i = 0; i < average.size(); ++i) {
      CHECK(average[i] == Approx(a0[i] / 4 + a1[i] / 4 + a2[i] / 2).epsilon(1e-14).margin(1e-17));
      moved = std::max(moved, std::abs(a2[i] - average[i]));
    }
  }
  CHECK(moved > 1e-3);
}

TEST_CASE("train: without --model the data say which model reads them; another model refuses them") {
  const Folder f;
  std::filesystem::create_directories(f / "pairs");
  for (const char* file : {"pairs/source.txt", "pairs/target.txt"})
    write_text(f / file, "ab\ncd\nef\ngh\nij\nkl\nmn\nop\nqr\nst\n");
  const std::string small = " --width 8 --depth 1 --heads 2 --context 8 --batch 2 --threads 1 --steps 1 -q";
  for (const auto& [data, model] : {std::pair{"@text.txt", "gpt"}, {"@pairs", "translator"}}) {
    std::filesystem::remove(f / "c");
    f.succeeds(std::string("train --checkpoint @c --data ") + data + small);
    CHECK(load_checkpoint(f / "c").values.at("model.kind") == model);
  }
  const std::string is_text = "--data: " + f / "text.txt" + " is a text file, for gpt; ",
                    is_pairs = "--data: " + f / "pairs" + " is a folder of pairs, for translator; ";
  for (const std::string verb : {"train", "prove", "lr-find", "table"})
    f.refuses(verb + " --model vit --data @text.txt", 2, is_text + "vit reads a folder of images; see");
  f.refuses("train --model translator --data @text.txt", 2, is_text + "translator reads a folder of pairs; see");
  f.refuses("train +small --data @pairs", 2, is_pairs + "gpt reads a text file; see");
  f.refuses("train --data @pairs --token-vocab 8", 2, "--token-vocab requires --model gpt with --data");
  // A folder without data and a missing path: the error does not advise to install a package.
  std::filesystem::create_directories(f / "empty");
  f.refuses("train --data @empty", 4,
            f / "empty" + ": no images are found there; expected the four idx files of MNIST");
  for (const std::string options : {"", " --context 8", " --token-vocab 8"})
    f.refuses("train --data @none" + options, 4, f / "none" + ": there is no such file or folder");
  // Verbs without --model do not mention it.
  f.succeeds("train +small --steps 1 -q --checkpoint @gpt");
  f.refuses("evaluate @gpt", 2, "isonorm evaluate: a language model needs a text file: --data FILE; see");
  f.refuses("evaluate @gpt --data @pairs", 2, is_pairs + "gpt reads a text file; see");
  f.refuses("convert @gpt @out --to rms_norm --data @pairs", 2, is_pairs + "gpt reads a text file; see");
}

TEST_CASE("train: a resumed training evaluates and waits as before, unless the command line says otherwise") {
  const Folder f;
  const std::string train = "train +small --dtype f64 --checkpoint @c ",
                    again = "train --data @text.txt --checkpoint @c --extend ";
  const auto tested = [&](const std::string& line) {
    std::filesystem::remove(f / "json");
    f.succeeds(line + " -q --json @json");
    std::vector<int> steps;
    const nlohmann::json result = f.json("json");
    for (const auto& row : result["evaluations"]) steps.push_back(row["step"]);
    return steps;
  };
  using Steps = std::vector<int>;
  CHECK(tested(train + "--steps 4 --evaluate-every 2 --save-every 90s --patience 7") == Steps{2, 4});
  CHECK(tested(again + "--steps 8") == Steps{4, 6, 8});  // the first one came after the checkpoint was saved
  const Metadata kept = load_checkpoint(f / "c").values;
  CHECK(kept.at("evaluate_every") == "2");
  CHECK(kept.at("patience") == "7");
  CHECK_FALSE(kept.contains("save_every"));  // the same training in the same file, however often it is saved
  CHECK(contains(read(f / "c.toml"), "evaluate-every = 2\npatience = 7\n"));
  CHECK(tested(again + "--steps 12 --evaluate-every 3") == Steps{9, 12});
  CHECK(tested(again + "--steps 13 --evaluate-every 0 --patience 0") == Steps{13});
  // A checkpoint from before they were recorded has the defaults.
  Checkpoint older = load_checkpoint(f / "c");
  for (const char* name : {"evaluate_every", "patience"}) older.values.erase(name);
  save_checkpoint(f / "c", older);
  CHECK(tested(again + "--steps 14") == Steps{14});
}

TEST_CASE("train refuses a launch of several processes that cannot train together, and names the variable") {
  const Folder f;
  const std::string train = "train +small -q --steps 1 --checkpoint @c";
  const struct {
    std::vector<std::string> environment;
    std::string names;
  } lost[] = {{{"RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2"}, "WORLD_SIZE is 2"},  // torchrun
              {{"LOCAL_RANK=1"}, "LOCAL_RANK is 1"},
              {{"SLURM_NTASKS=2", "SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=0"}, "SLURM_STEP_NUM_TASKS is 2"},  // srun
              {{"SLURM_PROCID=1"}, "SLURM_PROCID is 1"},
              {{"OMPI_COMM_WORLD_RANK=1"}, "OMPI_COMM_WORLD_RANK is 1"},  // mpirun's, without the number of ranks
              {{"PMI_RANK=1"}, "PMI_RANK is 1"},
              {{"FLUX_TASK_RANK=3"}, "FLUX_TASK_RANK is 3"},
              {{"JSM_NAMESPACE_SIZE=4"}, "JSM_NAMESPACE_SIZE is 4"},
              {{"MPI_LOCALNRANKS=2", "MPI_LOCALRANKID=0"}, "MPI_LOCALNRANKS is 2"},
              {{"OMPI_COMM_WORLD_SIZE=1", "WORLD_SIZE=2"}, "WORLD_SIZE is 2"}};
  for (const auto& [environment, names] : lost)
    f.refuses(train, 3, names + ": a launcher has started this process as one of several",
              {.environment = environment});
  CHECK(f.files() == 1);
  // Processes that are alone: started by torchrun, by a Slurm job's script, and by mpirun, which srun may have started.
  const std::vector<std::string> alone[] = {{"RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=1"},
                                            {"SLURM_NTASKS=4", "SLURM_PROCID=0"},
                                            {"SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=1", "OMPI_COMM_WORLD_SIZE=1"}};
  for (const auto& environment : alone) f.succeeds(train, {.environment = environment});
  f.succeeds("info @c", {.environment = {"WORLD_SIZE=2"}});  // not a training
}

TEST_CASE("train --precision bf16: other losses, f32 weights and states; the file records it and resumes with it") {
  const Folder f;
  const std::string train = "train +small --steps 6 -q --save-every 2 --json @json --checkpoint ",
                    bf16 = " --precision bf16", stream = bf16 + " --stream-precision bf16";
  const auto losses = [&](const std::string& more) {
    f.succeeds(train + more);
    return f.json("json")["course"]["losses"];
  };
  const auto of_full = losses("@full"), of_bf16 = losses("@bf16" + bf16), of_stream = losses("@stream" + stream);
  CHECK(of_bf16 != of_full);
  CHECK(of_bf16 != of_stream);
  for (size_t i = 0; i < 6; ++i) CHECK(of_stream[i].get<double>() == Approx(of_full[i].get<double>()).epsilon(0.05));
  CHECK(contains(f.json("json")["command"], stream));

  const Checkpoint saved = load_checkpoint(f / "stream");
  CHECK(saved.values.at("model.precision") == "bf16");
  CHECK(saved.values.at("model.stream_precision") == "bf16");
  CHECK(load_checkpoint(f / "full").values.at("model.precision") == "full");
  for (const TensorMap& map : {saved.weights, saved.optimizer})
    for (const auto& [name, tensor] : map) CHECK(tensor.dtype() != DType::bf16);

  // The checkpoint of step 4 ends with the same file. Another precision is refused.
  std::filesystem::copy_file(f / "stream.previous", f / "again");
  CHECK(integer_at(load_checkpoint(f / "again").values, "step") == 4);
  f.succeeds(train + "@again" + stream);
  CHECK(read(f / "again") == read(f / "stream"));
  f.refuses(train + "@bf16 --precision full", 3, "was trained with --precision bf16, not full");
  f.refuses(train + "@full" + bf16, 3, "was trained with --precision full, not bf16");
  f.refuses(train + "@bf16" + stream, 3, "was trained with --stream-precision full, not bf16");

  // Its weights begin a training in f32, and verify compares them with themselves in f64.
  f.succeeds("train +small --steps 6 -q --init @stream");
  f.succeeds("verify @stream @stream");
}

TEST_CASE("train --precision: f16, another dtype and a bf16 stream alone are refused with the reason") {
  const Folder f;
  const std::string train = "train +small --steps 6 -q ";
  for (const std::string word : {"f16", "int8"})
    f.refuses(train + "--precision " + word, 2, "\"" + word + "\" is not one of full|bf16");
  f.refuses(train + "--precision bf16 --dtype f64", 2, "--precision bf16 does not go with --dtype f64");
  f.refuses(train + "--stream-precision bf16", 2, "a bf16 residual stream needs bf16 products");
}
