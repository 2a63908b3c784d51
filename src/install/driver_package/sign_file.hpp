// SPDX-License-Identifier: Apache-2.0
// The command of the kernel's build directory that signs a module. Gantry never reads the key: it
// passes the path, or the PKCS#11 URI, on. Keys do not belong on nodes; this is for the machine
// that builds precompiled modules.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <string>
#include <vector>

namespace gantry::driver_package {

struct SigningKey {
  std::string key;          // a path, or "pkcs11:..."
  std::string certificate;  // X.509, DER or PEM: a path
};

struct SignPlan {
  std::vector<std::vector<std::string>> commands;  // argv, one for each module
  std::vector<std::string> notes;                  // what the administrator should know
};

// `build`: the kernel's build directory; its scripts/sign-file must be there (NotFound). Denied if
// the key can be read by other users.
Result<SignPlan> plan_sign(const sys::Host& host, const std::string& build, const SigningKey& key,
                           const std::vector<std::string>& modules);

}  // namespace gantry::driver_package
