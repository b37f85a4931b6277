#include "training/records/manifest_html.h"

#include <cmath>

#include "core/error.h"
#include "reports/svg.h"

namespace isonorm::training {

std::string environment_html(const Manifest& m, double seconds) {
  const auto row = [](const char* name, const std::string& value) {
    return text("<tr><th>", name, "</th><td>", reports::escaped(value), "</td></tr>\n");
  };
  return "<h2>Environment</h2>\n<figure><table class=\"environment\">\n" + row("isonorm", m.version) +
         row("compiler", m.compiler + " " + m.flags) + row("CPU", m.cpu) + row("kernels", m.instructions) +
         row("BLAS", text(m.blas_version, ", core ", m.blas_core, ", ", m.blas_flavour, " flavour")) +
         row("threads", text(m.threads)) + row("dtype", m.dtype) + row("seed", text(m.seed)) +
         (m.data_sha256.empty() ? "" : row("data, SHA-256", m.data_sha256)) +
         row("time", text(std::round(seconds), " s")) + "</table></figure>\n";
}

}  // namespace isonorm::training
