// SPDX-License-Identifier: Apache-2.0
// The cluster's shared GPUs as the API server's lists show them, for people who ask once: the
// scheduler's own book, filled by the same functions, so that nobody counts in another way than it.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "cluster/placement/cluster.hpp"
#include "cluster/scheduler/book.hpp"
#include "net/kube/pages.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gantry::scheduler {

struct Survey {
  std::unique_ptr<scheduler::Book> book;
  std::vector<std::string> notes;  // objects that could not be read, each in a sentence

  std::vector<placement::NodeView> views() const;  // nodes with shared GPUs, by name
};

using SeeNode = std::function<void(json::Value node)>;

// All nodes and the pods that hold something, or one node and its pods; and, where they may be
// read, the ConfigMaps that bar cards. NotFound where there is no
// such node; Denied, with the rights that are missing.
Result<Survey> survey(const kube::Get& get, const std::string& node = "",
                      const SeeNode& see_node = {});

// The namespace's quotas; without the right to read them there are none.
void add_quotas(Survey& survey, const kube::Get& get, const std::string& name_space);

}  // namespace gantry::scheduler
