// SPDX-License-Identifier: Apache-2.0
// The extender's wire format, version 1: Go's field names, read in any case, written with capitals.
// Requests are read in place: views point into the given body, or into `unescaped`.
#pragma once

#include "base/core/object_ref.hpp"
#include "base/core/result.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::scheduler {

// Arguments of filter and prioritize.
struct ExtenderArgs {
  std::string_view pod;                 // its JSON; "" if there is none
  std::vector<std::string_view> names;  // from NodeNames, or from the items of Nodes
  // The Node objects, like `names`; empty if the request has only names.
  std::vector<std::string_view> items;
  bool has_names = false;
  bool has_nodes = false;
  std::deque<std::string> unescaped;  // storage for names with escapes
};
// Invalid, with a sentence, if the body is not such a request.
Result<ExtenderArgs> read_args(std::string_view body);

struct ExtenderBindingArgs {
  PodRef pod;
  std::string node;
};
Result<ExtenderBindingArgs> read_bind_args(std::string_view body);

struct NodeVictims {
  std::vector<std::string> uids;
  std::int64_t pdb_violations = 0;
};
struct ExtenderPreemptionArgs {
  std::string_view pod;
  std::map<std::string, NodeVictims> nodes;  // for both forms
};
Result<ExtenderPreemptionArgs> read_preempt_args(std::string_view body);

// ---- answers

struct ExtenderFilterResult {
  // Like ExtenderArgs::names. The reason as a JSON string with its quotes; nullptr if the node
  // fits.
  struct Verdict {
    const std::string* reason = nullptr;
    bool resolvable = false;
  };
  std::vector<Verdict> verdicts;
};
std::string write_filter(const ExtenderArgs& args, const ExtenderFilterResult& answer);
std::string write_filter_error(std::string_view error);
std::string write_preempt(const std::map<std::string, NodeVictims>& nodes);
std::string write_bind(std::string_view error);  // "": success

// Appends a name or sentence to `out` as a JSON string; fast if no escapes are needed.
void append_quoted(std::string& out, std::string_view text);

}  // namespace gantry::scheduler
