// SPDX-License-Identifier: Apache-2.0
// Where shares lie on a machine, for those who make them and those who look at them.
#pragma once

#include <string_view>

namespace gantry::policy {

inline constexpr std::string_view kControlSocket = "/run/gantry/keeper.sock";
inline constexpr std::string_view kSharesDirectory =
    "/run/gantry/shares";  // NAME/share.json, NAME/fence/
// DIGEST/NAME below it: copies for engines that do not see the files of an agent in a pod.
inline constexpr std::string_view kFenceCopies = "/var/lib/gantry/fence";

}  // namespace gantry::policy
