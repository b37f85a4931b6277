#include "nn/evaluation_mode.h"

#include <utility>

namespace isonorm::nn {
namespace {
thread_local bool evaluating = false;
}  // namespace

EvaluationMode::EvaluationMode(bool on) : before_(std::exchange(evaluating, on)) {}
EvaluationMode::~EvaluationMode() { evaluating = before_; }
bool EvaluationMode::is_on() { return evaluating; }

}  // namespace isonorm::nn
