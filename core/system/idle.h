// How OpenMP's threads wait for work.
#pragma once

namespace isonorm {

// Threads that wait for work spin by default, which on a machine whose cores are shared takes from the one thread that
// has work: steps become several times slower. libgomp reads its settings only when it is loaded, so this sets
// OMP_WAIT_POLICY=passive with a short spin and starts the program once more; where the environment says anything about
// waiting already, it does nothing. Call it first in main().
void wait_quietly(char** argv);

}  // namespace isonorm
