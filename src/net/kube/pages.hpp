// SPDX-License-Identifier: Apache-2.0
// A list read once, page by page: all pods of a large cluster are more than one document may hold.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "net/kube/api.hpp"

#include <functional>
#include <string>

namespace gantry::kube {

using OnPage = std::function<void(json::Value list)>;
using GetPage = std::function<Result<json::Document>(const std::string& path)>;

// `path` may have a question ("?fieldSelector=..."). A page that is too large for one document is
// asked for again by halves. Corrupt where a list has no end.
Status each_page(const GetPage& get, const std::string& path, const OnPage& take);
Status each_page(Api& api, const std::string& path, const OnPage& take);

// Pods that hold something: neither succeeded nor failed.
inline constexpr const char* kActivePodsPath =
    "/api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

}  // namespace gantry::kube
