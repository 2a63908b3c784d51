// SPDX-License-Identifier: Apache-2.0
// /run/gantry/grants/POD-UID/CONTAINER/grant.json: the node agent writes it before a container
// starts, and the OCI runtime trusts it. Both use this code to read and write it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/grant.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::grants {

inline constexpr std::string_view kGrantsDirectory = "/run/gantry/grants";

// Returns true if the name is a safe directory entry: no slash, no control character, not only
// dots, at most 253 characters.
bool is_valid_name(std::string_view name);

// The path of a container's grant; Invalid if one of the names is not valid.
Result<std::string> grant_path(std::string_view pod_uid, std::string_view container);

std::string to_json(const model::Grant& grant);  // JSON
// Without the pod's UID. Corrupt if `devices` is not a list of strings; unknown fields are ignored.
Result<model::Grant> parse(std::string_view text);

// NotFound if nothing was granted; Corrupt for an incomplete grant; Denied, as in
// sys::read_trusted, for a file that a user other than root could have written.
Result<model::Grant> read(const sys::Host& host, std::string_view pod_uid,
                          std::string_view container);

// Writes by rename, for the pod with the UID `grant.pod.uid`. Every user can read the file; only
// root can write to its directories.
Status write(const sys::Host& host, std::string_view container, const model::Grant& grant);

struct GrantFile {
  std::string container;
  model::Grant grant;
  bool operator==(const GrantFile&) const = default;
};
// Sorted by pod and container. Skips grants that cannot be read.
Result<std::vector<GrantFile>> list(const sys::Host& host);

// The UIDs of all pods that have a directory here, also of those without a readable grant.
Result<std::vector<std::string>> pods(const sys::Host& host);

// Removes all files of one pod: grants, sockets and others. No error if the pod has none.
Status remove(const sys::Host& host, std::string_view pod_uid);

// Removes the files of one container.
Status remove(const sys::Host& host, std::string_view pod_uid, std::string_view container);

}  // namespace gantry::grants
