// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/write_spec.hpp"

#include "base/core/text.hpp"
#include "base/sys/replace_file.hpp"
#include "base/sys/shell_command.hpp"
#include "container/cdi/read.hpp"
#include "container/cdi/validate.hpp"
#include "container/cdi/version.hpp"

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

namespace gantry::cdi {
namespace {

constexpr std::string_view kMarker = "# Written by gantry. `gantry cdi refresh` updates it.\n";
constexpr std::string_view kStart = "---\n";
// The same as in plan/driver_paths.hpp: files of other tools do not mount from there.
constexpr std::string_view kDriverDirectoryPrefix = "/var/lib/gantry/driver/";

// The path as this process sees it, with its directory resolved inside the root: below another
// root, /var/run may be a link to /run, which would lead to our own machine's /run.
std::string outside(const sys::Host& host, const std::string& path) {
  auto directory = path.substr(0, path.rfind('/'));
  auto rest = path.substr(directory.size());
  while (!directory.empty()) {
    if (const auto resolved = host.resolve(directory); resolved.ok()) {
      return host.outside((*resolved == "/" ? "" : *resolved) + rest);
    }
    const auto slash = directory.rfind('/');
    rest.insert(0, directory, slash);
    directory.resize(slash);
  }
  return host.outside(rest);
}

// The same file under another spelling (/run/cdi and /var/run/cdi).
bool same_file(const sys::Host& host, const std::string& a, const std::string& b) {
  return a == b || outside(host, a) == outside(host, b);
}

// The index of the file's directory in the list that engines read; nullopt: engines do not read it.
std::optional<std::size_t> priority_of(const sys::Host& host, const std::string& path,
                                       const std::vector<std::string>& directories) {
  const auto directory = outside(host, path.substr(0, path.rfind('/') + 1));
  for (std::size_t i = 0; i < directories.size(); ++i) {
    if (outside(host, directories[i] + "/") == directory) return i;
  }
  return std::nullopt;
}

struct DuplicateFile {
  std::string path;
  bool ours = false;
};

// Files that conflict with the new one, and our own files in another directory, of which engines
// use one.
struct Duplicates {
  std::vector<DuplicateFile> files;
  std::vector<std::string> hidden;  // the new file hides these
  std::vector<std::string> hiding;  // these hide the new file
};

Duplicates find_duplicates(const sys::Host& host, const std::string& target,
                           const std::string& kind, const WriteOptions& options) {
  Duplicates doubled;
  const auto place = priority_of(host, target, options.directories);
  // Does not read the target itself: parsing it takes longer than the rest of a refresh.
  const auto registry = Registry::load(
      host, place ? options.directories : std::vector<std::string>{}, [&](const std::string& file) {
        const bool apart = !options.apart.empty() && file.starts_with(options.apart);
        return apart || same_file(host, file, target);
      });
  for (const auto& file : registry.files()) {
    if (file.spec.kind != kind) continue;
    const auto text = host.read(file.path, kMaxSpecBytes);
    const bool ours = text.ok() && is_written_by_gantry(*text);
    if (ours && file.priority != *place) {
      (file.priority < *place ? doubled.hidden : doubled.hiding).push_back(file.path);
    } else {
      doubled.files.push_back({file.path, ours});
    }
  }
  const auto old = host.read(target, kMaxSpecBytes);
  if (old.ok() && !trim(*old).empty() && !is_written_by_gantry(*old))
    doubled.files.push_back({target});
  return doubled;
}

Error refusal(const sys::Host& host, const DuplicateFile& other, const std::string& target,
              const std::string& kind) {
  const auto file = host.outside(other.path);
  const auto rest = fmt::format(
      "Run the command again with --take-over to rename it to {}.before-gantry, or remove it: "
      "sudo rm {}",
      file, sys::shell_word(file));
  if (other.path == target) {
    return {Errc::Exists,
            fmt::format("{} already exists, and another tool wrote it. {}", file, rest)};
  }
  return {
      Errc::Exists,
      fmt::format("{} also has devices of kind {}, written by {}; engines ignore or hide a device "
                  "that two files define. {}",
                  file, kind, other.ours ? "gantry for another --output" : "another tool", rest)};
}

Status take_over(const sys::Host& host, const std::string& file) {
  const auto path = outside(host, file);
  if (::rename(path.c_str(), (path + ".before-gantry").c_str()) != 0) {
    return Error::sys(errno, fmt::format("rename {} to {}.before-gantry", file, file));
  }
  return {};
}

// Adds a second name for the target before it is replaced, so that the target always exists.
Status keep_copy(const sys::Host& host, const std::string& file) {
  const auto path = outside(host, file);
  const auto copy = path + ".before-gantry";
  ::unlink(copy.c_str());
  if (::link(path.c_str(), copy.c_str()) != 0) {
    return Error::sys(errno, fmt::format("link {} to {}.before-gantry", file, file));
  }
  return {};
}

Spec with_version(Spec spec) {
  if (spec.version.empty()) spec.version = to_string(lowest_version(spec));
  return spec;
}

// The files that writing the specification would rename or hide.
Result<Duplicates> plan_write(const sys::Host& host, const std::string& path, const Spec& spec,
                              const WriteOptions& options) {
  const auto problems = validate(with_version(spec));
  if (!problems.empty()) {
    return Error(
        Errc::Invalid,
        fmt::format("{} is unchanged, because engines would refuse the new specification: {}", path,
                    fmt::join(problems, "; ")));
  }
  auto doubled = find_duplicates(host, path, spec.kind, options);
  for (const auto& file : doubled.files) {
    const bool may = options.others == ExistingSpecPolicy::TakeOver ||
                     (options.others == ExistingSpecPolicy::TakeOverTarget && file.path == path);
    if (!may) return refusal(host, file, path, spec.kind);
  }
  return doubled;
}

}  // namespace

std::string to_text_with_marker(const Spec& spec, Format format) {
  auto text = to_text(spec, format);
  if (format == Format::Yaml) text.insert(kStart.size(), kMarker);
  return text;
}

bool is_written_by_gantry(std::string_view text) {
  if (text.starts_with(kStart) && text.substr(kStart.size()).starts_with("# Written by gantry"))
    return true;
  if (text.find(kDriverDirectoryPrefix) != std::string_view::npos) return true;
  const auto spec = load_spec(text, "");
  return spec.ok() && to_text(*spec, Format::Json) == text;
}

Status check_spec(const sys::Host& host, const std::string& path, const Spec& spec,
                  const WriteOptions& options) {
  GANTRY_TRY([[maybe_unused]] const auto plan, plan_write(host, path, spec, options));
  return {};
}

Result<WriteResult> write_spec(const sys::Host& host, const std::string& path, const Spec& spec,
                               const WriteOptions& options) {
  GANTRY_TRY(const auto doubled, plan_write(host, path, spec, options));
  const auto text = to_text_with_marker(spec, options.format.value_or(format_of(path)));
  WriteResult written;
  for (const auto& file : doubled.files) written.moved.push_back(file.path);
  for (const auto& file : doubled.hiding) {
    written.notes.push_back(
        fmt::format("{0} was also written by gantry and hides {1}; to use the new file, remove "
                    "the other: sudo rm {2}",
                    host.outside(file), host.outside(path), sys::shell_word(host.outside(file))));
  }
  for (const auto& file : doubled.hidden) {
    written.notes.push_back(fmt::format(
        "{} was also written by gantry and is now hidden by {}; it is no longer updated, "
        "remove it: sudo rm {}",
        host.outside(file), host.outside(path), sys::shell_word(host.outside(file))));
  }
  const auto old = host.read(path, kMaxSpecBytes);
  written.changed = !old.ok() || *old != text;
  const bool target_moves =
      std::find(written.moved.begin(), written.moved.end(), path) != written.moved.end();
  if (target_moves) GANTRY_CHECK(keep_copy(host, path));
  if (written.changed) {
    GANTRY_CHECK(sys::replace_file(outside(host, path), text).in(fmt::format("writing {}", path)));
  }
  // The new file is in place before the old ones are removed, so that there is always one.
  for (const auto& file : written.moved) {
    if (file != path) GANTRY_CHECK(take_over(host, file));
  }
  return written;
}

}  // namespace gantry::cdi
