// SPDX-License-Identifier: Apache-2.0
#include "sim/package/package.hpp"

#include "sim/machine/tree.hpp"
#include "sim/package/package_parts_internal.hpp"
#include "sim/package/run_archive.hpp"

#include <algorithm>

namespace gantry::sim {

Result<DriverPackage> make_driver_package(const PackageOptions& options) {
  GANTRY_TRY(const auto driver, find_package_driver(options.driver));
  GANTRY_TRY(const auto cards, all_cards(driver.name, driver.version));
  GANTRY_TRY(const auto directory, find_source_tree(options.source_tree));
  GANTRY_TRY(const auto libraries, find_libraries(options.libraries));
  GANTRY_TRY(const auto simulated, read_simulated_files(libraries));
  const SourceTree tree(directory);
  const PackageParts parts{driver, cards, tree, simulated};
  PackageContent content;
  GANTRY_CHECK(add_kernel_modules(content, parts));
  add_firmware(content, parts);
  GANTRY_CHECK(add_installer(content, parts));
  GANTRY_CHECK(add_programs(content, parts));
  GANTRY_CHECK(add_libraries(content, parts));
  GANTRY_TRY(auto script, tree.package_file("run-header.sh", driver));
  const auto files = content.files(driver);
  DriverPackage package{.file_name = package_name(driver) + ".run", .version = driver.version};
  package.files = static_cast<std::size_t>(
      std::ranges::count_if(files, [](const auto& file) { return !file.name.ends_with('/'); }));
  package.bytes = run_archive(std::move(script), files);
  return package;
}

}  // namespace gantry::sim
