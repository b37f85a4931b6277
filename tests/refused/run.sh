#!/usr/bin/env bash
# run.sh SOURCE COMPILER...
# Lines that must not compile. Each gives one error, and that error says what to write instead.
set -euo pipefail
source=$1 compiler=("${@:2}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'refused: %s\n' "$*" >&2 && exit 1; }

# says SENTENCE LINE: of a function in which these modules have names.
says() {
  cat >"$work/line.cpp" <<S
#include <functional>
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/container.h"
#include "nn/conv.h"
#include "nn/recurrent/recurrent.h"
using namespace isonorm;
struct Named : nn::Module {
  Named() : layer(3, 3) {}
  void use() { add("l", layer); }
  nn::Linear layer;
};
struct Wide : nn::Module {
  explicit Wide(int width) : width(width) {}
  int width;
};
void use(nn::Sequential& net, const nn::Sequential& fixed, nn::Linear& head, nn::ModuleList<nn::Linear>& list, Wide& wide) {
  (void)net, (void)fixed, (void)head, (void)list, (void)wide;
  $2
}
S
  [[ $2 == *Named* ]] || sed -i 's/add("l", layer);//' "$work/line.cpp"
  if "${compiler[@]}" -std=c++20 -fsyntax-only -I"$source" "$work/line.cpp" 2>"$work/said"; then fail "it compiles: $2"; fi
  [[ $(grep -c 'error:' "$work/said") == 1 ]] || fail "more than one error of: $2"$'\n'"$(cat "$work/said")"
  grep -qF -- "$1" "$work/said" || fail "expected '$1' of: $2"$'\n'"$(cat "$work/said")"
}

ways='give std::move(m), a copy by nn::clone(m), or the same parameters by nn::shared(m)'
says "$ways" 'nn::Sequential actor(net, nn::Linear(3, 3));'
says "$ways" 'auto copy = nn::Sequential(net);'
says "$ways" '[net] { (void)net; }();'
says "$ways" 'net.append(head);'
says "$ways" 'list.append(head);'
says "$ways" 'net.replace("0", head);'
says "$ways" 'net.append(std::move(fixed));'
says "$ways" 'Named named;'
deleted='give std::move(m), nn::clone(m) or nn::shared(m)'
says "$deleted" 'auto copy = fixed;'
says 'the argument is no nn::Module; write nn::Relu() for relu' 'net.append(relu);'
says 'nn::MultiheadAttention(12, {.heads = 3})' 'nn::MultiheadAttention attention(12, 3);'
says 'nn::Gru({.inputs = 8, .hidden = 32})' 'nn::Gru gru(8, 32);'
says 'nn::Lstm({.inputs = 8, .hidden = 32})' 'nn::Lstm lstm(8, 32);'
says "give them, nn::clone(m, 3, 4)" '(void)nn::clone(wide);'

# Names of functions that a script calls are not those of classes that this library's headers take from std. (logical_and, logical_or and
# logical_not are in <functional>, so a script that wants them says isonorm::.)
{
  echo '#include "isonorm.h"'
  echo 'using namespace std;'
  echo 'using namespace isonorm;'
  sed -n 's/^| `\([a-z_0-9]*\)(.*/\1/p' "$source/docs/ops.md" | sort -u | grep -v '^logical_' | awk '{ print "auto call" NR "() { return " $1 "(nullptr); }" }'
} >"$work/names.cpp"
"${compiler[@]}" -std=c++20 -fsyntax-only -I"$source" "$work/names.cpp" 2>"$work/said" || true
! grep -E 'reference to .* is ambiguous' "$work/said" >&2 || fail "a name of docs/ops.md is ambiguous behind using namespace std"
echo "14 lines are refused with one sentence each"
