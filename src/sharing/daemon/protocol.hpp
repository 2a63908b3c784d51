// SPDX-License-Identifier: Apache-2.0
// The protocol of the control socket: a request is one JSON object, an answer another.
//   {"ask":"hold","share":{...},"overcommit":false}   {"ok":true,"shares":[{...}]}
//   {"ask":"remove","name":"a"}                       {"ok":false,"code":"not found","error":"..."}
// Daemons and clients of the last version take part: names and words must not change, and readers
// of responses ignore what they do not know.
#pragma once

#include "base/core/result.hpp"
#include "sharing/daemon/share_state.hpp"
#include "sharing/policy/share.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::daemon {

enum class RequestKind : std::uint8_t { Create, Hold, Remove, Set, Show, List, Adopt, Release };

struct Request {
  RequestKind ask = RequestKind::List;
  std::string name;                    // Remove, Set, Show, Adopt
  std::optional<policy::Share> share;  // Create, Hold
  policy::ShareChanges changes;        // Set
  policy::Overcommit overcommit = policy::Overcommit::Refused;
  pid_t pid = 0;           // Adopt
  bool contained = false;  // Adopt: a container's first process, which stays in its own cgroup
};

std::string to_line(const Request& question);  // without newline
// Corrupt or Invalid, with what is wrong: the bytes may be anything.
Result<Request> parse_request(std::string_view line);

std::string to_response(const std::vector<ShareState>& shares);
// "error" is the whole sentence, "remedy" repeats the part of it that helps.
std::string to_response(const Error& error);
// Returns the error that the daemon sent, or its shares.
Result<std::vector<ShareState>> parse_response(std::string_view line);

}  // namespace gantry::daemon
