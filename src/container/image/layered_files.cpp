// SPDX-License-Identifier: Apache-2.0
#include "container/image/layered_files.hpp"

#include "base/core/text.hpp"

#include <algorithm>
#include <iterator>

namespace gantry::image {
namespace {

constexpr int kMostLinks = 40;  // as the kernel
constexpr std::size_t kMostNames = 65536;

void push_parts(std::vector<std::string>& parts, std::string_view path) {
  const auto names = split(path, '/');
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!name->empty() && *name != ".") parts.emplace_back(*name);
  }
}

// All names below a directory lie between these two: '0' is the character after '/'.
std::string first_below(std::string_view directory) {
  return std::string(directory == "/" ? "" : directory) + '/';
}
std::string end_below(std::string_view directory) {
  return std::string(directory == "/" ? "" : directory) + '0';
}

}  // namespace

std::optional<std::string> LayeredFiles::real_path(std::string_view path) const {
  std::vector<std::string> parts;  // still to walk, the next one last
  push_parts(parts, path);
  std::string here;
  int links = 0;
  while (!parts.empty()) {
    const auto part = std::move(parts.back());
    parts.pop_back();
    if (part == "..") {
      here.resize(std::min(here.rfind('/'), here.size()));
      continue;
    }
    auto next = here;
    next += '/';
    next += part;
    const auto found = files_.find(next);
    if (found == files_.end() || found->second.kind != MemberKind::Symlink) {
      here = std::move(next);
      continue;
    }
    if (++links > kMostLinks) return std::nullopt;
    if (found->second.target.starts_with('/')) here.clear();
    push_parts(parts, found->second.target);
  }
  return here.empty() ? "/" : here;
}

std::optional<std::string> LayeredFiles::place_of(std::string_view path) const {
  const auto parent = real_path(parent_directory(path));
  if (!parent) return std::nullopt;
  return join_path(*parent, base_name(path));
}

const LayerFile* LayeredFiles::find(std::string_view path) const {
  const auto real = real_path(path);
  const auto found = real ? files_.find(*real) : files_.end();
  return found == files_.end() ? nullptr : &found->second;
}

bool LayeredFiles::has_below(std::string_view real) const {
  const auto first = files_.lower_bound(first_below(real));
  return first != files_.end() && first->first < end_below(real);
}

void LayeredFiles::remove_below(std::string_view real) {
  files_.erase(files_.lower_bound(first_below(real)), files_.lower_bound(end_below(real)));
}

void LayeredFiles::remove(std::string_view real) {
  remove_below(real);
  if (const auto found = files_.find(real); found != files_.end()) files_.erase(found);
}

// A layer removes files of the layers below it only, so removals come first.
void LayeredFiles::apply(Layer&& layer) {
  for (const auto& directory : layer.opaque) {
    if (const auto real = real_path(directory)) remove_below(*real);
  }
  for (const auto& path : layer.removed) {
    if (const auto place = place_of(path)) remove(*place);
  }
  // Names of one directory follow each other, so its place is looked up once.
  std::string_view parent;
  std::optional<std::string> real;
  for (auto& [path, file] : layer.files) {
    if (parent_directory(path) != parent) {
      parent = parent_directory(path);
      real = real_path(parent);
    }
    if (real) put(join_path(*real, base_name(path)), std::move(file));
  }
}

void LayeredFiles::put(std::string place, LayerFile file) {
  if (file.kind != MemberKind::Directory) {
    remove_below(place);
  } else if (const auto old = files_.find(place);
             old != files_.end() && old->second.kind == MemberKind::Directory) {
    return;
  }
  files_.insert_or_assign(std::move(place), std::move(file));
}

bool LayeredFiles::exists(std::string_view path) const {
  const auto real = real_path(path);
  return real && (*real == "/" || files_.find(*real) != files_.end() || has_below(*real));
}

std::optional<std::uint64_t> LayeredFiles::size(std::string_view path) const {
  const auto* file = find(path);
  if (file == nullptr || file->kind != MemberKind::File) return std::nullopt;
  return file->size;
}

std::optional<std::string> LayeredFiles::read(std::string_view path, std::size_t limit) const {
  const auto* file = find(path);
  if (file == nullptr || file->content == nullptr || file->content->size() > limit)
    return std::nullopt;
  return *file->content;
}

std::optional<std::uint16_t> LayeredFiles::elf_machine(std::string_view path) const {
  const auto* file = find(path);
  return file == nullptr ? std::nullopt : file->elf_machine;
}

// From one name to the next, past everything below it: a directory of a few names may have the
// whole image below it.
std::vector<std::string> LayeredFiles::list(std::string_view path) const {
  std::vector<std::string> names;
  const auto real = real_path(path);
  if (!real) return names;
  const auto prefix = first_below(*real);
  auto at = files_.lower_bound(prefix);
  while (at != files_.end() && at->first.starts_with(prefix) && names.size() < kMostNames) {
    const auto rest = std::string_view(at->first).substr(prefix.size());
    const auto name = rest.substr(0, rest.find('/'));
    names.emplace_back(name);
    at = name.size() == rest.size() ? std::next(at)
                                    : files_.lower_bound(end_below(prefix + std::string(name)));
  }
  // A directory and what is below it may have other names between them: "a", "a.b", "a/x".
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace gantry::image
