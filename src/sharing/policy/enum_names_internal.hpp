// SPDX-License-Identifier: Apache-2.0
// One table of names for each enumeration: conversion in both directions, and the error that lists
// the names.
#pragma once

#include "sharing/policy/share.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::policy {

template <class E>
inline constexpr std::array<std::string_view, 0> kEnumNames{};  // in the order of the enumerators
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<ViolationPolicy>{"report", "stop"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<UnattachedPolicy>{"refuse", "pass"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<ContextMemory>{"counted", "free"};
template <>
inline constexpr std::array<std::string_view, 5> kEnumNames<Backend>{"auto", "fence", "mps", "mig",
                                                                     "time-slicing"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<Excess>{"cap", "work-conserving"};
template <>
inline constexpr std::array<std::string_view, 3> kEnumNames<Priority>{"low", "normal", "high"};

// The name of the value in errors: that of the flag.
template <class E>
inline constexpr std::string_view kEnumLabel{};
template <>
inline constexpr std::string_view kEnumLabel<ViolationPolicy> = "policy";
template <>
inline constexpr std::string_view kEnumLabel<UnattachedPolicy> = "unattached";
template <>
inline constexpr std::string_view kEnumLabel<ContextMemory> = "context-memory";
template <>
inline constexpr std::string_view kEnumLabel<Backend> = "backend";
template <>
inline constexpr std::string_view kEnumLabel<Excess> = "excess";
template <>
inline constexpr std::string_view kEnumLabel<Priority> = "priority";

template <class E>
std::string_view enum_name(E value) {
  return kEnumNames<E>[static_cast<std::size_t>(value)];
}

template <class E>
Result<E> parse_enum(std::string_view word) {
  const auto& words = kEnumNames<E>;
  const auto* found = std::find(words.begin(), words.end(), word);
  if (found != words.end()) return static_cast<E>(found - words.begin());
  return Error(Errc::Invalid, fmt::format("{} `{}`: must be one of {}", kEnumLabel<E>, word,
                                          fmt::join(words, ", ")));
}

}  // namespace gantry::policy
