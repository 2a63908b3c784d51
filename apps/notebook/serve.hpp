// SPDX-License-Identifier: Apache-2.0
// The server around a notebook, until a signal ends it.
#pragma once

#include "notebook/notebook.hpp"

#include <cstdio>

namespace gantry::workload {

struct ServeOptions {
  std::string listen = ":8888";
  NotebookOptions notebook;
};

// Prints where it listens. Returns after SIGTERM or SIGINT, which it takes itself: as process 1 of
// a container it has no default action for them.
Status serve(const ServeOptions& options, std::FILE* out);

}  // namespace gantry::workload
