// SPDX-License-Identifier: Apache-2.0
// The model's enumerations as words, for JSON and for people. One table each, both directions.
#pragma once

#include "gpu/model/inventory.hpp"
#include "gpu/model/offer.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace gantry::model {

template <class E>
inline constexpr std::array<std::string_view, 0> kWords{};  // in the order of the enumerators

template <>
inline constexpr std::array<std::string_view, 4> kWords<MigMode>{"unsupported", "disabled",
                                                                 "enabled", "unknown"};
template <>
inline constexpr std::array<std::string_view, 4> kWords<HealthState>{"ok", "degraded", "lost",
                                                                     "unknown"};
template <>
inline constexpr std::array<std::string_view, 8> kWords<PciePath>{"self", "unknown", "SYS", "NODE",
                                                                  "PHB",  "PXB",     "PIX", "PSB"};
template <>
inline constexpr std::array<std::string_view, 7> kWords<Capability>{
    "compute", "utility", "video", "graphics", "display", "ngx", "compat32"};
template <>
inline constexpr std::array<std::string_view, 6> kWords<FileKind>{
    "library", "binary", "firmware", "config", "ipc_socket", "xorg_module"};
template <>
inline constexpr std::array<std::string_view, 3> kWords<ModuleFlavour>{"unknown", "proprietary",
                                                                       "open"};

template <>
inline constexpr std::array<std::string_view, 5> kWords<Use>{"whole", "replicas", "mig", "shares",
                                                             "vm"};

template <class E>
requires(!kWords<E>.empty()) constexpr std::string_view to_word(E value) {
  const auto place = static_cast<std::size_t>(value);
  return place < kWords<E>.size() ? kWords<E>[place] : std::string_view("?");
}

template <class E>
constexpr std::optional<E> from_word(std::string_view word) {
  for (std::size_t i = 0; i < kWords<E>.size(); ++i) {
    if (kWords<E>[i] == word) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace gantry::model
