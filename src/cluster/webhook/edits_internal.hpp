// SPDX-License-Identifier: Apache-2.0
// Changes to a pod, said twice from one list: as a JSON patch for the API server, and applied, so
// that what will be there can be judged.
#pragma once

#include "base/json/patch.hpp"

#include <string>
#include <vector>

namespace gantry::webhook {

class PodEdits {
 public:
  // The member's object must be there. `value` is JSON text.
  void set(json::Path path, std::string value);
  void remove(json::Path path);  // elements by their number in the original

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

}  // namespace gantry::webhook
