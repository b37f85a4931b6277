#include "lab/papers/timing/paper_cell.h"

#include "nn/gpt.h"
#include "nn/vit.h"

namespace isonorm::papers {
namespace {

constexpr double kVocab = 50257;  // vocabulary of the GPTs

}  // namespace

std::string PaperCell::name() const {
  return text(image ? "ViT " : "GPT ", size, training ? " training" : "", ", ", batch,
              image ? "" : text(" x ", length));
}

nn::TransformerOptions PaperCell::transformer() const {
  return (image ? nn::vit_preset(size).transformer : nn::gpt_preset(size).transformer).complete();
}

int64_t PaperCell::tokens() const {
  if (!image) return batch * length;
  const nn::VitOptions o = nn::vit_preset(size);
  return batch * ((o.image / o.patch) * (o.image / o.patch) + 1);
}

double PaperCell::weights() const {
  const nn::TransformerOptions t = transformer();
  const auto block = static_cast<double>(t.width * (4 * t.heads * t.head_width + 2 * t.mlp_width));
  return static_cast<double>(t.depth) * block + (image ? 0 : static_cast<double>(t.width) * kVocab);
}

double PaperCell::operations() const {
  const nn::TransformerOptions t = transformer();
  const auto scores = static_cast<double>(tokens() / batch * t.heads * t.head_width * t.depth);
  return (training ? 6 : 2) * static_cast<double>(tokens()) * (weights() + (image ? 2 : 1) * scores);
}

double PaperCell::bytes(int models) const {
  const double table = image ? 0 : static_cast<double>(transformer().width) * kVocab;
  const int copies = training ? 6 : 2;  // + gradients, 2 moments, mapped weights, their gradients; or + packed copy
  const nn::TransformerOptions t = transformer();
  const int64_t row = 6 * t.width + 4 * t.heads * t.head_width + 2 * t.mlp_width;  // of a block; one model at a time
  const double kept = static_cast<double>(row * (training ? t.depth : 1)) + (image ? 0 : (training ? 3 : 1) * kVocab);
  return static_cast<double>(models * 4 * copies) * (weights() + table) + 4 * kept * static_cast<double>(tokens());
}

// Figure 4b: training, 64 to 512 images per GPU. Figure 5: inference on one text of 512 ids.
std::string PaperCell::published() const {
  struct Row {
    bool image;
    const char *size, *text;
  };
  constexpr Row rows[] = {{true, "tiny", "0.977 / 0.983"}, {true, "small", "0.977 / 0.996"},
                          {true, "base", "0.983 / 0.984"}, {true, "large", "0.991 / 0.994"},
                          {true, "huge", "0.986 / 0.986"}, {true, "giant", "0.989 / 0.989"},
                          {false, "small", "0.90 / 0.89"}, {false, "medium", "0.97 / 0.96"},
                          {false, "large", "0.95 / 0.95"}, {false, "xl", "1.0 / 1.0"}};
  if (!image && (batch != 1 || length != 512)) return "";
  for (const Row& r : rows)
    if (r.image == image && training == image && std::string_view(r.size) == size) return r.text;
  return "";
}

std::vector<PaperCell> paper_cells(bool full) {
  std::vector<PaperCell> all;
  for (const bool training : {false, true}) {
    for (const char* size : {"tiny", "small", "base", "large", "huge", "giant"})
      for (int64_t batch : {1, 4, 16, 64, 256, 1024})
        if (full || batch <= 4) all.push_back({true, size, training, batch, 0});
    for (const char* size : {"small", "medium", "large", "xl"})
      for (int64_t batch : {1, 16})
        for (int64_t length : {128, 512, 2048})
          if (full || (batch == 1 && length == 128)) all.push_back({false, size, training, batch, length});
  }
  return all;
}

}  // namespace isonorm::papers
