// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/unhealthy_gpus.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "cluster/podspec/limits_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::podspec {
namespace {

constexpr std::size_t kMaxListBytes = std::size_t{16} << 10;  // enough for every index twice
constexpr std::size_t kShown = 3;                             // entries that are quoted
constexpr std::size_t kShownBytes = 40;                       // of each entry

// The writer is a script: the text up to the limit is used, the rest is ignored.
std::string_view bounded(std::string_view text) {
  if (text.size() <= kMaxListBytes) return text;
  text = text.substr(0, kMaxListBytes);
  return text.substr(0, text.find_last_of(',') + 1);
}

class IgnoredEntries {
 public:
  void add(std::string_view entry) {
    if (count_++ < kShown)
      shown_ += fmt::format("{}\"{}\"", shown_.empty() ? "" : ", ",
                            printable(entry.substr(0, kShownBytes)));
  }
  std::string sentence(bool cut) const {
    std::string text;
    if (count_ > 0)
      text = fmt::format("{}{} {} ignored: not a GPU index; write 0,3", shown_,
                         count_ > kShown ? fmt::format(" and {} more", count_ - kShown) : "",
                         count_ == 1 ? "is" : "are");
    if (cut)
      text += fmt::format("{}the text after {} KiB is ignored", text.empty() ? "" : "; ",
                          kMaxListBytes >> 10);
    return text;
  }

 private:
  std::string shown_;
  std::size_t count_ = 0;
};

}  // namespace

std::string unhealthy_config_map_name(std::string_view node) {
  return fmt::format("ConfigMap {}/{}{}", kUnhealthyNamespace, kUnhealthyPrefix, node);
}

std::string_view node_of_unhealthy_config_map(std::string_view config_map) {
  return config_map.starts_with(kUnhealthyPrefix) ? config_map.substr(kUnhealthyPrefix.size())
                                                  : std::string_view();
}

std::optional<UnhealthyGpus> parse_unhealthy_gpus(const json::Value& config_map) {
  const auto name = config_map["metadata"]["name"].string().value_or("");
  UnhealthyGpus marked_unhealthy{.node = std::string(node_of_unhealthy_config_map(name))};
  if (marked_unhealthy.node.empty()) return std::nullopt;
  const auto all = config_map["data"]["gpus"].string().value_or("");
  const auto text = bounded(all);
  IgnoredEntries ignored;
  for (const auto piece : split(text, ',')) {
    const auto entry = trim(piece);
    if (entry.empty()) continue;
    const auto index = parse_u64(entry);
    if (index && *index < kMaxGpusPerContainer) {
      marked_unhealthy.gpus.push_back(static_cast<std::uint32_t>(*index));
    } else {
      ignored.add(entry);
    }
  }
  std::sort(marked_unhealthy.gpus.begin(), marked_unhealthy.gpus.end());
  marked_unhealthy.gpus.erase(
      std::unique(marked_unhealthy.gpus.begin(), marked_unhealthy.gpus.end()),
      marked_unhealthy.gpus.end());
  if (auto sentence = ignored.sentence(text.size() < all.size()); !sentence.empty())
    marked_unhealthy.ignored =
        fmt::format("{}: gpus: {}", unhealthy_config_map_name(marked_unhealthy.node), sentence);
  return marked_unhealthy;
}

}  // namespace gantry::podspec
