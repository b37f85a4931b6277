// The line protocol by which benchmarks/sides.py lets several programs work alternately. One JSON object a line:
//
//   out  {"event": "ready", ...}       when what is measured is built and warm
//   in   go N WORK...                  do WORK N times
//   out  {"ms": [...], ...}            the time of each
//   in   end                           or end of input
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace isonorm::bench {

// Does a work `times` times; what it returns is the answer. Throws on an unknown work.
using Work = std::function<nlohmann::json(int times, const std::vector<std::string>& work)>;

// Says that it is ready and, with `ready`, what it is; then answers until the end.
void serve(nlohmann::json ready, const Work& work);

// CPU, threads, BLAS and compiler, as the ready line of every program of ours has them.
nlohmann::json environment();

}  // namespace isonorm::bench
