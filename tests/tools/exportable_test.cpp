// Models that `isonorm train` makes can be exported, or a table of docs/training.md gives the reason. Runs its rows.
#include "autograd/grad_mode.h"
#include "tests/support/small_images.h"
#include "tests/tools/small_run.h"

namespace {

// A row: `options` of train; the class of the folder, the architecture of the GGUF file, and if there is an ONNX file:
// "no" if not.
struct Row {
  std::string options, folder, gguf, onnx;
};

std::vector<Row> rows_of_page() {
  std::vector<Row> rows;
  std::istringstream page(test::read_text("docs/training.md"));
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `--model ")) continue;
    std::vector<std::string> cells;
    std::istringstream in(line.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) {
      std::erase(cell, '`');
      const size_t first = cell.find_first_not_of(' ');
      cells.push_back(first == cell.npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
    }
    REQUIRE(cells.size() == 5);
    const bool reason = !cells[4].empty();
    CHECK(reason == (cells[1] == "no" || cells[2] == "no" || cells[3] == "no"));
    rows.push_back({cells[0], cells[1], cells[2], cells[3]});
  }
  return rows;
}

// The logits of a file's model. Raw weights of every form are the Pre-LN model's, which export writes.
Tensor logits_of(const std::string& path) {
  const NoGrad no_grad;
  const training::ModelFile file = training::load_model_file(path);
  training::ModelOptions options(file.description);
  if (training::stored_form(options) == streams::Form::layer_norm) options.stream() = {};
  if (options.stream().form == streams::Form::rms_norm) options.stream() = {.form = streams::Form::uncentred_rms_norm};
  const auto model = options.build();
  TensorMap state;
  for (const auto& [name, tensor] : file.state) state.add(name, tensor.to(DType::f64));
  model->load_state_dict(state);
  return (*model)(options.inputs(2, 1));
}

const std::string kSizes =
    " --width 8 --depth 2 --heads 2 --batch 4 --steps 2 --lr 0.1 --warmup 0 --threads 1 -q --checkpoint @model";

}  // namespace

TEST_CASE("export: what train makes, by the table of docs/training.md; a folder gives the same logits to the bit") {
  const Folder f;
  write_images(f);
  const std::vector<Row> rows = rows_of_page();
  REQUIRE(rows.size() > 20);
  for (const Row& row : rows) {
    INFO(row.options);
    for (const char* made : {"model", "folder", "file.gguf", "file.onnx", "again"})
      std::filesystem::remove_all(f / made);
    std::string train = "train" + kSizes + " " + row.options;
    if (row.options.find("--model gpt") != row.options.npos) train += " --data @text.txt --context 8";
    if (row.options.find("--model vit") != row.options.npos) train += " --data @images --patch 14";
    if (row.options.find("--model translator") != row.options.npos) train += " --context 8 --letters 4";
    f.succeeds(train);
    // The folder, GGUF and ONNX of the model: what the line says, or a refusal that leaves nothing.
    for (const auto& [out, expected] :
         {std::pair{"@folder", row.folder}, {"@file.gguf", row.gguf}, {"@file.onnx", row.onnx}}) {
      INFO(out);
      if (expected == "no") {
        f.refuses(std::string("export @model ") + out, 3, "");
        continue;
      }
      const std::string said = f.succeeds(std::string("export @model ") + out).out;
      if (expected != "yes") CHECK(contains(said, ": " + expected + ", "));
    }
    if (row.folder == "no") continue;
    f.succeeds("import @folder @again");
    CHECK(same_bytes(logits_of(f / "model"), logits_of(f / "again")));
  }
}
