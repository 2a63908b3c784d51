// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "cluster/scheduler/extender_wire.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::scheduler {
namespace {

bool plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
}

// The opening bracket, or a comma.
void separate(std::string& out, char open, bool& first) {
  out += first ? open : ',';
  first = false;
}

void append_items(std::string& out, const ExtenderArgs& args, const ExtenderFilterResult& answer) {
  if (!args.has_nodes) {
    out += "null";
    return;
  }
  out += R"({"metadata":{},"items":)";
  bool first = true;
  for (std::size_t i = 0; i < args.items.size(); ++i) {
    if (answer.verdicts[i].reason != nullptr) continue;
    separate(out, '[', first);
    out += args.items[i];
  }
  out += first ? "[]}" : "]}";
}

void append_names(std::string& out, const ExtenderArgs& args, const ExtenderFilterResult& answer) {
  bool first = true;
  for (std::size_t i = 0; i < args.names.size(); ++i) {
    if (answer.verdicts[i].reason != nullptr) continue;
    separate(out, '[', first);
    append_quoted(out, args.names[i]);
  }
  out += first ? "[]" : "]";
}

void append_refused(std::string& out, const ExtenderArgs& args, const ExtenderFilterResult& answer,
                    bool resolvable) {
  bool first = true;
  for (std::size_t i = 0; i < args.names.size(); ++i) {
    const auto& verdict = answer.verdicts[i];
    if (verdict.reason == nullptr || verdict.resolvable != resolvable) continue;
    separate(out, '{', first);
    append_quoted(out, args.names[i]);
    out += ':';
    out += *verdict.reason;
  }
  out += first ? "{}" : "}";
}

// The size of the answer, so that it is not reallocated while it grows.
std::size_t size_of(const ExtenderArgs& args, const ExtenderFilterResult& answer) {
  std::size_t size = 256;
  for (std::size_t i = 0; i < args.names.size(); ++i) {
    size += args.names[i].size() + 4;
    const auto& verdict = answer.verdicts[i];
    if (verdict.reason != nullptr) {
      size += verdict.reason->size();
    } else if (args.has_nodes) {
      size += args.items[i].size() + 1;
    }
  }
  return size;
}

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
  if (!std::all_of(text.begin(), text.end(), plain)) {
    out += json::quote(text);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

std::string write_filter(const ExtenderArgs& args, const ExtenderFilterResult& answer) {
  std::string out;
  out.reserve(size_of(args, answer));
  out += R"({"Nodes":)";
  append_items(out, args, answer);
  out += R"(,"NodeNames":)";
  append_names(out, args, answer);
  out += R"(,"FailedNodes":)";
  append_refused(out, args, answer, true);
  out += R"(,"FailedAndUnresolvableNodes":)";
  append_refused(out, args, answer, false);
  out += R"(,"Error":""})";
  return out;
}

std::string write_filter_error(std::string_view error) {
  return fmt::format(
      R"({{"Nodes":null,"NodeNames":null,"FailedNodes":{{}},"FailedAndUnresolvableNodes":{{}},"Error":{}}})",
      json::quote(error));
}

std::string write_preempt(const std::map<std::string, NodeVictims>& nodes) {
  std::string out = R"({"NodeNameToMetaVictims":)";
  bool first = true;
  for (const auto& [name, victims] : nodes) {
    separate(out, '{', first);
    append_quoted(out, name);
    out += R"(:{"Pods":)";
    bool first_pod = true;
    for (const auto& uid : victims.uids) {
      separate(out, '[', first_pod);
      out += R"({"UID":)";
      append_quoted(out, uid);
      out += '}';
    }
    out +=
        fmt::format(R"({}],"NumPDBViolations":{}}})", first_pod ? "[" : "", victims.pdb_violations);
  }
  out += first ? "{}}" : "}}";
  return out;
}

std::string write_bind(std::string_view error) {
  return fmt::format(R"({{"Error":{}}})", json::quote(error));
}

}  // namespace gantry::scheduler
