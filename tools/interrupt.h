// Ctrl-C (SIGINT), or SIGTERM, as a flag that the program asks for between two steps.
#pragma once

namespace isonorm::tools {

// From now on the first SIGINT and the first SIGTERM set a flag; a second one ends the process at once.
void catch_interrupt();
bool interrupted();

}  // namespace isonorm::tools
