// SPDX-License-Identifier: Apache-2.0
#include "gpu/loader/forward_compat.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::loader {
namespace {

constexpr std::string_view kSection = ".note.cuda.fwd_compatibility";
constexpr std::string_view kOwner = "NVIDIA Corporation";
constexpr std::size_t kMaxDescription = 64 << 10;
constexpr std::size_t kMaxParts = 8;
constexpr std::size_t kMaxDrivers = 4096;

using Version = std::vector<std::uint64_t>;

std::optional<Version> parts_of(std::string_view text) {
  Version parts;
  for (const auto part : split(text, '.')) {
    const auto number = parse_u64(part);
    if (!number || parts.size() >= kMaxParts) return std::nullopt;
    parts.push_back(*number);
  }
  if (parts.empty()) return std::nullopt;
  return parts;
}

// The notes and the tool that writes them do not agree on upper case.
json::Value member(const json::Value& object, std::string_view name) {
  if (!object.is(json::Kind::Object)) return {};
  for (const auto value : object) {
    if (to_lower(value.key()) == name) return value;
  }
  return {};
}

Result<CompatNote> parse_note(std::string_view description) {
  if (description.size() > kMaxDescription) {
    return Error(Errc::Corrupt, "forward-compatibility note: too long");
  }
  while (description.ends_with('\0')) description.remove_suffix(1);
  auto document = json::Document::parse(std::string(description));
  if (!document.ok()) return std::move(document).error().in("forward-compatibility note");
  const auto root = document->root();
  if (!root.is(json::Kind::Object)) {
    return Error(Errc::Corrupt, "forward-compatibility note: is not a JSON object");
  }
  CompatNote note;
  note.cuda_version = member(root, "cuda version").string().value_or("");
  const auto drivers = member(root, "driver");
  if (!drivers.is(json::Kind::Array)) return note;
  for (const auto driver : drivers) {
    const auto branch = driver.u64();
    if (!branch || note.drivers.size() >= kMaxDrivers) {
      return Error(Errc::Corrupt, "forward-compatibility note: its list of drivers is damaged");
    }
    note.drivers.push_back(*branch);
  }
  return note;
}

CompatDecision by_driver(std::string_view version, const CompatNote& note,
                         const HostVersions& host) {
  const auto here = parts_of(host.driver);
  if (!here) {
    return {false, fmt::format("the driver's version \"{}\" is not made of numbers", host.driver)};
  }
  if (std::find(note.drivers.begin(), note.drivers.end(), here->front()) == note.drivers.end()) {
    return {false, fmt::format("the image's libcuda {} does not list driver branch {} as supported",
                               version, here->front())};
  }
  const auto order = compare_versions(version, host.driver);
  if (!order || *order <= 0) {
    return {false, fmt::format("the image's libcuda {} is not newer than the driver {}", version,
                               host.driver)};
  }
  return {true,
          fmt::format("the image's libcuda {} is newer than the driver {} and works on its branch",
                      version, host.driver)};
}

CompatDecision by_cuda(const CompatNote& note, const HostVersions& host) {
  const auto order = compare_versions(note.cuda_version, host.cuda);
  const bool newer = order && *order > 0;
  return {newer, fmt::format("the image's libcuda is for CUDA {}, the driver for CUDA {}",
                             note.cuda_version, host.cuda)};
}

CompatDecision by_major(std::string_view version, const HostVersions& host) {
  const auto theirs = parts_of(version);
  const auto here = parts_of(host.driver);
  if (!theirs || !here)
    return {false, "the image's libcuda has no note, and there are no versions to compare"};
  const bool newer = theirs->front() > here->front();
  return {newer,
          fmt::format("the image's libcuda {} has no note; its branch is {} than the driver's {}",
                      version, newer ? "newer" : "not newer", host.driver)};
}

}  // namespace

std::optional<int> compare_versions(std::string_view a, std::string_view b) {
  auto one = parts_of(a);
  auto other = parts_of(b);
  if (!one || !other) return std::nullopt;
  const auto size = std::max(one->size(), other->size());
  one->resize(size);
  other->resize(size);
  if (*one == *other) return 0;
  return *one < *other ? -1 : 1;
}

Result<std::optional<CompatNote>> read_compat_note(const Elf& library) {
  GANTRY_TRY(const auto notes, library.notes());
  for (const auto& note : notes) {
    // Without section headers only the owner identifies the note.
    if (note.owner != kOwner || (!note.section.empty() && note.section != kSection)) continue;
    if (note.description.empty()) continue;
    GANTRY_TRY(CompatNote parsed, parse_note(note.description));
    return std::optional<CompatNote>(std::move(parsed));
  }
  return std::optional<CompatNote>();
}

CompatDecision decide_compat(std::string_view version, const std::optional<CompatNote>& note,
                             const HostVersions& host) {
  if (!note) return by_major(version, host);
  if (!host.driver.empty()) return by_driver(version, *note, host);
  if (!host.cuda.empty()) return by_cuda(*note, host);
  return {false, "neither the driver's version nor its CUDA version is known"};
}

}  // namespace gantry::loader
