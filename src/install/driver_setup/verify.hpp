// SPDX-License-Identifier: Apache-2.0
// Whether the driver that is installed works: its files, the loaded modules, the nodes, nvidia-smi,
// the loader cache, the CDI specification, the licence.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "install/driver_setup/install_effects.hpp"
#include "install/driver_setup/install_record.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_setup {

enum class VerifyState : std::uint8_t { Good, Note, Bad };
std::string_view to_string(VerifyState state);  // "ok", "note", "bad"

struct VerifyItem {
  std::string code;  // stable, for programs: "files", "modules", "nodes", "nvidia-smi", ...
  VerifyState state = VerifyState::Good;
  std::string sentence;
  std::string remedy{};
  bool operator==(const VerifyItem&) const = default;
};

struct VerifyReport {
  std::vector<VerifyItem> items;
  std::string smi_output;  // of nvidia-smi without arguments
  bool good() const;       // no item is Bad
};

enum class VerifyDepth : std::uint8_t {
  Loaded,        // files, modules and nodes; reads only
  Installation,  // with nvidia-smi, which opens every GPU, and the loader cache
  Machine        // with the CDI specification too
};

// Only nvidia-smi is run, by the effects.
VerifyReport verify(const sys::Host& host, const InstallRecord& record, VerifyDepth depth,
                    InstallEffects* effects);

// The first Bad item as an error.
Status first_failure(const VerifyReport& report);

// "License Status : Licensed (Expiry: 2026-8-1 0:0:0 GMT)" of `nvidia-smi -q`; "" if it has none.
std::string parse_licence_status(std::string_view smi_query);

}  // namespace gantry::driver_setup
