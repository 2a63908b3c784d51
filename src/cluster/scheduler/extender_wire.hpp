// SPDX-License-Identifier: Apache-2.0
// The extender's wire, version 1: Go's field names, any case taken, capitals given. Requests are
// read where they lie; views point into the body that was given, or into `unescaped`.
#pragma once

#include "base/core/result.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::scheduler {

// Of filter and prioritize.
struct ExtenderArgs {
  std::string_view pod;                 // its JSON; "" where there is none
  std::vector<std::string_view> names;  // of NodeNames, or of the items of Nodes
  std::vector<std::string_view> items;  // the Node objects, as names; empty where only names came
  bool has_names = false;
  bool has_nodes = false;
  std::deque<std::string> unescaped;  // what names with a backslash point into
};
// Invalid, in a sentence, for what is no such request.
Result<ExtenderArgs> read_args(std::string_view body);

struct ExtenderBindingArgs {
  std::string pod;
  std::string name_space;
  std::string uid;
  std::string node;
};
Result<ExtenderBindingArgs> read_bind_args(std::string_view body);

struct NodeVictims {
  std::vector<std::string> uids;
  std::int64_t pdb_violations = 0;
};
struct ExtenderPreemptionArgs {
  std::string_view pod;
  std::map<std::string, NodeVictims> nodes;  // both forms
};
Result<ExtenderPreemptionArgs> read_preempt_args(std::string_view body);

// ---- answers

struct ExtenderFilterResult {
  // As ExtenderArgs::names; the reason's JSON string with its quotes, nullptr where the node may
  // have it.
  struct Verdict {
    const std::string* reason = nullptr;
    bool resolvable = false;
  };
  std::vector<Verdict> verdicts;
};
std::string write_filter(const ExtenderArgs& args, const ExtenderFilterResult& answer);
std::string write_filter_error(std::string_view error);
std::string write_preempt(const std::map<std::string, NodeVictims>& nodes);
std::string write_bind(std::string_view error);  // "": done

// A name or sentence as a JSON string, at the end of `out`; cheap for what needs no escapes.
void append_quoted(std::string& out, std::string_view text);

}  // namespace gantry::scheduler
