// SPDX-License-Identifier: Apache-2.0
// Changes to a pod from one list in two forms: as a JSON patch for the API server, and applied, so
// that the resulting pod can be checked.
#pragma once

#include "base/json/patch.hpp"

#include <string>
#include <vector>

namespace gantry::admission {

class PodEdits {
 public:
  // The object of the member must exist. `value` is JSON text.
  void set(json::Path path, std::string value);
  void remove(json::Path path);  // elements by their index in the original

  bool empty() const { return sets_.empty() && removals_.empty(); }
  std::string text() const;  // RFC 6902
  Result<std::string> applied(const json::Document& document) const;

 private:
  struct Set {
    json::Path path;
    std::string value;
  };
  std::vector<Set> sets_;
  std::vector<json::Path> removals_;
};

}  // namespace gantry::admission
