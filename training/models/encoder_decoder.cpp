// The row of nn::EncoderDecoder.
#include "nn/encoder_decoder.h"

#include "core/dims.h"
#include "training/model_row.h"

namespace isonorm::training {
namespace {

struct Translator {
  using Module = nn::EncoderDecoder;

  static void fields(nn::EncoderDecoderOptions& m, Fields& f) {
    f.group = "Model";
    auto& [vocab, context, pad, decoder_depth, shared, tied, transformer] = m;
    f("vocab", vocab, "", from(1));
    f("context", context, "context length in tokens", from(1));
    f("pad", pad);
    f("decoder_depth", decoder_depth, "blocks of the decoder; 0: --depth");
    f("shared", shared, "source and target share the embedding table");
    f("tied", tied, "weight tying: the head uses the embedding table");
  }
  static int64_t stream_rows(const nn::EncoderDecoderOptions& m) {
    const int64_t positions = m.transformer.positions == nn::Positions::learned ? m.context : 0;
    return checked_add(m.vocab, positions, "model file: size");
  }
  static int64_t more_blocks(const nn::EncoderDecoderOptions& m) { return m.decoder_depth; }
  // One parameter for each of the two streams.
  static bool enters(std::string_view name, const nn::EncoderDecoderOptions& m) {
    const bool learned = m.transformer.positions == nn::Positions::learned;
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
