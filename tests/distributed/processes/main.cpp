// The tests of groups on a launcher's processes: mpirun -np 3 rank_processes [WORD].
//   no word           runs test::check_group()
//   backward [TIMES]  trains a model whose backward calls the group
//   any other word    selects the way in which rank 1 fails
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "distributed/world.h"
#include "tests/distributed/normed_stack.h"
#include "tests/distributed/suite.h"

using namespace isonorm;

namespace {

void fail(distributed::Group& g, const std::string& how) {
  const Tensor x = empty({1000}, {DType::f32});
  g.barrier();
  if (g.rank() == 1) {
    if (how == "throws") check(false, "no such file");
    if (how == "ends") return;
    if (how == "sleeps") std::this_thread::sleep_for(std::chrono::hours(1));
    if (how == "killed") std::raise(SIGKILL);
    if (how == "other") return g.barrier();
    if (how == "size") return g.all_reduce(empty({10}, {DType::f32}));
  }
  g.all_reduce(x);
}

}  // namespace

int main(int argc, char** argv) try {
  distributed::Group& g = distributed::world();
  if (argc > 1 && argv[1] == std::string("backward"))
    for (int times = argc > 2 ? std::stoi(argv[2]) : 1; times > 0; --times) test::check_normed_stack(g);
  else if (argc > 1)
    fail(g, argv[1]);
  else
    test::check_group(g);
  std::printf("rank %d of %d\n", g.rank(), g.size());
  return 0;
} catch (const std::exception& e) {
  return distributed::ended_by(e, "rank_processes");
}
