// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "container/image/parts_internal.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::image {
namespace {

constexpr int kMostPartLinks = 8;
constexpr std::size_t kTarHead = 512;

std::string plain_name(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  return std::string(name);
}

// "a/layer.tar" with the link "../b/layer.tar" -> "b/layer.tar"
std::string beside(std::string_view name, std::string_view target) {
  auto directory = name.substr(0, name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/'));
  while (target.starts_with("../")) {
    target.remove_prefix(3);
    const auto slash = directory.rfind('/');
    directory = directory.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
  return directory.empty() ? std::string(target) : fmt::format("{}/{}", directory, target);
}

Part error_or_layer(Result<Layer> layer) {
  if (!layer.ok()) return std::move(layer).error();
  return *std::move(layer);
}

// By its first bytes.
Result<Part> read_known(ByteStream& stream, ReadBudget& budget) {
  GANTRY_TRY(const auto start, stream.peek(kTarHead));
  if (start.empty()) return Part(Layer());
  if (start.front() == '{' || start.front() == '[') {
    GANTRY_TRY(auto text, stream.read_all(budget.limits().document_bytes));
    return Part(std::move(text));
  }
  if (compression_of(start) != Compression::None || is_tar(start))
    return error_or_layer(read_layer(stream, budget));
  return Part(Error(Errc::Corrupt, "it is neither JSON nor an archive of files"));
}

}  // namespace

Result<Part> read_part(ByteStream& stream, ReadBudget& budget) {
  GANTRY_CHECK(budget.take_part());
  auto part = read_known(stream, budget);
  if (!part.ok()) {
    if (part.error().code() == Errc::TooLarge) return std::move(part).error();
    return Part(std::move(part).error());
  }
  if (const auto* error = std::get_if<Error>(&*part);
      error != nullptr && error->code() == Errc::TooLarge)
    return *error;
  return part;
}

Result<Parts> read_parts(ByteStream& archive, ReadBudget& budget) {
  Parts parts;
  TarReader tar(archive, budget);
  while (true) {
    GANTRY_TRY(auto member, tar.next());
    if (!member) return parts;
    GANTRY_CHECK(budget.take_entry(member->name, member->target));
    auto name = plain_name(member->name);
    if (member->kind == MemberKind::Symlink) {
      parts.links.insert_or_assign(name, beside(name, member->target));
    } else if (member->kind == MemberKind::HardLink) {
      parts.links.insert_or_assign(std::move(name), plain_name(member->target));
    } else if (member->kind == MemberKind::File) {
      auto content = tar.content();
      GANTRY_TRY(auto part, read_part(content, budget).in(name));
      parts.files.insert_or_assign(std::move(name), std::move(part));
    }
  }
}

Part* Parts::find(std::string_view name) {
  std::string here(name);
  for (int followed = 0; followed <= kMostPartLinks; ++followed) {
    if (const auto found = files.find(here); found != files.end()) return &found->second;
    const auto link = links.find(here);
    if (link == links.end()) return nullptr;
    here = link->second;
  }
  return nullptr;
}

const std::string* Parts::document(std::string_view name) {
  auto* part = find(name);
  return part == nullptr ? nullptr : std::get_if<std::string>(part);
}

}  // namespace gantry::image
