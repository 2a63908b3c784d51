// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/tree.hpp"

#include "base/core/text.hpp"
#include "base/sys/host.hpp"
#include "sim/machine/image.hpp"
#include "sim/machine/kernel_log.hpp"
#include "sim/machine/state_file.hpp"
#include "sim/machine/tree_internal.hpp"
#include "sim/machine/tree_remove_internal.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace gantry::sim {
namespace {

namespace fs = std::filesystem;

enum class RootState : std::uint8_t { Nothing, EmptyDirectory, OurTree };

Result<RootState> look_at(const std::string& root) {
  struct stat st {};
  if (::lstat(root.c_str(), &st) != 0) {
    if (errno == ENOENT) return RootState::Nothing;
    return Error::sys(errno, root);
  }
  auto refuse = [&](std::string_view what) {
    return Error(
        Errc::Exists,
        fmt::format("{} {}; choose a directory that is empty or does not exist", root, what));
  };
  if (!S_ISDIR(st.st_mode)) return refuse("exists and is not a directory");
  if (read_marker(root).ok()) return RootState::OurTree;
  std::error_code failed;
  const bool empty = fs::is_empty(root, failed);
  if (failed) return Error::sys(failed.value(), root);
  if (!empty) return refuse("has files that do not belong to a simulated machine");
  return RootState::EmptyDirectory;
}

// Removes a half-built tree when create fails.
class TemporaryTree {
 public:
  explicit TemporaryTree(std::string path) : path_(std::move(path)) {}
  ~TemporaryTree() { (void)take_away(); }  // the first error is more useful
  TemporaryTree(const TemporaryTree&) = delete;
  TemporaryTree& operator=(const TemporaryTree&) = delete;
  const std::string& path() const { return path_; }
  void stands() { path_.clear(); }
  Status take_away() {
    const auto path = std::exchange(path_, "");
    return path.empty() ? Status{} : remove_tree(path);
  }

 private:
  std::string path_;
};

TreeMarker marker_of(const Machine& m) {
  const Driver& d = m.driver;
  if (d.version.empty()) return {.machine = m.name, .healthy = m.healthy};  // no driver installed
  return {.machine = m.name,
          .cuda_library = fmt::format("{}/libcuda.so.{}", d.cuda_library_directory, d.version),
          .nvml_library = fmt::format("{}/libnvidia-ml.so.{}", d.library_directory, d.version),
          .binary_directory = d.binary_directory,
          .healthy = m.healthy};
}

// The log after create, so that `inject` knows which lines it added.
std::string first_log(const Machine& m) {
  for (const auto& [path, content] : m.files) {
    if (path == kKernelLog) return content;
  }
  return boot_log(m);
}

void write_everything(TreeWriter& out, const Machine& m, const gantry_sim_image& image,
                      const SimulatedFiles& files) {
  write_driver_files(out, m, image, files);  // first: makes the /lib links
  write_etc(out, m);
  write_proc(out, m);
  write_proc_driver(out, m);
  write_sys(out, m);
  write_pci(out, m);
  write_vgpu_hosts(out, m);
  write_nodes(out, m);
  out.file(kKernelLog, boot_log(m), 0644);
  for (std::size_t i = 0; driver_loaded(m) && m.driver.caps_major != 0 && i < m.gpus.size(); ++i) {
    if (!m.gpus[i].mig_capable || m.gpus[i].pci.driver != "nvidia") continue;
    write_mig_capabilities(out, image.machine.gpu[i], image.state.gpu[i],
                           {m.driver.caps_major, m.nodes.uid, m.nodes.gid});
  }
  for (const auto& [path, target] : m.links) out.link(path, target);
  for (const auto& [path, content] : m.files) {
    if (path.ends_with('/')) {
      out.directory(path.substr(0, path.size() - 1));
    } else {
      out.file(path, content, path.starts_with("/etc") ? 0644 : 0444);
    }
  }
  for (const auto& path : m.absent) out.remove(path);
  out.file(fmt::format("{}/dmesg", kBackupPath), first_log(m));
  out.file(fmt::format("{}/state", kBackupPath),
           {reinterpret_cast<const char*>(&image.state), sizeof image.state});
  out.file(kMarkerPath, to_string(marker_of(m)), 0644);
  out.finish();
}

Status put_in_place(TemporaryTree& temporary_tree, const std::string& root, RootState found) {
  if (found != RootState::OurTree) {
    if (::rename(temporary_tree.path().c_str(), root.c_str()) != 0)
      return Error::sys(errno, fmt::format("rename to {}", root));
    temporary_tree.stands();
    return {};
  }
  // Swapped in one step; afterwards the temporary tree holds the old tree and removes it.
  const long done = ::syscall(SYS_renameat2, AT_FDCWD, temporary_tree.path().c_str(), AT_FDCWD,
                              root.c_str(), RENAME_EXCHANGE);
  if (done != 0) return Error::sys(errno, fmt::format("replace {}", root));
  return {};
}

}  // namespace

Result<CreatedTree> create(const Machine& machine, const CreateOptions& options) {
  std::error_code failed;
  auto root = fs::absolute(options.root, failed).lexically_normal().string();
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  if (failed || root.empty() || root == "/") {
    return Error(Errc::Invalid,
                 fmt::format("\"{}\" cannot be the root of a simulated machine", options.root));
  }
  GANTRY_TRY(const RootState found, look_at(root));
  if (found == RootState::OurTree && options.existing == ExistingTree::Keep) {
    return Error(Errc::Exists,
                 fmt::format("{} already has a simulated machine; --force replaces it", root));
  }
  if (found != RootState::Nothing) GANTRY_CHECK(refuse_mounts(root));
  GANTRY_TRY(const Image image, make_image(machine));
  GANTRY_TRY(const SimulatedFiles files, read_simulated_files(options.libraries));

  fs::create_directories(fs::path(root).parent_path(), failed);
  std::string temporary = root + ".new-XXXXXX";
  if (::mkdtemp(temporary.data()) == nullptr)
    return Error::sys(errno, fmt::format("create {}", temporary));
  TemporaryTree temporary_tree(temporary);
  ::chmod(temporary.c_str(), 0755);
  TreeWriter out(temporary, options.nodes);
  write_everything(out, machine, *image, files);
  GANTRY_CHECK(out.status().in(fmt::format("building {}", machine.name)));
  GANTRY_CHECK(put_in_place(temporary_tree, root, found));
  CreatedTree created{.root = root, .nodes = out.nodes(), .notes = out.notes()};
  if (const auto gone = temporary_tree.take_away(); !gone.ok()) {
    created.notes.push_back(
        fmt::format("parts of the old tree are still in {}: {}", temporary, gone.error().text()));
  }
  return created;
}

std::string to_string(const TreeMarker& m) {
  return fmt::format("gantry-sim 1\nmachine {}\ncuda {}\nnvml {}\nbin {}\n{}", m.machine,
                     m.cuda_library, m.nvml_library, m.binary_directory,
                     m.healthy.empty() ? "" : fmt::format("healthy {}\n", m.healthy));
}

Status remove(const std::string& root) {
  GANTRY_CHECK(read_marker(root));
  GANTRY_CHECK(refuse_mounts(root));
  return remove_tree(root);
}

Result<TreeMarker> read_marker(const std::string& root) {
  GANTRY_TRY(const sys::Host host, sys::Host::at(root));
  auto text = host.read(kMarkerPath, 4096);
  if (!text.ok() || !text->starts_with("gantry-sim 1\n")) {
    return Error(
        Errc::NotFound,
        fmt::format("{} is not a simulated machine; `gantry sim create` creates one", root));
  }
  TreeMarker marker;
  for (const auto line : lines(*text)) {
    const auto space = line.find(' ');
    const auto key = line.substr(0, space);
    const std::string value(space == std::string_view::npos ? "" : line.substr(space + 1));
    if (key == "machine") marker.machine = value;
    if (key == "cuda") marker.cuda_library = value;
    if (key == "nvml") marker.nvml_library = value;
    if (key == "bin") marker.binary_directory = value;
    if (key == "healthy") marker.healthy = value;
  }
  return marker;
}

Result<std::string> find_libraries(const std::string& given) {
  if (!given.empty()) return given;
  if (const char* named = std::getenv("GANTRY_SIM_LIBRARIES"); named != nullptr && *named != '\0')
    return std::string(named);
  std::error_code failed;
  const auto self = fs::read_symlink("/proc/self/exe", failed);
  const auto beside = (self.parent_path() / "../lib/gantry/sim").lexically_normal().string();
  if (!failed && fs::exists(beside + "/libcuda.so", failed)) return beside;
  return Error(Errc::NotFound,
               fmt::format("the simulated driver's libraries are not in {}; give their directory "
                           "with --libraries or GANTRY_SIM_LIBRARIES",
                           beside));
}

}  // namespace gantry::sim
