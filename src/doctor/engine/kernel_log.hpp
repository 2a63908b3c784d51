// SPDX-License-Identifier: Apache-2.0
// The kernel's messages since boot, and the Xid lines in them.
#pragma once

#include "base/sys/host.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::doctor {

// Reads /dev/kmsg, or /var/log/dmesg if only that exists (a container, a tree of files). Returns
// nullopt if neither can be read. Never waits for new messages; drops the oldest ones beyond 8 MiB.
std::optional<std::string> read_kernel_log(const sys::Host& host);

struct Xid {
  std::string pci;  // "0000:3b:00", as the driver writes it
  unsigned number = 0;
  std::string text;  // the rest of the line
};

// Parses "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x, text"; old drivers write neither pid nor
// name.
std::vector<Xid> find_xids(std::string_view log);

enum class XidClass : std::uint8_t { Application, Notable, Critical };
struct XidMeaning {
  XidClass kind = XidClass::Notable;
  std::string_view meaning;
  std::string_view action;
};
XidMeaning xid_meaning(unsigned xid);

}  // namespace gantry::doctor
