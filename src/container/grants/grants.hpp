// SPDX-License-Identifier: Apache-2.0
// /run/gantry/grants/POD-UID/CONTAINER/grant.json: written by the node agent before a container
// starts, believed by the OCI runtime. One format, read and written here.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/grant.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::grants {

inline constexpr std::string_view kGrantsDirectory = "/run/gantry/grants";

// One directory entry and no way out: no slash, no control character, more than dots, at most 253
// characters.
bool is_valid_name(std::string_view name);

// Where a container's grant is; Invalid for a name that is none.
Result<std::string> grant_path(std::string_view pod_uid, std::string_view container);

std::string to_json(const model::Grant& grant);  // JSON
// Corrupt unless `devices` is a list of texts; fields nobody knows are passed over.
Result<model::Grant> parse(std::string_view text);

// NotFound when nothing was granted; Corrupt for half a grant; Denied, as sys::read_trusted has it,
// for one that somebody other than root could have written.
Result<model::Grant> read(const sys::Host& host, std::string_view pod_uid,
                          std::string_view container);

// By rename, readable for all, below directories that root alone can write.
Status write(const sys::Host& host, std::string_view pod_uid, std::string_view container,
             const model::Grant& grant);

struct GrantFile {
  std::string pod_uid;
  std::string container;
  model::Grant grant;
  bool operator==(const GrantFile&) const = default;
};
// By pod and container. What cannot be read is left out.
Result<std::vector<GrantFile>> list(const sys::Host& host);

// Everything of one pod: grants, sockets, what else is there. A pod without any is fine.
Status remove(const sys::Host& host, std::string_view pod_uid);

// Of one container.
Status remove(const sys::Host& host, std::string_view pod_uid, std::string_view container);

// Everything of pods that are none of these; gives the removed ones.
Result<std::vector<std::string>> remove_except(const sys::Host& host,
                                               const std::set<std::string>& pod_uids);

}  // namespace gantry::grants
