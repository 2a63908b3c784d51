// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "gpu/driver/file_names.hpp"
#include "gpu/driver/files_internal.hpp"
#include "gpu/loader/elf.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver {
namespace {

// Libraries of one directory, each real file once.
class DirectoryReader {
 public:
  DirectoryReader(const DriverView& view, const DriverRoot& root, const LibraryDirectory& directory,
                  DriverFiles& out)
      : view_(view),
        root_(root),
        directory_(directory),
        path_(view.inside(directory.path)),
        out_(out) {}

  void read() {
    for (const auto& name : directory_.names) {
      const auto parsed = parse_library_name(name);
      if (!parsed) continue;
      const auto* row = library_row(parsed->stem);
      const bool has_drivers_version = parsed->version == root_.library_version;
      const bool has_own =
          row != nullptr && row->rule == NameRule::OwnVersion && !parsed->version.empty();
      if (has_drivers_version || has_own) add(name, *parsed, row);
    }
  }

 private:
  void add(const std::string& name, const LibraryName& parsed, const LibraryRow* row) {
    auto real = view_.host.resolve(join_path(path_, name));
    if (!real.ok()) return;
    // libnvidia-egl-gbm.so.1 -> libnvidia-egl-gbm.so.1.1.2 is a link of the file that follows.
    const bool is_alias = base_name(*real) != name && parsed.version != root_.library_version;
    if (is_alias && parent_directory(*real) == path_) return;
    auto path = view_.outside(*real);
    const bool known = std::any_of(out_.files.begin(), out_.files.end(),
                                   [&](const model::DriverFile& f) { return f.path == path; });
    if (known) return;
    model::DriverFile file{.path = std::move(path),
                           .kind = row != nullptr ? row->kind : model::DriverFileKind::Library};
    if (!read_header(*real, file)) return;
    auto mask = row != nullptr ? row->capabilities : kUnknownLibraryCapabilities;
    if (file.is_32bit) mask |= mask_of(model::Capability::Compat32);
    file.capabilities = capabilities_of(mask);
    file.links = links_to(parsed.stem, name, *real);
    file.why = why(name, file, row);
    out_.files.push_back(std::move(file));
  }

  // Reads size, class and SONAME with one open. False if it is not a file.
  bool read_header(const std::string& real, model::DriverFile& file) {
    const auto fd = view_.host.open(real, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!fd.ok()) {
      out_.notes.push_back(fd.error().text());
      return false;
    }
    struct stat st {};
    if (::fstat(fd->get(), &st) != 0 || !S_ISREG(st.st_mode)) return false;
    file.size = static_cast<std::uint64_t>(st.st_size);
    const auto elf = loader::Elf::open(fd->get());
    auto soname = elf.ok() ? elf->soname() : Result<std::string>(elf.error());
    if (soname.ok()) {
      file.is_32bit = !elf->is_64bit();
      file.soname = *std::move(soname);
    } else {
      out_.notes.push_back(fmt::format("{} is damaged: {}", file.path, soname.error().text()));
    }
    return true;
  }

  // Other names in the directory that link to the file: libcuda.so, libcuda.so.1.
  std::vector<std::string> links_to(std::string_view stem, std::string_view name,
                                    const std::string& real) const {
    std::vector<std::string> links;
    const auto prefix = fmt::format("{}.so", stem);
    for (auto it = std::lower_bound(directory_.names.begin(), directory_.names.end(), prefix);
         it != directory_.names.end() && it->starts_with(prefix); ++it) {
      if (*it == name || parse_library_name(*it)->stem != stem) continue;
      const auto target = view_.host.resolve(join_path(path_, *it));
      if (target.ok() && *target == real) links.push_back(*it);
    }
    // GBM finds its backend by this name, in its own directory.
    if (stem == "libnvidia-allocator" &&
        std::binary_search(directory_.names.begin(), directory_.names.end(), "gbm")) {
      const std::string backend = "gbm/nvidia-drm_gbm.so";
      const auto target = view_.host.resolve(join_path(path_, backend));
      if (target.ok() && *target == real) links.push_back(backend);
    }
    return links;
  }

  std::string why(std::string_view name, const model::DriverFile& file,
                  const LibraryRow* row) const {
    const auto& cached = directory_.cached_names;
    const auto in_cache = [&](std::string_view candidate) {
      return std::binary_search(cached.begin(), cached.end(), candidate);
    };
    std::string reason;
    if (!file.soname.empty() && in_cache(file.soname)) {
      reason = fmt::format("in ld.so.cache as {}", file.soname);
    } else if (in_cache(name)) {
      reason = fmt::format("in ld.so.cache as {}", name);
    } else if (parent_directory(file.path) == root_.library_directory &&
               !name.starts_with("libcuda.so")) {
      reason = fmt::format("beside libcuda.so.{} in {}", root_.library_version, directory_.path);
    } else {
      reason = fmt::format("in {} ({})", directory_.path, directory_.why);
    }
    if (row == nullptr) reason += "; not in our table, but of the driver's version";
    return reason;
  }

  const DriverView& view_;
  const DriverRoot& root_;
  const LibraryDirectory& directory_;
  std::string path_;
  DriverFiles& out_;
};

// Old drivers have two variants of libnvidia-tls; the one in tls/ is for kernels with native
// thread-local storage, which all kernels have now.
void keep_one_tls_variant(DriverFiles& out) {
  const auto is_tls = [](const model::DriverFile& f) {
    return base_name(f.path).starts_with("libnvidia-tls.so.");
  };
  for (const bool is_32bit : {false, true}) {
    const bool has_variant =
        std::any_of(out.files.begin(), out.files.end(), [&](const model::DriverFile& f) {
          return is_tls(f) && f.is_32bit == is_32bit && parent_directory(f.path).ends_with("/tls");
        });
    if (!has_variant) continue;
    std::erase_if(out.files, [&](const model::DriverFile& f) {
      return is_tls(f) && f.is_32bit == is_32bit && !parent_directory(f.path).ends_with("/tls");
    });
  }
}

}  // namespace

void find_libraries(const DriverView& view, const DriverRoot& root, DriverFiles& out) {
  for (const auto& directory : root.directories) {
    DirectoryReader(view, root, directory, out).read();
    for (const std::string_view below : {"vdpau", "tls"}) {
      if (!std::binary_search(directory.names.begin(), directory.names.end(), below)) continue;
      auto names = view.host.list(join_path(view.inside(directory.path), below));
      if (!names.ok()) continue;
      const LibraryDirectory nested{.path = join_path(directory.path, below),
                                    .why = fmt::format("below {}", directory.path),
                                    .names = *std::move(names),
                                    .cached_names = {}};
      DirectoryReader(view, root, nested, out).read();
    }
  }
  keep_one_tls_variant(out);
}

}  // namespace gantry::driver
