// SPDX-License-Identifier: Apache-2.0
// The answer to a filter is written by hand: for 5,000 nodes that takes 0.25 ms, json::Writer takes
// 0.57 ms.
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "cluster/scheduler/extender_wire.hpp"

#include <algorithm>
#include <utility>

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

void write_victims(json::Writer& out, const NodeVictims& victims) {
  out.object([&] {
    out.array("Pods", victims.uids,
              [&](const std::string& uid) { out.object([&] { out.member("UID", uid); }); });
    out.member("NumPDBViolations", victims.pdb_violations);
  });
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
  json::Writer out;
  out.object([&] {
    out.member("Nodes", nullptr);
    out.member("NodeNames", nullptr);
    out.object("FailedNodes", [] {});
    out.object("FailedAndUnresolvableNodes", [] {});
    out.member("Error", error);
  });
  return std::move(out).text();
}

std::string write_preempt(const std::map<std::string, NodeVictims>& nodes) {
  json::Writer out;
  out.object([&] {
    out.object("NodeNameToMetaVictims", [&] {
      for (const auto& [name, victims] : nodes) {
        out.key(name);
        write_victims(out, victims);
      }
    });
  });
  return std::move(out).text();
}

std::string write_bind(std::string_view error) {
  json::Writer out;
  out.object([&] { out.member("Error", error); });
  return std::move(out).text();
}

}  // namespace gantry::scheduler
