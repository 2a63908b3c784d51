// SPDX-License-Identifier: Apache-2.0
// A pod's Jupyter, asked from both sides: in the pod, and by the URL that a browser uses.
#pragma once

#include "base/json/document.hpp"
#include "node/why/jupyter.hpp"

#include <string>

namespace gantry::why {

struct NotebookView {
  JupyterAnswer direct;  // without the proxy
  JupyterAnswer by_url;  // as the browser goes
  bool on_node = false;  // `direct` was asked in the pod's own network
  std::string name_space;
  std::string pod;
  std::string node;
};

// `network`: a descriptor of the pod's network namespace; -1 off its node. Without the right to
// enter it, the pod's address is asked from here.
NotebookView ask_notebook(json::Value pod, const JupyterUrl& url, int network);

}  // namespace gantry::why
