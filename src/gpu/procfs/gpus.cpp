// SPDX-License-Identifier: Apache-2.0
#include "gpu/procfs/gpus.hpp"

#include "base/core/text.hpp"
#include "base/sys/deadline_read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace gantry::procfs {
namespace {

constexpr std::string_view kGpus = "/proc/driver/nvidia/gpus";
constexpr std::size_t kMaxGpuDirectories = 256;  // the driver supports at most 32 GPUs
constexpr std::string_view kModel = "Model", kUuid = "GPU UUID", kMinor = "Device Minor";
constexpr std::string_view kExcluded = "GPU Excluded", kBlacklisted = "Blacklisted";  // before 460

// The driver prints question marks for values that it has not read from the card yet.
std::string known(std::string_view text) {
  if (contains(text, "?") || text == "N/A") return "";
  return std::string(text);
}

std::string to_upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

void read_line(std::string_view key, std::string_view value, InformationFile& found) {
  auto& gpu = found.gpu;
  if (key == kModel) gpu.name = std::string(value == "Unknown" ? "" : value);
  if (key == kUuid) gpu.uuid.text = known(value);
  if (key == "Video BIOS") gpu.vbios = to_upper(known(value));  // NVML's spelling
  if (key == "GPU Firmware") gpu.gsp_firmware = known(value);
  if (key == kExcluded || key == kBlacklisted) {
    found.excluded = value == "Yes";
    found.exclusion_line = key == kExcluded ? kExcluded : kBlacklisted;
  }
  if (key == kMinor) {
    const auto minor = parse_u64(value);
    if (minor && *minor < (1U << 20U)) gpu.minor = static_cast<std::uint32_t>(*minor);
  }
}

std::string information_path(std::string_view directory) {
  return fmt::format("{}/{}/information", kGpus, directory);
}

GpuEntry entry_of(std::string path, const model::PciAddress& gpu, const Result<std::string>& text) {
  GpuEntry entry{.path = std::move(path)};
  const bool whole = text.ok() && text->size() < sys::kMaxKernelRead;
  entry.information = parse_information_file(whole ? *text : "");
  entry.information.gpu.pci = gpu;
  if (!text.ok()) entry.read_error = text.error().text();
  if (text.ok() && !whole) entry.read_error = fmt::format("{} is longer than a page", entry.path);
  entry.silent = !text.ok() && text.error().code() == Errc::Timeout;
  return entry;
}

}  // namespace

InformationFile parse_information_file(std::string_view text) {
  InformationFile found;
  found.missing = {kModel, kUuid, kMinor};
  for (const auto line : lines(text)) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto key = trim(line.substr(0, colon));
    std::erase(found.missing, key);
    read_line(key, trim(line.substr(colon + 1)), found);
  }
  const bool has_line = std::count(found.missing.begin(), found.missing.end(), kMinor) == 0;
  if (has_line && !found.gpu.minor) found.missing.push_back(kMinor);
  return found;
}

Result<std::vector<GpuEntry>> read_gpus(const sys::Host& host, std::chrono::milliseconds deadline) {
  GANTRY_TRY(const auto names, host.list(kGpus));
  if (names.size() > kMaxGpuDirectories) {
    return Error(Errc::Corrupt, fmt::format("{} has {} entries, and a driver has at most {} GPUs",
                                            kGpus, names.size(), kMaxGpuDirectories));
  }
  std::vector<model::PciAddress> addresses;
  std::vector<std::string> paths;
  for (const auto& name : names) {
    const auto address = model::PciAddress::parse(name);
    if (!address) continue;
    addresses.push_back(*address);
    paths.push_back(information_path(name));
  }
  const auto texts = sys::read_with_deadline(host, paths, deadline, sys::AfterTimeout::GiveUp);
  std::vector<GpuEntry> entries;
  for (std::size_t i = 0; i < paths.size(); ++i)
    entries.push_back(entry_of(std::move(paths[i]), addresses[i], texts[i]));
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.information.gpu.pci < b.information.gpu.pci;
  });
  return entries;
}

Result<InformationFile> read_gpu(const sys::Host& host, const model::PciAddress& gpu,
                                 std::chrono::milliseconds deadline) {
  const auto path = information_path(gpu.sysfs());
  const auto text = sys::read_with_deadline(host, path, deadline);
  if (!text.ok() && text.error().code() == Errc::Timeout) return text.error();
  if (!text.ok() && text.error().code() == Errc::NotFound) return text.error();
  return entry_of(path, gpu, text).information;
}

}  // namespace gantry::procfs
