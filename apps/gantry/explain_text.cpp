// SPDX-License-Identifier: Apache-2.0
#include "gantry/explain_text.hpp"

#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "gantry/command.hpp"
#include "gantry/table.hpp"
#include "gantry/terminal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

namespace gantry::cli {
namespace {

std::string titled_list(std::string_view title, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return {};
  std::string text = fmt::format("\n{}\n", title);
  for (const auto& sentence : sentences) text += fmt::format("  {}\n", sentence);
  return text;
}

std::string indented(const Table& table, std::size_t width) {
  std::string text;
  if (table.empty()) return text;
  const auto all = table.text(width - std::min<std::size_t>(width, 2));
  for (const auto line : lines(all)) text += fmt::format("  {}\n", line);
  return "\n" + text;
}

std::string nodes_table(const model::ContainerEdits& edits, std::size_t width) {
  Table table({"NODE", "NUMBERS", "ACCESS", "WHY"});
  for (const auto& node : edits.nodes) {
    table.add({node.path,
               node.major && node.minor ? fmt::format("{}:{}", *node.major, *node.minor) : "-",
               node.permissions, node.why});
  }
  return indented(table, width);
}

std::string mounts_table(const model::ContainerEdits& edits, std::size_t width) {
  Table table({"MOUNT", "FROM", "WHY"});
  for (const auto& mount : edits.mounts) {
    table.add({mount.container_path, mount.host_path, mount.why});
  }
  return indented(table, width);
}

std::string hooks_table(const model::ContainerEdits& edits, std::size_t width) {
  Table table({"HOOK", "PROGRAM", "WHY"});
  for (const auto& hook : edits.hooks) {
    table.add({hook.stage, fmt::format("{}", fmt::join(hook.args, " ")), hook.why});
  }
  return indented(table, width);
}

std::string other_edits(const model::ContainerEdits& edits) {
  std::vector<std::string> words;
  for (const auto& variable : edits.env) words.push_back("environment: " + variable);
  for (const auto gid : edits.additional_gids) {
    words.push_back(fmt::format("group {}: its members may open the nodes above", gid));
  }
  if (!edits.libraries.empty()) {
    words.push_back(
        fmt::format("{} library names in the image's ld.so.cache", edits.libraries.size()));
  }
  for (const auto& file : edits.files) words.push_back(fmt::format("{}: {}", file.path, file.why));
  return titled_list("Also", words);
}

std::string explanation_headline(const Explanation& explanation) {
  const auto& record = explanation.record;
  const auto who = record.id.empty()
                       ? fmt::format("Bundle {}", record.bundle)
                       : fmt::format("Container {}, bundle {}", record.id, record.bundle);
  if (!explanation.failure.empty()) return who + ": cannot be created as requested\n";
  if (record.edits.empty()) {
    return who + (explanation.created ? ": has nothing from NVIDIA\n" : ": would get nothing\n");
  }
  return who + (explanation.created ? ": has\n" : ": would get\n");
}

// True if the path's directory or name is NVIDIA's.
bool is_nvidia_mount(std::string_view destination, std::string_view source) {
  return contains(destination, "nvidia") || contains(destination, "libcuda") ||
         contains(source, "/gantry/driver/");
}

}  // namespace

std::vector<std::string> flavour_limits(std::string_view flavour) {
  static const std::map<std::string_view, std::vector<std::string>> limits{
      {"shim",
       {"the image's /etc/ld.so.cache is replaced in the container's own layer; running `ldconfig` "
        "inside keeps the libraries, and a read-only file system gets mounts instead"}},
      {"one-hook", {"a hook runs at each start; an engine that allows no hooks cannot use it"}},
      {"no-hooks",
       {"an image whose loader cache has its own libcuda.so.1 uses that one",
        "CUDA forward compatibility (the image's newer libcuda) is not set up",
        "images with musl instead of glibc do not find the libraries; set "
        "LD_LIBRARY_PATH=/usr/local/nvidia/lib64 in the image",
        "`ldconfig -p` does not list the libraries, though programs find them"}},
  };
  const auto found = limits.find(flavour);
  return found == limits.end() ? std::vector<std::string>() : found->second;
}

runtime::ContainerRecord record_from_config(const json::Document& config,
                                            const oci::Container& container) {
  runtime::ContainerRecord record;
  const auto number = [](json::Value value) -> std::optional<std::uint32_t> {
    const auto read = value.u64();
    if (!read || *read > 0xFFFFFFFFU) return std::nullopt;
    return static_cast<std::uint32_t>(*read);
  };
  for (const auto device : config["linux"]["devices"]) {
    const auto path = device["path"].string().value_or("");
    if (!path.starts_with("/dev/nvidia")) continue;
    record.edits.nodes.push_back({.path = path,
                                  .host_path = path,
                                  .major = number(device["major"]),
                                  .minor = number(device["minor"]),
                                  .why = "in config.json"});
  }
  for (const auto& mount : container.mounts) {
    if (!is_nvidia_mount(mount.destination, mount.source)) continue;
    record.edits.mounts.push_back(
        {.host_path = mount.source, .container_path = mount.destination, .why = "in config.json"});
  }
  return record;
}

std::string explanation_text(const Explanation& explanation, std::size_t width) {
  const auto& record = explanation.record;
  const auto& edits = record.edits;
  auto lists = other_edits(edits) + titled_list("Asked", record.asked) +
               titled_list("Decided", record.decided);
  if (!explanation.failure.empty()) lists += titled_list("Cannot", {explanation.failure});
  lists += titled_list("Notes", record.notes) + titled_list("", edits.notes);
  if (!record.flavour.empty()) {
    lists += titled_list(fmt::format("Flavour {}", record.flavour), flavour_limits(record.flavour));
  }
  return wrap_lines(explanation_headline(explanation), width) + nodes_table(edits, width) +
         mounts_table(edits, width) + hooks_table(edits, width) + wrap_lines(lists, width);
}

std::string explanation_json(const Explanation& explanation) {
  json::Writer out;
  out.object([&] {
    out.member("schema", kFirstSchema);
    runtime::write_members(out, explanation.record);
    out.member("created", explanation.created);
    out.member("failure",
               explanation.failure.empty() ? std::nullopt : std::optional(explanation.failure));
    out.array("limits", flavour_limits(explanation.record.flavour));
  });
  return out.text() + "\n";
}

}  // namespace gantry::cli
