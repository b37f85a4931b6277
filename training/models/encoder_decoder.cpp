// The row of nn::EncoderDecoder.
#include "nn/encoder_decoder.h"

#include "core/dims.h"
#include "training/model_row.h"

namespace isonorm::training {
namespace {

struct Translator final : ConfigOf<Translator, nn::EncoderDecoder> {
  void fields(Fields& f) override {
    f.group = "Model";
    auto& [vocab, context, pad, decoder_depth, shared, tied, transformer] = options;
    f("vocab", vocab, "", from(1));
    f("context", context, "context length in tokens", from(1));
    f("pad", pad);
    f("decoder_depth", decoder_depth, "blocks of the decoder; 0: --depth");
    f("shared", shared, "source and target share the embedding table");
    f("tied", tied, "weight tying: the head uses the embedding table");
  }
  int64_t stream_rows() const override {
    const int64_t positions = options.transformer.positions == nn::Positions::learned ? options.context : 0;
    return checked_add(options.vocab, positions, "model file: size");
  }
  int64_t more_blocks() const override { return options.decoder_depth; }
  // One parameter for each of the two streams.
  bool enters(std::string_view name) const override {
    const bool learned = options.transformer.positions == nn::Positions::learned;
    return name == (learned ? "source_position.weight" : "source.weight") ||
           name == (learned ? "target_position.weight" : "target.weight");
  }
};

}  // namespace

constinit const ModelRow kTranslator = row_of<Translator>({.name = "translator",
                                                           .title = "Encoder-decoder",
                                                           .noun = "translator",
                                                           .input = Input::pairs,
                                                           .tied_table = "target.weight"});

}  // namespace isonorm::training
