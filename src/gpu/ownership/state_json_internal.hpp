// SPDX-License-Identifier: Apache-2.0
// Reading the JSON of a state: what both versions share.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "gpu/ownership/ownership_state.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::ownership {

Error corrupt_ledger(std::string_view what);
Result<std::string> name_in(json::Value object, std::string_view key);
Result<Owner> owner_in(json::Value object, std::string_view key);
Result<model::AllocationMode> use_in(json::Value object);

template <class T, class From>
Status read_list(json::Value list, std::size_t most, From from, std::vector<T>& into) {
  if (!list.is(json::Kind::Array) || list.size() > most)
    return corrupt_ledger("a list is missing or too long");
  for (const auto value : list) {
    GANTRY_TRY(auto item, from(value));
    into.push_back(std::move(item));
  }
  return {};
}

// A state of version 1, without its sequence number.
Result<OwnershipState> parse_former_state(json::Value document);

}  // namespace gantry::ownership
