// SPDX-License-Identifier: Apache-2.0
// What the notebook shows: a page for people and a JSON object for its script.
#pragma once

#include "notebook/notebook.hpp"

namespace gantry::workload {

struct View {
  const Sight& sight;
  const std::optional<FinishedRun>& last;
  bool running = false;
  int runs = 0;  // the running one counted
};

// Which of the two it was, in one sentence: the GPU or the connection.
std::string verdict_of(const View& view);

std::string page_of(const View& view);
std::string status_of(const View& view);

}  // namespace gantry::workload
