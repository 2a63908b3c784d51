// SPDX-License-Identifier: Apache-2.0
// Reads a list once, page by page, because all pods of a large cluster do not fit into one
// document.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "net/kube/api.hpp"

#include <functional>
#include <string>

namespace gantry::kube {

using OnPage = std::function<void(json::Value list)>;
using GetPage = std::function<Result<json::Document>(const std::string& path)>;

// `path` may have a query ("?fieldSelector=..."). If a page is too large for one document, it is
// requested again with half the size; other errors end the list. Corrupt if it does not end.
Status each_page(const GetPage& get, const std::string& path, const OnPage& take);
Status each_page(Api& api, const std::string& path, const OnPage& take);

// Pods that use resources: neither succeeded nor failed.
inline constexpr const char* kActivePodsPath =
    "/api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

}  // namespace gantry::kube
