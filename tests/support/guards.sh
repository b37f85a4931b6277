#!/bin/sh
# A guard object without a name ends at once: the compiler must warn about every such statement.  guards.sh SOURCE
# COMPILER
set -e
cd "$1"
headers='autograd/grad_mode.h autograd/rounded_masters.h core/error.h core/memory/allocator.h core/random.h nn/modes.h
  nn/module_scope.h streams/parametrize.h'
{
  for h in $headers; do echo "#include \"$h\""; done
  echo 'using namespace isonorm;'
  echo 'void all(const nn::Module& module, Masters& masters, const Generator& generator, Allocator& allocator, nn::Module& model, streams::StreamWatch::See see) {'
  echo '  NoGrad();'
  echo '  Recording();'
  echo '  AnomalyMode();'
  echo '  SaveActivations{DType::bf16};'
  echo '  UseReference();'
  echo '  RoundedMasters{masters};'
  echo '  DrawsFrom{generator};'
  echo '  Scope("name");'
  echo '  UseAllocator(kCpu, allocator);'
  echo '  nn::EvaluationMode();'
  echo '  nn::ModuleScope{module};'
  echo '  streams::StreamWatch{model, see};'
  echo '}'
} | "$2" -std=c++20 -I. -fsyntax-only -x c++ - 2>&1 | grep -c 'warning: .*nodiscard' |
  { read -r found; [ "$found" = 12 ] || { echo "guards: the compiler warns of $found of 12 guards without a name"; exit 1; }; }
