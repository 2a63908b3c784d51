// SPDX-License-Identifier: Apache-2.0
#include "cdi/write_spec.hpp"

#include "cdi/read.hpp"
#include "cdi/validate.hpp"
#include "cdi/version.hpp"
#include "sys/replace_file.hpp"

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace gantry::cdi {
namespace {

constexpr std::string_view kMark = "# Written by gantry. `gantry cdi refresh` writes it anew.\n";
constexpr std::string_view kStart = "---\n";

// The file as the process sees it, its directory resolved inside the root: below another root
// /var/run may be a link to /run, which outside of it is our own machine's.
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

// Files of this kind that somebody else wrote, the target included.
std::vector<std::string> others_files(const sys::Host& host, const std::string& target,
                                      const std::string& kind, const WriteOptions& options) {
  std::vector<std::string> found;
  const auto registry = Registry::load(host, options.directories);
  for (const auto& file : registry.files()) {
    if (file.spec.kind == kind && !same_file(host, file.path, target)) found.push_back(file.path);
  }
  const auto old = host.read(target, kSpecBytes);
  if (old.ok() && !is_ours(*old)) found.push_back(target);
  return found;
}

Status take_over(const sys::Host& host, const std::string& file) {
  const auto path = outside(host, file);
  if (::rename(path.c_str(), (path + ".before-gantry").c_str()) != 0) {
    return Error::sys(errno, fmt::format("rename {} to {}.before-gantry", file, file));
  }
  return {};
}

// A second name for the target, which is replaced afterwards: it is never gone in between.
Status keep_copy(const sys::Host& host, const std::string& file) {
  const auto path = outside(host, file);
  const auto copy = path + ".before-gantry";
  ::unlink(copy.c_str());
  if (::link(path.c_str(), copy.c_str()) != 0) {
    return Error::sys(errno, fmt::format("link {} to {}.before-gantry", file, file));
  }
  return {};
}

std::string text_of(const Spec& spec, Format format) {
  auto text = to_text(spec, format);
  if (format == Format::Yaml) text.insert(kStart.size(), kMark);
  return text;
}

Spec with_version(Spec spec) {
  if (spec.version.empty()) spec.version = to_string(lowest_version(spec));
  return spec;
}

}  // namespace

bool is_ours(std::string_view text) {
  return text.starts_with(kStart) && text.substr(kStart.size()).starts_with("# Written by gantry");
}

Result<Written> write_spec(const sys::Host& host, const std::string& path, const Spec& spec,
                           const WriteOptions& options) {
  const auto problems = validate(with_version(spec));
  if (!problems.empty()) {
    return Error(Errc::Invalid,
                 fmt::format("{} is left as it is, the new specification would be refused: {}",
                             path, fmt::join(problems, "; ")));
  }
  const auto text = text_of(spec, options.format.value_or(format_of(path)));
  Written written;
  if (options.others != Others::Ignore) {
    auto others = others_files(host, path, spec.kind, options);
    if (!others.empty() && options.others == Others::Refuse) {
      return Error(
          Errc::Exists,
          fmt::format("{} has devices of kind {} too, written by another tool; two files with the "
                      "same device cancel each other. Run the command again with --take-over to "
                      "rename it to {}.before-gantry, or remove it",
                      others.front(), spec.kind, others.front()));
    }
    written.moved = std::move(others);
  }
  const auto old = host.read(path, kSpecBytes);
  written.changed = !old.ok() || *old != text;
  const bool target_moves =
      std::find(written.moved.begin(), written.moved.end(), path) != written.moved.end();
  if (target_moves) GANTRY_CHECK(keep_copy(host, path));
  if (written.changed) {
    GANTRY_CHECK(sys::replace_file(outside(host, path), text).in(fmt::format("writing {}", path)));
  }
  // The new file is in place before the old ones go, so that there is always one.
  for (const auto& file : written.moved) {
    if (file != path) GANTRY_CHECK(take_over(host, file));
  }
  return written;
}

}  // namespace gantry::cdi
