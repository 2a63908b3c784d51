// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "cluster/scheduler/extender_wire.hpp"
#include "cluster/scheduler/json_cursor.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::scheduler {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

Error no_request(std::string_view what) {
  return {Errc::Invalid,
          fmt::format(
              "this is not a {} request of kube-scheduler: it is not the JSON of version 1 of the "
              "extender interface; check `extenders` in the configuration of kube-scheduler",
              what)};
}

// Escapes are rare in names, so the JSON parser handles them.
bool keep_text(std::string_view raw, std::deque<std::string>& unescaped, std::string_view& text) {
  text = raw;
  if (raw.find('\\') == std::string_view::npos) return true;
  const auto parsed = json::Document::parse(fmt::format("\"{}\"", raw));
  if (!parsed.ok()) return false;
  unescaped.push_back(parsed->root().string().value_or(""));
  text = unescaped.back();
  return true;
}

bool read_text(JsonCursor& scan, std::string& into) {
  if (scan.null()) return true;
  const auto raw = scan.string();
  std::deque<std::string> unescaped;
  std::string_view text;
  if (!raw || !keep_text(*raw, unescaped, text)) return false;
  into = text;
  return true;
}

bool read_names(JsonCursor& scan, ExtenderArgs& args, std::vector<std::string_view>& names) {
  if (scan.null()) return true;
  args.has_names = true;
  return scan.elements([&] {
    const auto raw = scan.string();
    std::string_view text;
    if (!raw || !keep_text(*raw, args.unescaped, text)) return false;
    names.push_back(text);
    return true;
  });
}

// metadata.name of an object; "" if it has none, which is not a valid node name.
bool read_metadata_name(std::string_view object, std::deque<std::string>& unescaped,
                        std::string_view& name) {
  JsonCursor scan(object);
  return scan.members([&](std::string_view key) {
    if (key != "metadata") return scan.skip().has_value();
    return scan.members([&](std::string_view inner) {
      if (inner != "name") return scan.skip().has_value();
      const auto raw = scan.string();
      return raw && keep_text(*raw, unescaped, name);
    });
  });
}

bool read_nodes(JsonCursor& scan, ExtenderArgs& args, std::vector<std::string_view>& names) {
  if (scan.null()) return true;
  args.has_nodes = true;
  return scan.members([&](std::string_view key) {
    if (!same_word(key, "items")) return scan.skip().has_value();
    if (scan.null()) return true;
    return scan.elements([&] {
      const auto item = scan.skip();
      std::string_view name;
      if (!item || !read_metadata_name(*item, args.unescaped, name)) return false;
      args.items.push_back(*item);
      names.push_back(name);
      return true;
    });
  });
}

bool read_pod(JsonCursor& scan, std::string_view& pod) {
  if (scan.null()) return true;
  const auto text = scan.skip();
  if (text) pod = *text;
  return text.has_value();
}

// {"Pods":[...],"NumPDBViolations":0}; a pod is an object with its uid, or only its uid.
bool read_victim(JsonCursor& scan, NodeVictims& victims) {
  std::string uid;
  const bool good = scan.members([&](std::string_view key) {
    if (same_word(key, "uid")) return read_text(scan, uid);
    if (key != "metadata") return scan.skip().has_value();
    return scan.members([&](std::string_view inner) {
      return inner == "uid" ? read_text(scan, uid) : scan.skip().has_value();
    });
  });
  if (!good || uid.empty()) return false;
  victims.uids.push_back(std::move(uid));
  return true;
}

bool read_count(JsonCursor& scan, std::int64_t& count) {
  const auto text = scan.skip();
  if (!text) return false;
  const auto parsed = json::Document::parse(std::string(*text));
  const auto number = parsed.ok() ? parsed->root().i64() : std::nullopt;
  count = number.value_or(0);
  return parsed.ok();
}

bool read_victims(JsonCursor& scan, NodeVictims& victims) {
  if (scan.null()) return true;
  return scan.members([&](std::string_view key) {
    if (same_word(key, "NumPDBViolations")) return read_count(scan, victims.pdb_violations);
    if (!same_word(key, "Pods")) return scan.skip().has_value();
    if (scan.null()) return true;
    return scan.elements([&] { return read_victim(scan, victims); });
  });
}

bool read_victim_map(JsonCursor& scan, std::map<std::string, NodeVictims>& nodes) {
  if (scan.null()) return true;
  return scan.members([&](std::string_view raw) {
    std::deque<std::string> unescaped;
    std::string_view name;
    return keep_text(raw, unescaped, name) && read_victims(scan, nodes[std::string(name)]);
  });
}

}  // namespace

Result<ExtenderArgs> read_args(std::string_view body) {
  ExtenderArgs args;
  std::vector<std::string_view> by_name;
  std::vector<std::string_view> by_node;
  JsonCursor scan(body);
  const bool good = scan.members([&](std::string_view key) {
    if (same_word(key, "Pod")) return read_pod(scan, args.pod);
    if (same_word(key, "NodeNames")) return read_names(scan, args, by_name);
    if (same_word(key, "Nodes")) return read_nodes(scan, args, by_node);
    return scan.skip().has_value();
  });
  if (!good || !scan.at_end()) return no_request("filter or prioritize");
  args.names = args.has_nodes ? std::move(by_node) : std::move(by_name);
  return args;
}

Result<ExtenderBindingArgs> read_bind_args(std::string_view body) {
  ExtenderBindingArgs args;
  JsonCursor scan(body);
  const bool good = scan.members([&](std::string_view key) {
    if (same_word(key, "PodName")) return read_text(scan, args.pod.name);
    if (same_word(key, "PodNamespace")) return read_text(scan, args.pod.name_space);
    if (same_word(key, "PodUID")) return read_text(scan, args.pod.uid);
    if (same_word(key, "Node")) return read_text(scan, args.node);
    return scan.skip().has_value();
  });
  if (!good || !scan.at_end() || args.pod.name.empty() || args.pod.name_space.empty() ||
      args.node.empty())
    return no_request("bind");
  return args;
}

Result<ExtenderPreemptionArgs> read_preempt_args(std::string_view body) {
  ExtenderPreemptionArgs args;
  std::map<std::string, NodeVictims> meta;
  JsonCursor scan(body);
  const bool good = scan.members([&](std::string_view key) {
    if (same_word(key, "Pod")) return read_pod(scan, args.pod);
    if (same_word(key, "NodeNameToVictims")) return read_victim_map(scan, args.nodes);
    if (same_word(key, "NodeNameToMetaVictims")) return read_victim_map(scan, meta);
    return scan.skip().has_value();
  });
  if (!good || !scan.at_end()) return no_request("preempt");
  if (!meta.empty()) args.nodes = std::move(meta);
  return args;
}

}  // namespace gantry::scheduler
