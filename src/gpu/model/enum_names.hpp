// SPDX-License-Identifier: Apache-2.0
// The names of the model's enumerators, for JSON and for people. One table each, for both
// directions.
#pragma once

#include "gpu/model/advertised.hpp"
#include "gpu/model/container_phase.hpp"
#include "gpu/model/inventory.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace gantry::model {

template <class E>
inline constexpr std::array<std::string_view, 0> kEnumNames{};  // in the order of the enumerators

template <>
inline constexpr std::array<std::string_view, 4> kEnumNames<MigMode>{"unsupported", "disabled",
                                                                     "enabled", "unknown"};
template <>
inline constexpr std::array<std::string_view, 4> kEnumNames<HealthState>{"ok", "degraded", "lost",
                                                                         "unknown"};
template <>
inline constexpr std::array<std::string_view, 8> kEnumNames<PciePath>{
    "self", "unknown", "SYS", "NODE", "PHB", "PXB", "PIX", "PSB"};
template <>
inline constexpr std::array<std::string_view, 7> kEnumNames<Capability>{
    "compute", "utility", "video", "graphics", "display", "ngx", "compat32"};
template <>
inline constexpr std::array<std::string_view, 6> kEnumNames<DriverFileKind>{
    "library", "binary", "firmware", "config", "ipc_socket", "xorg_module"};
template <>
inline constexpr std::array<std::string_view, 3> kEnumNames<ModuleFlavour>{"unknown", "proprietary",
                                                                           "open"};

template <>
inline constexpr std::array<std::string_view, 5> kEnumNames<AllocationMode>{"whole", "replicas",
                                                                            "mig", "shares", "vm"};
template <>
inline constexpr std::array<std::string_view, 3> kEnumNames<ContainerPhase>{"init", "sidecar",
                                                                            "main"};

template <class E>
requires(!kEnumNames<E>.empty()) constexpr std::string_view to_string(E value) {
  const auto place = static_cast<std::size_t>(value);
  return place < kEnumNames<E>.size() ? kEnumNames<E>[place] : std::string_view("?");
}

template <class E>
constexpr std::optional<E> parse_enum(std::string_view word) {
  for (std::size_t i = 0; i < kEnumNames<E>.size(); ++i) {
    if (kEnumNames<E>[i] == word) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace gantry::model
