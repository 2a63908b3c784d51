// SPDX-License-Identifier: Apache-2.0
// A slot as a share of the keeper's, and as what its container sees.
#pragma once

#include "ask/ask.hpp"
#include "ask/node.hpp"
#include "ask/placement.hpp"
#include "base/result.hpp"
#include "keeper/client.hpp"
#include "share/share.hpp"

#include <string>
#include <vector>

namespace gantry::slots {

// Unsupported where the keeper has no words for it: different amounts on its cards that are no per
// cent of each.
Result<share::ShareText> share_text(const std::string& name, const ask::PodAsk& ask,
                                    const ask::ContainerAsk& container,
                                    const std::vector<ask::Part>& parts);

// Makes the share, or gives the one of that name what it shall have: a container that starts again
// keeps its own. Busy where processes of an earlier container still have the name, or where other
// shares leave no room.
Status ensure_share(keeper::Client& keeper, const share::ShareText& wanted);

// Removes it unless processes have it: Busy. One that is not there is fine.
Status end_share(keeper::Client& keeper, const std::string& name);

// Variables that programs of gpushare's and HAMi's users read. They inform; the fence holds.
std::vector<std::string> variables(const ask::PodAsk& ask, const ask::Placement& placement,
                                   const std::vector<ask::Part>& parts, const ask::NodeFacts& node);

}  // namespace gantry::slots
