// Bodies of functions: statements become instructions, names become numbers of registers and positions.
#include <algorithm>
#include <cctype>

#include "tests/ptx/operations.h"
#include "tests/ptx/program.h"
#include "tests/ptx/text.h"

namespace isonorm::ptx {
namespace {

struct Place {
  Space space;
  uint64_t at;
};

class Decoder {
 public:
  explicit Decoder(Function& f) : f_(f), scopes_(1) {
    for (const Parameter& p : f.parameters)
      places_[p.name] = f.is_kernel ? Place{Space::param, p.at} : in_frame(p.bytes);
    for (const Parameter& p : f.results) places_[p.name] = in_frame(p.bytes);
    for (std::vector<Parameter>* list : {&f.parameters, &f.results})
      for (Parameter& p : *list) p.at = places_[p.name].at;
    for (const auto& [name, variable] : f.module->shared)
      if (f.body.find(name) != std::string::npos) place_shared(name, variable);
  }

  void run() {
    const std::string_view body = f_.body;
    line_ = f_.line;
    for (size_t at = 0; at < body.size();) {
      const char c = body[at];
      if (std::isspace(static_cast<unsigned char>(c))) {
        line_ += c == '\n';
        ++at;
      } else if (c == '{') {
        scopes_.emplace_back();
        ++at;
      } else if (c == '}') {
        scopes_.pop_back();
        ++at;
      } else {
        const std::string_view rest = body.substr(at);
        const size_t colon = rest.find_first_of(": \t\n;{");
        const bool is_label = colon < rest.size() && rest[colon] == ':';
        const size_t end = is_label ? colon : end_of_statement(rest);
        if (is_label)
          labels_[std::string(rest.substr(0, end))] = static_cast<int>(f_.code.size());
        else
          statement(rest.substr(0, end));
        line_ += static_cast<int>(std::ranges::count(rest.substr(0, end), '\n'));
        at += end + 1;
      }
    }
    for (Instruction& in : f_.code)
      if (in.flow == Flow::branch) in.target = label(in);
    Instruction end;
    end.flow = Flow::exit;
    end.text = "end of the function";
    f_.code.push_back(end);
  }

 private:
  [[noreturn]] void refuse(std::string_view statement) const {
    throw Fault(Fault::Kind::refused, "ptx: " + f_.name + ": line " + std::to_string(line_) +
                                          ": not executed here: " + std::string(statement));
  }

  static size_t end_of_statement(std::string_view rest) {
    int depth = 0;
    for (size_t i = 0; i < rest.size(); ++i) {
      depth += (rest[i] == '{') - (rest[i] == '}');
      if (rest[i] == ';' && depth == 0) return i;
    }
    return rest.size();
  }

  Place in_frame(size_t bytes) {
    const Place p{Space::local, aligned(f_.frame_bytes, 16)};
    f_.frame_bytes = p.at + bytes;
    return p;
  }
  void place_shared(const std::string& name, const SharedVariable& variable) {
    const size_t at = aligned(f_.shared_bytes, std::max<size_t>(16, variable.alignment));
    places_[name] = {Space::shared, variable.is_dynamic ? kDynamicShared : at};
    if (!variable.is_dynamic) f_.shared_bytes = at + variable.bytes;
  }

  int fresh() { return f_.registers++; }
  int constant(uint64_t value) {
    const auto [at, is_new] = constants_.try_emplace(value, 0);
    if (is_new) f_.constants.emplace_back(at->second = fresh(), value);
    return at->second;
  }
  int named_register(const std::string& name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto at = scope->find(name); at != scope->end()) return at->second;
    const auto [at, is_new] = scopes_.front().try_emplace(name, 0);
    if (!is_new) return at->second;
    at->second = fresh();
    static const std::map<std::string, Special> special{
        {"%tid.x", Special::tid_x},       {"%tid.y", Special::tid_y},       {"%tid.z", Special::tid_z},
        {"%ntid.x", Special::ntid_x},     {"%ntid.y", Special::ntid_y},     {"%ntid.z", Special::ntid_z},
        {"%ctaid.x", Special::ctaid_x},   {"%ctaid.y", Special::ctaid_y},   {"%ctaid.z", Special::ctaid_z},
        {"%nctaid.x", Special::nctaid_x}, {"%nctaid.y", Special::nctaid_y}, {"%nctaid.z", Special::nctaid_z},
        {"%laneid", Special::laneid}};
    if (const auto s = special.find(name); s != special.end()) f_.specials.emplace_back(at->second, s->second);
    return at->second;
  }
  // The number of the register that an operand names. Constants and addresses have registers, too. -1: none.
  int value(const std::string& text) {
    if (text == "_") return fresh();
    if (text.starts_with('%')) return named_register(text);
    if (const auto n = number(text)) return constant(*n);
    if (const auto at = places_.find(text); at != places_.end()) return constant(at->second.at);
    if (const auto at = scopes_.back().find(text); at != scopes_.back().end()) return at->second;
    return -1;
  }

  // [%rd1+-8], [name+16], [name]
  Operand address(std::string_view text) {
    Operand o;
    o.kind = Operand::Kind::address;
    const size_t plus = text.find('+');
    const std::string base(trimmed(text.substr(0, plus)));
    if (plus != text.npos) {
      const auto offset = number(trimmed(text.substr(plus + 1)));
      if (!offset) return o;
      o.offset = static_cast<int64_t>(*offset);
    }
    if (const auto at = places_.find(base); at != places_.end()) o.space = at->second.space;
    o.reg = value(base);
    return o;
  }
  Operand operand(const std::string& text) {
    if (text.front() == '[') return address(std::string_view(text).substr(1, text.size() - 2));
    Operand o;
    if (text.front() == '{') {
      o.kind = Operand::Kind::vector;
      for (const std::string& part : split_commas(std::string_view(text).substr(1, text.size() - 2)))
        o.parts.push_back(value(part));
      if (std::ranges::count(o.parts, -1)) o.parts.clear();
      return o;
    }
    o.reg = value(text);
    if (o.reg < 0) o.kind = Operand::Kind::name;
    o.name = text;
    return o;
  }

  void declare(const std::vector<std::string>& parts, std::string_view statement) {
    if (parts[0] == ".pragma") return;
    if (parts[0] == ".reg") {
      for (const std::string& name : split_commas(statement.substr(statement.find(parts[1]) + parts[1].size())))
        if (name.find('<') == name.npos) scopes_.back()[name] = fresh();
    } else if (parts[0] == ".param") {
      const Declaration d = declaration(statement);
      places_[d.name] = in_frame(d.bytes);
    } else if (parts[0] == ".shared") {
      const Declaration d = declaration(statement);
      place_shared(d.name, {d.alignment, d.bytes, d.is_extern});
    } else {
      refuse(statement);
    }
  }

  void statement(std::string_view statement) {
    const auto parts = words(statement);
    if (parts[0].starts_with('.')) return declare(parts, statement);
    Instruction in;
    in.text = "line " + std::to_string(line_) + ": ";
    for (const std::string& word : parts) in.text += (word == parts[0] ? "" : " ") + word;
    const bool is_guarded = parts[0].starts_with('@');
    if (is_guarded) {
      in.unless = parts[0][1] == '!';
      in.predicate = named_register(parts[0].substr(in.unless ? 2 : 1));
    }
    const std::string& name = parts[is_guarded];
    const std::string_view list =
        statement.substr(statement.find(name, is_guarded ? parts[0].size() : 0) + name.size());
    if (name == "call.uni" || name == "call") {
      call(in, list);
    } else {
      for (const std::string& one : split_commas(list)) {  // "%r1|%p1" are two
        const size_t bar = one.find('|');
        in.operands.push_back(operand(one.substr(0, bar)));
        if (bar != one.npos) in.operands.push_back(operand(one.substr(bar + 1)));
      }
    }
    in.execute = select(name, in);
    if (!in.execute) refuse(statement);
    f_.code.push_back(std::move(in));
  }

  // "(results), function, (arguments)"
  void call(Instruction& in, std::string_view list) {
    for (const std::string& part : split_commas(list)) {
      if (!part.starts_with('(')) {
        const auto at = f_.module->functions.find(part);
        if (at == f_.module->functions.end() || at->second.get() == &f_) refuse(in.text);
        in.callee = at->second.get();
        decode(*in.callee);
        continue;
      }
      for (const std::string& name : split_commas(std::string_view(part).substr(1, part.size() - 2))) {
        const auto place = places_.find(name);
        if (place == places_.end()) refuse(in.text);
        (in.callee ? in.arguments : in.results).push_back(static_cast<int>(place->second.at));
      }
    }
    if (!in.callee || in.arguments.size() != in.callee->parameters.size() ||
        in.results.size() != in.callee->results.size())
      refuse(in.text);
  }

  int label(const Instruction& in) const {
    const auto at = in.operands.empty() ? labels_.end() : labels_.find(in.operands[0].name);
    if (at == labels_.end()) refuse(in.text);
    return at->second;
  }

  Function& f_;
  int line_ = 0;
  std::vector<std::map<std::string, int>> scopes_;  // names of registers in nested blocks
  std::map<uint64_t, int> constants_;
  std::map<std::string, Place, std::less<>> places_;
  std::map<std::string, int> labels_;
};

}  // namespace

void decode(Function& f) {
  if (f.decoded) return;
  Decoder(f).run();
  f.decoded = true;
}

}  // namespace isonorm::ptx
