// Layout: how a model hangs on its residual stream. Which tensors write to it, which read from it and through which norm,
// with which table a head reads, what stands beside it. The same object for a module, whose layers it puts on a stream
// (parametrize.h), and for a file of another program (streams/placement.h).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streams/stream.h"

namespace isonorm::streams {

// A pattern (core/system/name_pattern.h) names tensors, "h.*.mlp.fc2.weight", or layers, "h.*.mlp.fc2": their weights and
// biases. In a norm, a bias and a scale a star stands for what it stands for in the pattern beside it.
//
//   Layout().writes("token").writes("blocks.*.attn.proj").reads("blocks.*.attn.qkv", "blocks.*.norm1")
class Layout {
 public:
  // What it says of a tensor.
  struct Entry {
    Role role = Role::neutral;
    int dim = -1;             // of writers and readers: the stream's axis; -1: as the layer has it
    std::string norm = {};    // of a reader; of a table, a norm that its rows go through to the stream
    std::string bias = {};    // of a reader
    int64_t parts = 1;        // of a reader: rows that it reads side by side
    std::string scale = {};   // of a writer: the layer scale on its output
    bool known = false;       // whether it says anything of it
    bool off_stream = false;  // neutral, though an axis may be as wide as the stream
  };
  // A writer's table that the head reads with: logits = norm(x) table^T. weight and bias: names of a head that is not tied.
  struct Tied {
    std::string table, weight, bias, norm;
  };
  struct Norm {
    double eps = 1e-5;
    bool plus_one = false;  // what is stored is gain - 1 (LayerNorm1P)
  };

  // From JSON, as `convert --spec` takes it:
  //
  //   {"width": 768,
  //    "norms":   {"h.*.ln_{1,2}": "1e-5", "ln_f": {"eps": 1e-5, "gain": "1+w"}}, "kept": ["ln_f"],
  //    "writers": {"wte.weight": 1, "h.*.attn.c_proj.weight": 1, "h.*.attn.c_proj.bias": 0},
  //    "readers": {"h.*.attn.c_attn.weight": {"dim": 0, "norm": "h.*.ln_1", "bias": "h.*.attn.c_attn.bias"}},
  //    "tied":    {"wte.weight": {"head": "lm_head.weight", "norm": "ln_f"}},
  //    "scales":  {"h.*.attn.c_proj.weight": "h.*.ls_1.gamma"},
  //    "others":  ["h.*.attn.bias"], "not_on_stream": ["h.*.attn.mask"], "recentre": "h.0"}
  //
  // A number beside a writer, and "dim", is the stream's axis; {"dim": 1, "norm": "ln_e"} is a table whose rows go through a
  // norm to the stream; "parts" of a reader: so many rows side by side. An eps is a number or one in quotes; "attn.{q,k}"
  // stands for "attn.q" and "attn.k". Throws, naming the entry, where the JSON is not of that form.
  static Layout from_json(std::string_view json);
  // The same, or several streams by name: {"streams": {"text": {"width": ..}, "image": {..}}}. One without a name is "".
  static std::vector<std::pair<std::string, Layout>> streams_from_json(std::string_view json);

  // Each throws where a pattern has more than three stars or stands in the layout already.
  // Added to the stream: Linear, BranchOutput, rows of an Embedding, or any tensor, along `dim`; without one along that of the
  // layer, or the last. norm: of a file's table, whose rows go through it to the stream.
  Layout& writes(const std::string& pattern, int dim = -1, const std::string& norm = "");
  // Their input is what the norm gives, of a file's reader of `parts` rows side by side. bias: beside a tensor "...weight" it
  // is "...bias".
  Layout& reads(const std::string& pattern, const std::string& norm, int dim = -1, const std::string& bias = "",
                int64_t parts = 1);
  // Of files; of a module, whose head knows its table, it says what reads() of the head does.
  Layout& tied(const Tied& tied);
  Layout& scale(const std::string& writer, const std::string& vector);
  // Of files, where it must be; of a module's norm it is held against the norm's own. A norm of the stream that no reader
  // names is named so.
  Layout& norm(const std::string& pattern, Norm norm);
  Layout& norm(const std::string& pattern, double eps) { return norm(pattern, Norm{.eps = eps}); }
  // Norms of files whose gain and bias stay where they are, as where others than readers see their rows.
  Layout& keep(const std::string& norm);
  // Touches the stream neither way; off_stream: although it has an axis of that width.
  Layout& other(const std::string& pattern, bool off_stream = false);
  // The first branch reads the embeddings as they are: tables are no writers, and a mapped table cannot be a head's.
  Layout& bare_entry();
  // Of files: the stream begins with rows that enter this module, whose mean no weight removes (behind a norm or an
  // activation). The program that runs a converted file takes it off there, once.
  Layout& recentre(const std::string& module);
  Layout& width(int64_t d);
  // What `child` says of the module at `path`.
  Layout& with(const std::string& path, const Layout& child);

  // What it says of each of these tensors. Throws where two patterns fit one of them, a writer's, reader's or scale's
  // fits none, and where what has a layer scale is no writer.
  std::vector<Entry> entries_of(std::span<const std::string> names) const;
  // The pattern that a norm is described by, its own name before all others, and what it says; null where there is none.
  // Throws where two fit.
  const std::pair<const std::string, Norm>* norm_of(const std::string& name) const;

  bool keeps(const std::string& norm) const;
  const std::vector<std::string>& kept() const { return kept_; }
  // Patterns of tensors and what they say, as they were given.
  const std::vector<std::pair<std::string, Entry>>& entries() const { return entries_; }
  int64_t width() const { return width_; }  // d, of the Pre-LN model; 0: it does not say
  const std::map<std::string, Norm>& norms() const { return norms_; }
  const std::vector<Tied>& tied() const { return tied_; }
  bool reads_bare_entry() const { return bare_entry_; }
  const std::string& recentred() const { return recentred_; }
  bool of_files() const;  // whether it says what a module's layout does not: a norm behind a table, parts, recentre

 private:
  Layout& add(const std::string& pattern, Entry entry);

  int64_t width_ = 0;
  std::vector<std::pair<std::string, Entry>> entries_;
  std::map<std::string, std::string> scales_;
  std::map<std::string, Norm> norms_;
  std::vector<Tied> tied_;
  std::vector<std::string> kept_;
  std::string recentred_;
  bool bare_entry_ = false;
};

// Whether a pattern, which may have alternatives in braces, names the tensor, or its layer.
bool names_tensor(const std::string& pattern, const std::string& tensor);

// The name of the bias beside a weight: "fc.bias" of "fc.weight"; empty where the name does not end so.
std::string bias_beside(const std::string& weight);

}  // namespace isonorm::streams
