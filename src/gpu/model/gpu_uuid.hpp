// SPDX-License-Identifier: Apache-2.0
// The name of a GPU or of a MIG instance that stays the same over reboots.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gantry::model {

struct GpuUuid {
  std::string text;                                  // "GPU-..." ; MIG instances have "MIG-..."
  auto operator<=>(const GpuUuid&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Files, sockets and annotations have the texts.
inline std::vector<GpuUuid> to_uuids(std::span<const std::string> texts) {
  std::vector<GpuUuid> uuids;
  uuids.reserve(texts.size());
  for (const auto& text : texts) uuids.push_back({text});
  return uuids;
}

inline std::vector<std::string> to_texts(std::span<const GpuUuid> uuids) {
  std::vector<std::string> texts;
  texts.reserve(uuids.size());
  for (const auto& uuid : uuids) texts.push_back(uuid.text);
  return texts;
}

}  // namespace gantry::model
