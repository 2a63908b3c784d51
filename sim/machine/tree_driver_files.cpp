// SPDX-License-Identifier: Apache-2.0
// The driver's user space: libraries with their links, ld.so.cache, programs, firmware, kernel
// objects.
#include "base/core/text.hpp"
#include "gpu/loader/ld_cache.hpp"
#include "sim/machine/driver_library.hpp"
#include "sim/machine/elf_writer.hpp"
#include "sim/machine/image.hpp"
#include "sim/machine/tree_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::sim {
namespace {

class LibraryWriter {
 public:
  LibraryWriter(TreeWriter& out, const Machine& machine) : out_(out), m_(machine) {}

  void add(const DriverLibrary& library, std::string_view content, bool is_32bit) {
    const auto at = library.directory + "/";
    out_.file(at + library.file, content, 0755);
    if (library.soname != library.file) out_.link(at + library.soname, library.file);
    cache(library, library.soname, is_32bit);
    if (library.dev_link.empty() || !wants_dev_link(library.dev_link) || is_32bit) return;
    out_.link(at + library.dev_link, library.soname);
    cache(library, library.dev_link, false);
  }

  // Like /usr/lib of the H200 guest: absolute links for the names with and without a version.
  void link_from(const std::string& directory, const DriverLibrary& library) {
    for (const auto& name : {library.dev_link, library.soname}) {
      const bool skip = name == library.file || name.empty() ||
                        std::any_of(m_.driver.link_skip.begin(), m_.driver.link_skip.end(),
                                    [&](const auto& pattern) { return glob_match(pattern, name); });
      if (skip) continue;
      out_.link(fmt::format("{}/{}", directory, name),
                fmt::format("{}/{}", library.directory, name));
      cache_.push_back({.name = name, .path = fmt::format("{}/{}", directory, name)});
    }
  }

  void write_cache() {
    std::vector<std::string> directories = m_.ld_so_conf;
    for (const auto* name : {"/lib", "/usr/lib", "/lib64", "/usr/lib64"})
      directories.emplace_back(name);
    std::vector<loader::LdCacheEntry> listed;
    std::vector<bool> done(cache_.size(), false);
    for (const auto& directory : directories) {
      for (std::size_t i = 0; i < cache_.size(); ++i) {
        const auto slash = cache_[i].path.rfind('/');
        if (done[i] || !same_directory(cache_[i].path.substr(0, slash), directory)) continue;
        done[i] = true;
        listed.push_back(cache_[i]);
        listed.back().path = fmt::format("{}/{}", directory, cache_[i].name);
      }
    }
    const auto bytes = loader::serialize_ld_cache({.entries = std::move(listed)});
    if (!bytes.ok()) return out_.fail(Error(bytes.error()).in("/etc/ld.so.cache"));
    out_.file("/etc/ld.so.cache", *bytes, 0644);
  }

 private:
  bool wants_dev_link(const std::string& name) const {
    return std::any_of(m_.driver.dev_links.begin(), m_.driver.dev_links.end(),
                       [&](const auto& pattern) { return glob_match(pattern, name); });
  }

  // On a merged /usr, /lib and /usr/lib are one directory; ldconfig lists the first name it met.
  bool same_directory(std::string_view a, std::string_view b) const {
    auto short_form = [&](std::string_view path) {
      return m_.merged_usr && path.starts_with("/usr/lib") ? path.substr(4) : path;
    };
    return short_form(a) == short_form(b);
  }

  void cache(const DriverLibrary& library, const std::string& name, bool is_32bit) {
    if (library.in_cache && name.starts_with("lib")) {
      cache_.push_back({.name = name,
                        .path = fmt::format("{}/{}", library.directory, name),
                        .flags = is_32bit ? loader::kElfLibc6 : loader::kAmd64});
    }
  }

  TreeWriter& out_;
  const Machine& m_;
  std::vector<loader::LdCacheEntry> cache_;
};

// Libraries that are not the driver's own.
void write_other_libraries(LibraryWriter& writer, const LibraryGroup& group) {
  for (const auto& name : group.names) {
    DriverLibrary library{.directory = group.directory, .file = name, .soname = name};
    const auto so = name.find(".so.");
    if (group.dev_links && so != std::string::npos) library.dev_link = name.substr(0, so + 3);
    writer.add(library, shared_object(name, ElfClass::Bits64), false);
  }
}

void write_libraries(TreeWriter& out, const Machine& m, const gantry_sim_image& image,
                     const SimulatedFiles& files) {
  LibraryWriter writer(out, m);
  const Driver& d = m.driver;
  for (const auto& spec : d.libraries) {
    const bool cuda = spec.starts_with("libcuda.so");
    const auto library =
        driver_library(spec, cuda ? d.cuda_library_directory : d.library_directory, d.version);
    writer.add(library,
               driver_library_content(spec, library.soname, driver_major(d.version), image, files),
               false);
    if (!d.link_directory.empty() && library.in_cache) writer.link_from(d.link_directory, library);
  }
  for (const auto& spec : d.libraries32) {
    const auto library = driver_library(spec, d.library32_directory, d.version);
    writer.add(library, shared_object(library.soname, ElfClass::Bits32), true);
  }
  for (const auto& group : m.libraries) write_other_libraries(writer, group);
  writer.write_cache();
}

void write_programs(TreeWriter& out, const Machine& m, const SimulatedFiles& files) {
  for (const auto& name : m.driver.binaries) {
    const auto path = fmt::format("{}/{}", m.driver.binary_directory, name);
    if (const auto ours = files.programs.find(name); ours != files.programs.end()) {
      out.file(path, ours->second, 0755);
    } else if (name == "nvidia-bug-report.sh") {
      out.file(path, "#!/bin/sh\necho 'nvidia-bug-report.sh: simulated'\n", 0755);
    } else {
      out.file(path, static_program(fmt::format("{}: simulated", name)), 0755);
    }
  }
}

void write_firmware(TreeWriter& out, const Machine& m) {
  const Driver& d = m.driver;
  for (const auto& name : d.firmware) {
    out.file(fmt::format("{}/nvidia/{}/{}", d.firmware_directory, d.version, name),
             fmt::format("simulated firmware {} {}\n", name, d.version), 0644);
  }
  for (const auto& name : d.kernel_objects) {
    auto object =
        kernel_object({{"license", d.flavour == Flavour::Open ? "Dual MIT/GPL" : "NVIDIA"},
                       {"version", d.module_version.empty() ? d.version : d.module_version},
                       {"srcversion", d.srcversion},
                       {"vermagic", m.kernel_release + " SMP preempt mod_unload modversions "}});
    if (d.module_signed) object += "~Module signature appended~\n";
    out.file(fmt::format("{}/{}", d.module_directory, name), object, 0644);
  }
}

bool has(const Driver& d, std::string_view library) {
  return std::any_of(d.libraries.begin(), d.libraries.end(),
                     [&](const auto& spec) { return spec.starts_with(library); });
}

void write_vendor_files(TreeWriter& out, const Machine& m) {
  const Driver& d = m.driver;
  const std::string share = d.share_directory.empty() ? "/usr/share" : d.share_directory;
  if (has(d, "libEGL_nvidia")) {
    out.file(share + "/glvnd/egl_vendor.d/10_nvidia.json",
             "{\n  \"file_format_version\": \"1.0.0\",\n  \"ICD\": {\"library_path\": "
             "\"libEGL_nvidia.so.0\"}\n}\n",
             0644);
  }
  if (has(d, "libGLX_nvidia")) {
    const std::string vulkan =
        d.share_directory.empty() ? d.etc_directory + "/vulkan" : share + "/vulkan";
    out.file(vulkan + "/icd.d/nvidia_icd.json",
             "{\n  \"file_format_version\": \"1.0.0\",\n  \"ICD\": {\"library_path\": "
             "\"libGLX_nvidia.so.0\", "
             "\"api_version\": \"1.3.0\"}\n}\n",
             0644);
    out.file(vulkan + "/implicit_layer.d/nvidia_layers.json",
             "{\n  \"file_format_version\": \"1.0.0\",\n  \"layers\": [{\"name\": "
             "\"VK_LAYER_NV_optimus\", \"type\": \"INSTANCE\", "
             "\"library_path\": \"libGLX_nvidia.so.0\", \"api_version\": \"1.3.0\", "
             "\"implementation_version\": \"1\", "
             "\"description\": \"simulated\"}]\n}\n",
             0644);
  }
  if (has(d, "libnvidia-opencl") && d.share_directory.empty()) {
    out.file(d.etc_directory + "/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1\n", 0644);
  }
}

}  // namespace

void write_driver_files(TreeWriter& out, const Machine& m, const gantry_sim_image& image,
                        const SimulatedFiles& files) {
  if (m.merged_usr) {
    for (const auto* name : {"lib", "lib64", "bin", "sbin"}) {
      out.directory(fmt::format("/usr/{}", name));
      out.link(fmt::format("/{}", name), fmt::format("usr/{}", name));
    }
  }
  write_libraries(out, m, image, files);
  if (m.driver.version.empty()) return;
  write_programs(out, m, files);
  write_firmware(out, m);
  write_vendor_files(out, m);
}

}  // namespace gantry::sim
