// SPDX-License-Identifier: Apache-2.0
// What the notebook shows: a page for people and a JSON object for its script.
#pragma once

#include "notebook/notebook.hpp"

namespace gantry::workload {

struct PageState {
  const GpuList& sight;
  const std::optional<FinishedRun>& last;
  bool running = false;
  int runs = 0;  // the running one counted
};

// Which of the two it was, in one sentence: the GPU or the connection.
std::string describe_verdict(const PageState& view);

std::string render_page(const PageState& view);
std::string status_json(const PageState& view);

}  // namespace gantry::workload
