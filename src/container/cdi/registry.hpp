// SPDX-License-Identifier: Apache-2.0
// All specifications of a machine, as an engine sees them: a later directory overrides an earlier
// one, and a device that two files of one directory define cannot be used.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/cdi/spec.hpp"
#include "gpu/model/container_edits.hpp"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gantry::cdi {

std::vector<std::string> default_directories();  // /etc/cdi, /var/run/cdi

struct SpecFile {
  std::string path;
  std::size_t priority = 0;  // index of its directory; the higher one wins
  Spec spec;
};

struct RejectedFile {  // a file that is ignored
  std::string path;
  std::string why;
};

struct Conflict {  // a device that two files of equal priority define: no engine resolves it
  std::string name;
  std::string first;
  std::string second;
  bool operator==(const Conflict&) const = default;
};

class Registry {
 public:
  // Never fails: a missing directory has no files, and invalid files are in rejected(). Does not
  // read files for which `skip` returns true.
  using Skip = std::function<bool(const std::string& path)>;
  static Registry load(const sys::Host& host,
                       const std::vector<std::string>& directories = default_directories(),
                       const Skip& skip = nullptr);

  const std::vector<SpecFile>& files() const { return files_; }
  const std::vector<RejectedFile>& rejected() const { return rejected_; }
  const std::vector<Conflict>& conflicts() const { return conflicts_; }

  struct DeviceLocation {
    std::size_t file = 0;
    std::size_t device = 0;
  };
  // The qualified names that an engine would resolve, sorted.
  const std::map<std::string, DeviceLocation>& devices() const { return devices_; }

  // All edits of the named devices: the edits of each specification once, then those of each
  // device. Errors list the devices that exist.
  Result<model::ContainerEdits> edits_for(std::span<const std::string> names) const;

 private:
  void add_directory(const sys::Host& host, const std::string& directory, std::size_t priority,
                     const Skip& skip);
  void resolve();
  Error missing(const std::string& name) const;

  std::vector<SpecFile> files_;
  std::vector<RejectedFile> rejected_;
  std::vector<Conflict> conflicts_;
  std::map<std::string, DeviceLocation> devices_;
};

}  // namespace gantry::cdi
