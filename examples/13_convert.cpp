// Converting a trained checkpoint. Pre-LN, Pre-RMSNorm and Pre-CRMSNorm are one function with different weights: a
// small GPT with learned gains is saved, converted to each form, and run. A conversion that is impossible is refused by
// name. `isonorm convert` does the same from the command line, with more checks.
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;
using namespace isonorm::equivalence;
using namespace isonorm::training;

int main() try {
  manual_seed(1);
  nn::Gpt model = streams::make<nn::Gpt>(
      {.vocab = 16, .context = 12, .transformer = {.width = 24, .depth = 2, .heads = 3, .affine = true}});
  optim::AdamW opt(model.parameters(), {.lr = 1e-2});
  for (int step = 0; step < 30; ++step) {  // so that gains, biases and means differ from their initial values
    const Tensor ids = randint(0, 16, {8, 13});
    opt.zero_grad();
    backward(cross_entropy(model(narrow(ids, 1, 0, 12)), narrow(ids, 1, 1, 12)));
    opt.step();
  }
  // A file that describes its model can be converted and checked without this program.
  training::save_model("13_convert.safetensors", model);
  const ModelFile file = load_model_file("13_convert.safetensors");
  const Tensor ids = ModelOptions(file.description).inputs(/*rows=*/4, /*seed=*/1);

  for (streams::Form form : {streams::Form::rms_norm, streams::Form::crms_norm, streams::Form::crms_isometric}) {
    const ModelConversion c = convert_model(file, form);
    // The weights are f32, so rounding is measured in f32; before rounding the two agree to f64.
    const Deviation stored = compare_models(file.description, file.state, c.description, c.conversion.state, ids);
    const Deviation exact =
        compare_models(file.description, widened(file.state), c.description, c.conversion.exact, ids);
    std::printf("%-15s logits differ by %.1e in f64, by %.1e as stored in f32: %s\n", name_of(form), exact.size,
                stored.size, exact.explained() && stored.explained() ? "one function" : "two functions");
  }

  std::printf("\nWhat happened to the tensors of the last block and after, for crms_norm:\n");
  for (const TensorChange& t : convert_model(file, streams::Form::crms_norm).conversion.changes)
    if (t.name.starts_with("blocks.1.") || t.name.starts_with("head."))
      std::printf("  %-24s %s\n", t.name.c_str(), t.what.c_str());

  // A reader of the bare stream depends on the stream's mean, which the other forms do not have.
  streams::Plan layout = streams::plan_of(model);
  for (streams::Plan::Reader& r : layout.readers)
    if (r.name == "head.weight") r.norm = -1;
  try {
    convert(file.state, layout, streams::Form::rms_norm);
  } catch (const Error& e) {
    std::printf("\nrefused: %s\n", e.what());
  }
} catch (const Error& e) {
  return std::fprintf(stderr, "13_convert: %s\n", e.what()), 1;
}
