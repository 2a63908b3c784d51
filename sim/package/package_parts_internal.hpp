// SPDX-License-Identifier: Apache-2.0
// The parts of a driver package's content.
#pragma once

#include "sim/machine/machine.hpp"
#include "sim/machine/simulated_files.hpp"
#include "sim/package/package_content.hpp"
#include "sim/package/source_tree.hpp"

namespace gantry::sim {

struct PackageParts {
  const PackageDriver& driver;
  const Machine& cards;  // all_cards() of the driver
  const SourceTree& tree;
  const SimulatedFiles& files;
};

Status add_kernel_modules(PackageContent& out, const PackageParts& parts);
Status add_installer(PackageContent& out, const PackageParts& parts);
Status add_programs(PackageContent& out, const PackageParts& parts);
Status add_libraries(PackageContent& out, const PackageParts& parts);
void add_firmware(PackageContent& out, const PackageParts& parts);

}  // namespace gantry::sim
