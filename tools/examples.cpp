// The examples of --help and of the manual pages. A test runs them all, in one folder.
#include <algorithm>
#include <iterator>

#include "tools/help.h"

namespace isonorm::tools {
namespace {

constexpr Example kExamples[] = {
    {"isonorm", "isonorm prove", "Pre-LN, Pre-RMSNorm and Pre-CRMSNorm side by side on Fashion-MNIST"},
    {"isonorm", "isonorm train --data README.md --steps 200 --checkpoint gpt.ckpt", "a language model of a text"},
    {"train", "isonorm train --data README.md --steps 200 --checkpoint gpt.ckpt", "a language model of a text"},
    {"train", "isonorm train --data README.md --steps 400 --extend --checkpoint gpt.ckpt --log gpt.jsonl",
     "200 steps more, logged"},
    {"lr-find", "isonorm lr-find --data README.md", "a rate for --lr"},
    {"lr-find", "isonorm lr-find --config gpt.ckpt.toml --report rates.html", "for a training that train has written"},
    {"info", "isonorm info gpt.ckpt", "a checkpoint"},
    {"info", "isonorm info", "CPU, kernels and BLAS of this machine"},
    {"evaluate", "isonorm evaluate gpt.ckpt --data README.md", "the last tenth of the text"},
    {"evaluate", "isonorm evaluate gpt.ckpt --data README.md --json evaluation.json", "loss and accuracy as JSON, too"},
    {"sample", "isonorm sample gpt.ckpt \"The norm\"", "continues the words"},
    {"sample", "isonorm sample gpt.ckpt \"The norm\" --temperature 0.8 --top-k 20 --count 3", "three texts"},
    {"plot", "isonorm plot gpt.jsonl", "in the terminal"},
    {"plot", "isonorm plot gpt.jsonl --report curves.html", "as a page"},
    {"convert", "isonorm convert gpt.ckpt gpt_crms.safetensors --to crms_norm", "a checkpoint of train"},
    {"convert", "isonorm convert gpt2/ gpt2_rms/ --to rms_norm", "a folder of the Hugging Face hub"},
    {"verify", "isonorm verify gpt.ckpt gpt_crms.safetensors", "before and after convert"},
    {"verify", "isonorm verify gpt.ckpt gpt_crms.safetensors --data README.md", "compares logits on a text, too"},
    {"rotate", "isonorm rotate gpt2_rms/ gpt2_turned/ --basis haar:3", "a random orthogonal matrix"},
    {"rotate", "isonorm rotate gpt2_rms/ gpt2_signs/ --basis hadamard:3", "random signs and a Hadamard matrix"},
    {"spec", "isonorm spec gpt2/ > gpt2.json", "to edit, for --spec"},
    {"spec", "isonorm spec gpt2_rms/", "of a converted model"},
    {"hooks", "isonorm hooks gpt2/ > record.py", "for a folder of the hub"},
    {"hooks", "isonorm hooks gpt2.json > record.py", "for a description"},
    {"perturb", "isonorm perturb gpt.ckpt control.safetensors", "each weight moved by one ulp"},
    {"perturb", "isonorm perturb gpt.ckpt far.safetensors --ulp 16 --seed 2", "by 16 ulps, in other directions"},
    {"compare", "isonorm compare gpt.ckpt control.safetensors --tolerance 1e-5", "weights, entry by entry"},
    {"compare", "isonorm compare gpt.ckpt control.safetensors --control far.safetensors",
     "the tolerance from a control"},
    {"audit", "isonorm audit --model gpt --tied", "a model with initial weights"},
    {"audit", "isonorm audit --checkpoint gpt.ckpt --report audit.html", "a trained one"},
    {"import", "isonorm import gpt2/ gpt2.safetensors", "for train --init, sample and evaluate"},
    {"import", "isonorm import gpt2/ gpt2_half.safetensors --dtype f16", "in 16 bits"},
    {"export", "isonorm export gpt2.safetensors gpt2_again/ --like gpt2/", "for the transformers library"},
    {"export", "isonorm export gpt.ckpt gpt.onnx", "for ONNX runtimes"},
    {"tokenize", "isonorm tokenize tokenizer.json README.md ids.bin", "ids for train --data"},
    {"tokenize", "isonorm tokenize --decode tokenizer.json ids.bin again.md", "the text again"},
    {"explain", "isonorm explain layer_norm 1,2,4", "forward and backward"},
    {"explain", "isonorm explain rms_norm 1,2,4 --gain 1,2,1 --gradcheck", "with a gain; differences by their step"},
    {"prove", "isonorm prove --data README.md --steps 100", "on a text instead of Fashion-MNIST"},
    {"prove", "isonorm prove --certificate", "small architectures of every kind, on generated data"},
    {"table", "isonorm table --optimizers sgd,adamw", "two columns"},
    {"table", "isonorm table --predicates", "the properties from which the expectations follow"},
    {"experiment", "isonorm experiment --list", "every claim with its source"},
    {"experiment", "isonorm experiment invariance --report invariance.html", "one of them"},
    {"completion", "isonorm completion bash > isonorm.bash", "for ~/.local/share/bash-completion/completions/"},
    {"completion", "isonorm completion zsh > _isonorm", "for a folder of $fpath"},
    {"man", "isonorm man > isonorm.1", "the program's page"},
    {"man", "isonorm man train > isonorm-train.1", "a verb's page; man -l shows it"}};

}  // namespace

std::vector<Example> examples_of(const std::string& verb) {
  std::vector<Example> own;
  std::copy_if(std::begin(kExamples), std::end(kExamples), std::back_inserter(own),
               [&](const Example& e) { return e.verb == verb; });
  return own;
}

}  // namespace isonorm::tools
