// SPDX-License-Identifier: Apache-2.0
// The notebook's output: an HTML page, and a JSON object for the page's script.
#pragma once

#include "notebook/notebook.hpp"

namespace gantry::workload {

struct PageState {
  const GpuList& sight;
  const std::optional<FinishedRun>& last;
  bool running = false;
  int runs = 0;  // including the running one
};

// One sentence that says which failed: the GPU or the connection.
std::string describe_verdict(const PageState& view);

std::string render_page(const PageState& view);
std::string status_json(const PageState& view);

}  // namespace gantry::workload
