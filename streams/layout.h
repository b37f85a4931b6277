// Layout describes the residual stream of a model: the tensors that write to it, the tensors that read it and their
// norms, and the tensors that do neither. The same description serves a module (parametrize.h) and a checkpoint of
// another program (streams/plan.h).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streams/stream.h"

namespace isonorm::streams {

// A pattern (core/system/name_pattern.h) names tensors, "h.*.mlp.fc2.weight", or layers, "h.*.mlp.fc2", which means
// their weights and biases. Stars in the name of a norm, bias or scale are filled in from the tensor's name.
//
//   Layout().writes("token").writes("blocks.*.attn.proj").reads("blocks.*.attn.qkv", "blocks.*.norm1")
class Layout {
 public:
  // The description of a tensor.
  struct Entry {
    Role role = Role::neutral;
    int dim = -1;           // writers and readers: the stream's axis; -1: the layer's own
    std::string norm = {};  // reader: the norm that it reads through; embedding table: a norm between it and the stream
    std::string bias = {};  // reader: its bias
    int64_t parts = 1;      // reader: number of rows side by side in its input
    std::string scale = {};   // writer: the layer scale on its output
    bool known = false;       // whether the layout names the tensor
    bool off_stream = false;  // neutral on purpose, though an axis may have the stream's width
  };
  // A head that reads with an embedding table: logits = norm(x) table^T. weight, bias: the head's names when it is
  // untied.
  struct Tied {
    std::string table, weight, bias, norm;
  };
  struct Norm {
    double eps = 1e-5;
    bool plus_one = false;  // gain - 1 is stored (LayerNorm1P)
  };

  // Reads the JSON of `convert --spec`:
  //
  //   {"width": 768,
  //    "norms":   {"h.*.ln_{1,2}": "1e-5", "ln_f": {"eps": 1e-5, "gain": "1+w"}}, "kept": ["ln_f"],
  //    "writers": {"wte.weight": 1, "h.*.attn.c_proj.weight": 1, "h.*.attn.c_proj.bias": 0},
  //    "readers": {"h.*.attn.c_attn.weight": {"dim": 0, "norm": "h.*.ln_1", "bias": "h.*.attn.c_attn.bias"}},
  //    "tied":    {"wte.weight": {"head": "lm_head.weight", "norm": "ln_f"}},
  //    "scales":  {"h.*.attn.c_proj.weight": "h.*.ls_1.gamma"},
  //    "others":  ["h.*.attn.bias"], "not_on_stream": ["h.*.attn.mask"], "recentre": "h.0"}
  //
  // The number of a writer and every "dim" are the stream's axis. {"dim": 1, "norm": "ln_e"} is a table with a norm
  // between it and the stream. "parts" of a reader: the number of rows side by side in its input. An eps is a number or
  // a string with a number. "attn.{q,k}" means "attn.q" and "attn.k". Throws, naming the entry, if the JSON does
  // not have this form.
  static Layout from_json(std::string_view json);
  // The same for one or several streams: {"streams": {"text": {"width": ..}, "image": {..}}}. The name of a single
  // stream is "".
  static std::vector<std::pair<std::string, Layout>> streams_from_json(std::string_view json);

  // writes(), reads() and other() throw if the pattern has more than three stars or is in the layout already. tied(),
  // scale() and norm() throw if they are called twice for one name.
  //
  // A writer: its output is added to the stream (a Linear, BranchOutput, Embedding, or any tensor).
  // dim:  the stream's axis of the tensor; -1: the layer's output axis, or the last axis of a plain tensor
  // norm: checkpoints only; the norm between an embedding table and the stream
  Layout& writes(const std::string& pattern, int dim = -1, const std::string& norm = "");
  // A reader: its input is the result of `norm`.
  // dim:   the stream's axis of the tensor; -1: the layer's input axis
  // bias:  its bias; "": "...bias" for a tensor "...weight"
  // parts: checkpoints only; number of rows of the stream side by side in its input
  Layout& reads(const std::string& pattern, const std::string& norm, int dim = -1, const std::string& bias = "",
                int64_t parts = 1);
  // A head that reads with an embedding table. In a module, whose head knows its table, this equals reads() of the
  // head.
  Layout& tied(const Tied& tied);
  Layout& scale(const std::string& writer, const std::string& vector);
  // Adds a norm of the stream, even if no reader names it. Checkpoints need it for every norm; for a module, eps is
  // compared with the norm's own.
  Layout& norm(const std::string& pattern, Norm norm);
  Layout& norm(const std::string& pattern, double eps) { return norm(pattern, Norm{.eps = eps}); }
  // Checkpoints only: norms that keep their gain and bias, because others than readers see their rows.
  Layout& keep(const std::string& norm);
  // A tensor that neither writes to nor reads the stream. off_stream: confirms this for a tensor with an axis of the
  // stream's width, which is refused otherwise.
  Layout& other(const std::string& pattern, bool off_stream = false);
  // The first branch reads the embeddings without a norm: tables do not write, and a head cannot use a mapped table.
  Layout& reads_embeddings();
  // Checkpoints only. The rows that enter `module` have a mean that no weight can remove (they come from a norm or an
  // activation), so the program that runs the converted model must subtract it there, once.
  Layout& recentre(const std::string& module);
  Layout& width(int64_t d);
  // Adds the layout of a child module at `path`.
  Layout& with(const std::string& path, const Layout& child);

  // Returns the description of each of these tensors. Throws if two patterns match one tensor, if the pattern of a
  // writer, reader or scale matches no tensor, or if a tensor with a layer scale is not a writer.
  std::vector<Entry> entries_of(std::span<const std::string> names) const;
  // Finds the entry for this norm: its exact name, else the only pattern that matches. Null if none matches. Throws if
  // two patterns match.
  const std::pair<const std::string, Norm>* norm_of(const std::string& name) const;

  bool keeps(const std::string& norm) const;
  const std::vector<std::string>& kept() const { return kept_; }
  // Patterns of tensors with their descriptions, in order of addition.
  const std::vector<std::pair<std::string, Entry>>& entries() const { return entries_; }
  int64_t width() const { return width_; }  // d, the width of the Pre-LN model; 0: not given
  const std::map<std::string, Norm>& norms() const { return norms_; }
  const std::vector<Tied>& tied() const { return tied_; }
  bool embeddings_are_read() const { return reads_embeddings_; }
  const std::string& recentred() const { return recentred_; }
  bool of_files() const;  // has something for checkpoints only: a norm after a table, parts, recentre

 private:
  Layout& add(const std::string& pattern, Entry entry);

  int64_t width_ = 0;
  std::vector<std::pair<std::string, Entry>> entries_;
  std::map<std::string, std::string> scales_;
  std::map<std::string, Norm> norms_;
  std::vector<Tied> tied_;
  std::vector<std::string> kept_;
  std::string recentred_;
  bool reads_embeddings_ = false;
};

// The patterns that a pattern with alternatives means: "a.b.d" and "a.c.d" for "a.{b,c}.d". Throws if there are more
// than 64, or if check_name() refuses the name.
std::vector<std::string> alternatives(const std::string& pattern);
// True if the pattern, which may have alternatives in braces, matches the tensor or its layer.
bool names_tensor(const std::string& pattern, const std::string& tensor);

// The name of the bias of a layer: "fc.bias" for "fc.weight"; empty if the name does not end with "weight".
std::string bias_beside(const std::string& weight);

}  // namespace isonorm::streams
