// isonorm completion bash|zsh and isonorm man [VERB]: scripts and manual pages, made from the same tables as --help.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <functional>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "core/system/terminal.h"
#include "tools/help.h"
#include "tools/verb.h"

namespace isonorm::tools {
namespace {

std::vector<CLI::Option*> options_of(CLI::App& verb) {
  return verb.get_options([](const CLI::Option* option) { return !option->get_lnames().empty(); });
}

std::string with_escapes(const std::string& s, const std::function<std::string(char)>& escaped) {
  std::string all;
  for (const char c : s) all += escaped(c);
  return all;
}

std::string bash(CLI::App& app) {
  std::string verbs, cases;
  for (CLI::App* verb : verbs_of(app)) {
    verbs += text(verbs.empty() ? "" : " ", verb->get_name());
    std::string words;
    for (const CLI::Option* option : options_of(*verb)) {
      const std::string word = "--" + option->get_lnames().front();
      words += text(words.empty() ? "" : " ", word);
      if (const std::string c = choices(*option); !c.empty())
        cases += text("    ", verb->get_name(), ',', word, ") words=\"", c, "\" ;;\n");
      else if (!is_flag(*option))
        cases += text("    ", verb->get_name(), ',', word, ") words= ;;\n");
    }
    cases += text("    ", verb->get_name(), ",*) [[ $cur == -* ]] && words=\"", words, "\" ;;\n");
  }
  return text(
      "_isonorm() {\n  local cur=${COMP_WORDS[COMP_CWORD]} words=\n  if ((COMP_CWORD == 1)); then\n    words=\"", verbs,
      " --help --version\"\n  else\n    case ${COMP_WORDS[1]},${COMP_WORDS[COMP_CWORD-1]} in\n", cases,
      "    esac\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
      "complete -o default -F _isonorm isonorm\n");
}

std::string zsh(CLI::App& app) {
  const auto quoted = [](const std::string& s) {
    return with_escapes(s, [](char c) {
      return c == '\''                                       ? "'\\''"
             : c == '[' || c == ']' || c == ':' || c == '\\' ? std::string{'\\', c}
                                                             : std::string{c};
    });
  };
  std::string verbs, cases;
  for (CLI::App* verb : verbs_of(app)) {
    verbs += text("    '", verb->get_name(), ':', quoted(verb->get_description()), "'\n");
    cases += text("    ", verb->get_name(), ") _arguments");
    for (const CLI::Option* option : options_of(*verb)) {
      const std::string c = choices(*option);
      cases += text(" \\\n      '--", option->get_lnames().front(), '[', quoted(option->get_description()), ']',
                    is_flag(*option) ? ""
                    : c.empty()      ? ":value:_files"
                                     : text(":value:(", c, ')'),
                    '\'');
    }
    cases += " \\\n      '*:file:_files' ;;\n";
  }
  return text("#compdef isonorm\n_isonorm() {\n  local -a verbs=(\n", verbs,
              "  )\n  if ((CURRENT == 2)); then _describe verb verbs; return; fi\n  local verb=$words[2]\n"
              "  shift words; ((CURRENT--))\n  case $verb in\n",
              cases,
              "  esac\n}\n# as a file of $fpath it is the function, read by eval it is what defines it\n"
              "if [[ $funcstack[1] == _isonorm ]]; then _isonorm \"$@\"; else compdef _isonorm isonorm; fi\n");
}

std::string roff(const std::string& s) {
  const std::string escaped = with_escapes(s, [](char c) {
    return c == '\\' ? std::string("\\e") : c == '-' ? std::string("\\-") : std::string{c};
  });
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

std::string page(const CLI::App& app) {
  const Help help = help_of(app);
  std::string name = help.command;
  std::ranges::replace(name, ' ', '-');
  std::string all =
      text(".TH ", name, " 1\n.SH NAME\n", roff(name), " \\- ", roff(help.description), "\n.SH SYNOPSIS\n.B ",
           roff(help.command), '\n', roff(help.usage.substr(help.command.size() + 1)), '\n');
  for (const HelpGroup& group : help.groups) {
    std::string heading = group.heading;
    for (char& c : heading) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    all += text(".SH ", roff(heading), '\n');
    for (const HelpEntry& e : group.entries)
      all += text(".TP\n.B ", roff(e.names), e.value.empty() ? "" : " " + roff(e.value), '\n', roff(e.text), '\n');
  }
  all += ".SH EXAMPLES\n";
  for (const Example& e : help.examples) all += text(".TP\n.B ", roff(e.command), '\n', roff(e.what), '\n');
  std::string notes = roff(help.notes);
  for (size_t at = 0; (at = notes.find('\n', at)) != notes.npos; at += 5) notes.replace(at, 1, "\n.PP\n");
  return all + text(".SH NOTES\n", notes, '\n');
}

}  // namespace

Verb add_completion(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes the words of isonorm in a shell");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  command->footer(
      "bash: source <(isonorm completion bash), in ~/.bashrc for every shell\nzsh: isonorm completion zsh > _isonorm "
      "in a folder of $fpath\n" +
      exit_codes("0 printed"));
  return {command, [&app, shell] {
            print_text(*shell == "bash" ? bash(app) : zsh(app));
            return kOk;
          }};
}

Verb add_man(CLI::App& app, const std::vector<Verb>& verbs) {
  CLI::App* command = app.add_subcommand("man", "Print the manual page of isonorm or of a verb");
  struct Options {
    std::string verb;
    bool results = false;
  };
  auto o = std::make_shared<Options>();
  CLI::Option* verb = command->add_option("VERB", o->verb, "a verb; none: isonorm itself");
  command->add_flag("--results", o->results, "print what --json writes, of every verb, as Markdown: docs/results.md")
      ->excludes(verb);
  command->footer("isonorm man train | man -l -\n" + exit_codes("0 printed"));
  return {command, [&app, &verbs, o] {
            if (o->results) {
              std::vector<const reports::Description*> all;
              for (const Verb& v : verbs) all.insert(all.end(), v.results.begin(), v.results.end());
              print_text(to_markdown(all));
              return kOk;
            }
            const std::vector<CLI::App*> known = verbs_of(app);
            const auto at = std::ranges::find(known, o->verb, [](const CLI::App* v) { return v->get_name(); });
            if (!o->verb.empty() && at == known.end()) throw UsageError(text("there is no verb ", Shown{o->verb, '"'}));
            print_text(page(o->verb.empty() ? app : **at));
            return kOk;
          }};
}

}  // namespace isonorm::tools
