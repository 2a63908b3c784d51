// SPDX-License-Identifier: Apache-2.0
// Commands that the doctor and the preflight both advise.
#pragma once

#include <string>
#include <string_view>

namespace gantry::preflight {

// The file name and the directory are those that distributions use.
inline constexpr std::string_view kForbidNouveau =
    "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee "
    "/etc/modprobe.d/nvidia-no-nouveau.conf && (sudo update-initramfs -u || sudo dracut -f) && "
    "sudo "
    "reboot";

// For any other module that holds a GPU: `commands` write the files that forbid it.
inline std::string then_reboot(std::string_view commands) {
  return std::string(commands) + " && (sudo update-initramfs -u || sudo dracut -f) && sudo reboot";
}

inline constexpr std::string_view kEnrolKey =
    "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der && sudo reboot  # confirm at the "
    "console; or install the distribution's signed modules (linux-modules-nvidia-*)";

}  // namespace gantry::preflight
