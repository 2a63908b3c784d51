// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/resource_names.hpp"

#include "base/core/nearest.hpp"
#include "base/core/text.hpp"
#include "cluster/podspec/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace gantry::podspec {
namespace {

constexpr std::string_view kNvidia = "nvidia.com";
constexpr std::string_view kAliyun = "aliyun.com";
constexpr std::string_view kGantry = "gantry.dev";
constexpr std::string_view kShared = ".shared";  // NVIDIA's suffix for time slices
constexpr std::string_view kDeviceClass = "deviceclass.resource.kubernetes.io/";
constexpr std::string_view kExampleProfile = "nvidia.com/mig-1g.10gb";
constexpr std::size_t kMaxCompared = 64;  // bytes of a name; longer names are like no other name

constexpr std::array<std::string_view, 14> kNames{kNvidiaGpu,
                                                  kHamiGpuMem,
                                                  kHamiGpuMemPercentage,
                                                  kHamiGpuCores,
                                                  kHamiPriority,
                                                  "nvidia.com/pgpu",
                                                  "nvidia.com/vgpu",
                                                  "nvidia.com/imex-channel",
                                                  "nvidia.com/hostdev",
                                                  kAliyunGpuMem,
                                                  kAliyunGpuCount,
                                                  "aliyun.com/gpu-core.percentage",
                                                  kShareSlot,
                                                  kAlphaNvidiaGpu};

struct Parts {
  std::string_view domain;
  std::string_view rest;
};

Parts parts_of(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return {"", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

// Removes "12g." from the front of "12g.5gb"; false if the text begins otherwise.
bool take_number(std::string_view& text, std::string_view unit) {
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || !text.substr(digits).starts_with(unit)) return false;
  text.remove_prefix(digits + unit.size());
  return true;
}

// "1g.10gb", "1c.2g.20gb", "1g.10gb.me"
bool is_mig_profile(std::string_view text) {
  auto whole = text;
  if (take_number(whole, "c.")) text = whole;
  if (!take_number(text, "g.") || !take_number(text, "gb")) return false;
  return text.empty() || (text.size() > 1 && text[0] == '.' &&
                          std::islower(static_cast<unsigned char>(text[1])) != 0);
}

// KubeVirt names a GPU as the list of PCI ids does: "GA100_A100_PCIE_40GB", "GRID_T4-1Q".
bool is_model_name(std::string_view text) {
  return !text.empty() && std::isupper(static_cast<unsigned char>(text[0])) != 0 &&
         contains(text, "_");
}

bool is_known(std::string_view name) {
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
  if (name.starts_with(kDeviceClass)) return contains(name, kNvidia);
  auto [domain, rest] = parts_of(name);
  if (domain != kNvidia) return false;
  if (is_model_name(rest)) return true;
  if (rest.ends_with(kShared)) rest.remove_suffix(kShared.size());
  return rest == "gpu" || (rest.starts_with("mig-") && is_mig_profile(rest.substr(4)));
}

bool is_close(std::string_view a, std::string_view b) {
  if (a.empty() || a.size() > kMaxCompared) return false;
  const auto changes = edit_distance(a, b);
  return changes <= 1 || (changes == 2 && a[0] == b[0]);
}

// The known name of this domain that `rest`, in small letters, comes close to.
std::optional<std::string> close_name(std::string_view domain, std::string_view rest) {
  const auto corrected = fmt::format("{}/{}", domain, rest);
  if (is_known(corrected)) return corrected;
  for (const auto known : kNames) {
    const auto parts = parts_of(known);
    if (parts.domain == domain && is_close(rest, parts.rest)) return std::string(known);
  }
  if (domain == kNvidia && rest.starts_with("mig")) return std::string(kExampleProfile);
  return std::nullopt;
}

ResourceName below_nvidia(std::string_view rest) {
  if (auto meant = close_name(kNvidia, rest)) return {ResourceClass::Misspelt, *std::move(meant)};
  auto meant = kNvidiaGpu;
  if (contains(rest, "mem")) meant = kHamiGpuMem;
  if (contains(rest, "core")) meant = kHamiGpuCores;
  return {ResourceClass::Unknown, std::string(meant)};
}

// No other program offers resources below our domain. Our annotations are not resources.
ResourceName below_gantry(std::string_view name) {
  const auto annotations = known_annotations();
  if (std::find(annotations.begin(), annotations.end(), name) != annotations.end())
    return {ResourceClass::Misspelt, ""};
  return {ResourceClass::Misspelt, std::string(kShareSlot)};
}

bool is_close_domain(std::string_view domain, std::string_view right) {
  constexpr std::size_t kMaxChanges = 2;
  return domain.size() <= right.size() + kMaxChanges && edit_distance(domain, right) <= kMaxChanges;
}

}  // namespace

ResourceName classify_resource(std::string_view name) {
  if (is_known(name)) return {ResourceClass::Known, ""};
  const auto lower = to_lower(name.substr(0, 2 * kMaxCompared));
  const auto [domain, rest] = parts_of(lower);
  // The API server takes no name without a domain that is not its own.
  if (domain.empty() && (contains(rest, "gpu") || contains(rest, "nvidia")))
    return {ResourceClass::Misspelt, std::string(kNvidiaGpu)};
  if (domain.empty()) return {};
  if (domain == kNvidia) return below_nvidia(rest);
  if (domain == kGantry) return below_gantry(name);
  if (domain.starts_with("nvidia.") || domain.ends_with(".nvidia.com") ||
      is_close_domain(domain, kNvidia))
    return {ResourceClass::Misspelt, close_name(kNvidia, rest).value_or(std::string(kNvidiaGpu))};
  if (domain == kAliyun || is_close_domain(domain, kAliyun)) {
    if (auto meant = close_name(kAliyun, rest)) return {ResourceClass::Misspelt, *std::move(meant)};
  }
  return {};
}

}  // namespace gantry::podspec
