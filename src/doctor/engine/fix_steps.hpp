// SPDX-License-Identifier: Apache-2.0
// Steps that several remedies share. They fit the distribution that is installed; where none fits
// they are empty.
#pragma once

#include "doctor/engine/check.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::doctor {

using Steps = std::vector<Action>;

void add(Steps& steps, Steps more);

Steps rebuild_initramfs(const Facts& facts);
// By the boot loader's own tool; in force after the next boot.
Steps add_kernel_argument(const Facts& facts, const std::string& argument);
// The same as one line for a person; by the distribution's name where its tools are not seen.
std::string kernel_argument_command(const Facts& facts, const std::string& argument);
Steps install_package(const Facts& facts, const std::string& name);
// `systemctl VERB SERVICE` where systemd has that unit.
Steps systemctl(const Facts& facts, std::vector<std::string> verb, const std::string& service);

// A file of modprobe's configuration that keeps a module away.
WriteFile blacklist(const std::string& path, std::string_view module);

// The file with some of its lines written anew; `edit` changes a line or leaves it. No step when
// nothing changes or the file cannot be read.
Steps rewrite_lines(const Facts& facts, const std::string& path, std::string what,
                    const std::function<void(std::string&)>& edit);

}  // namespace gantry::doctor
