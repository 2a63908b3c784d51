// SPDX-License-Identifier: Apache-2.0
// Steps that several remedies share. They use the tools of the installed distribution; if none of
// the known tools is installed, the list is empty.
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
// Uses the boot loader's own tool; takes effect at the next boot.
Steps add_kernel_argument(const Facts& facts, const std::string& argument);
// The same as one command line for a person. If no tool is installed, the distribution's name
// decides.
std::string kernel_argument_command(const Facts& facts, const std::string& argument);
Steps install_package(const Facts& facts, const std::string& name);
// The same as a command for a person; if none of the tools is installed, by the distribution's
// name.
// "" for a distribution that we do not know.
std::string install_command(const Facts& facts, std::string_view name);
// `systemctl VERB SERVICE`; empty if systemd does not have that unit.
Steps systemctl(const Facts& facts, std::vector<std::string> verb, const std::string& service);

// A modprobe configuration file that prevents a module from being loaded.
WriteFile blacklist(const std::string& path, std::string_view module);

// Rewrites a file: `edit` is called for every line and may change it. Returns no step if no line
// changes or the file cannot be read.
Steps rewrite_lines(const Facts& facts, const std::string& path, std::string what,
                    const std::function<void(std::string&)>& edit);

}  // namespace gantry::doctor
