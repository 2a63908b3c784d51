// SPDX-License-Identifier: Apache-2.0
// What the kernel logs from now on: the reason why it refuses a module is nowhere else.
#pragma once

#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::kernel_module {

// One record of /dev/kmsg: "6,1234,5678,-;text", with further lines that belong to it. "" if it is
// not of this form.
std::string parse_log_record(std::string_view record);

class NewKernelLog {
 public:
  // Begins behind what was logged before. A log that cannot be read has no lines.
  explicit NewKernelLog(const sys::Host& machine);
  // The lines since then, without time and level; at most 200.
  std::vector<std::string> read();

 private:
  sys::UniqueFd fd_;
};

}  // namespace gantry::kernel_module
