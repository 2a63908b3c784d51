// SPDX-License-Identifier: Apache-2.0
// Serves a notebook until a signal ends it.
#pragma once

#include "notebook/notebook.hpp"

#include <cstdio>

namespace gantry::workload {

struct ServeOptions {
  std::string listen = ":8888";
  NotebookOptions notebook;
};

// Prints the port. Returns after SIGTERM or SIGINT. It handles these signals itself, because
// process 1 of a container has no default action for them.
Status serve(const ServeOptions& options, std::FILE* out);

}  // namespace gantry::workload
