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

// The error with its cause and its remedy, on one line.
std::string describe_failure(const JobResult& result);

// Says which failed: the GPU or the connection.
std::string describe_verdict(const PageState& view);

std::string render_page(const PageState& view);
std::string status_json(const PageState& view);

}  // namespace gantry::workload
