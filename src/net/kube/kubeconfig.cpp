// SPDX-License-Identifier: Apache-2.0
#include "base/core/base64.hpp"
#include "base/core/text.hpp"
#include "base/yaml/value.hpp"
#include "net/kube/kubeconfig_internal.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace gantry::kube {
namespace {

using yaml::Value;

std::string scalar(const Value* map, std::string_view key) {
  const auto* value = map == nullptr ? nullptr : map->find(key);
  return value == nullptr ? "" : value->text;
}

// clusters, users and contexts are lists of {name, KIND: {...}}.
Result<const Value*> named(const Value& root, std::string_view list, std::string_view kind,
                           const std::string& name) {
  const auto* items = root.find(list);
  if (items != nullptr) {
    for (const auto& item : items->items) {
      if (scalar(&item, "name") == name) {
        const auto* value = item.find(kind);
        if (value != nullptr) return value;
      }
    }
  }
  if (name.empty()) return Error(Errc::Invalid, fmt::format("it does not name a {}", kind));
  return Error(Errc::Invalid, fmt::format("no {} named \"{}\"", kind, name));
}

struct Reader {
  std::string directory;
  const ReadFile& read;

  // KEY-data holds it in base64, KEY names a file.
  Result<std::string> read_credential(const Value* map, std::string_view key) const {
    if (const auto data = scalar(map, fmt::format("{}-data", key)); !data.empty())
      return from_base64(data).in(fmt::format("{}-data", key));
    const auto file = scalar(map, key);
    if (file.empty()) return std::string();
    return read(file.starts_with('/') ? file : directory + "/" + file).in(key);
  }
};

Status read_cluster(const Value& cluster, const Reader& reader, ClientConfig& access) {
  GANTRY_TRY(access.server, http::parse_url(scalar(&cluster, "server")));
  auto& tls = access.server.endpoint.tls;
  GANTRY_TRY(tls.authorities, reader.read_credential(&cluster, "certificate-authority"));
  tls.server_name = scalar(&cluster, "tls-server-name");
  tls.verify = scalar(&cluster, "insecure-skip-tls-verify") != "true";
  return {};
}

Status read_user(const Value& user, const Reader& reader, ClientConfig& access) {
  if (user.find("exec") != nullptr || user.find("auth-provider") != nullptr)
    return Error(Errc::Unsupported,
                 "it gets its credentials from a program, and Gantry does not run such programs; "
                 "create a token with "
                 "`kubectl create token NAME` and put it into a separate kubeconfig");
  auto& tls = access.server.endpoint.tls;
  GANTRY_TRY(tls.certificate, reader.read_credential(&user, "client-certificate"));
  GANTRY_TRY(tls.key, reader.read_credential(&user, "client-key"));
  access.token = scalar(&user, "token");
  const auto file = scalar(&user, "tokenFile");
  if (file.empty()) return {};
  access.token_file = file.starts_with('/') ? file : reader.directory + "/" + file;
  GANTRY_TRY(access.token, reader.read(access.token_file));
  access.token = std::string(trim(access.token));
  return {};
}

}  // namespace

Result<ClientConfig> parse_kubeconfig(std::string_view text, std::string_view path,
                                      std::string_view context, const ReadFile& read) {
  GANTRY_TRY(const auto root, yaml::parse(text, path, {.bytes = std::size_t{4} << 20}));
  const auto name = context.empty() ? scalar(&root, "current-context") : std::string(context);
  ClientConfig access;
  const Reader reader{std::string(path.substr(0, path.rfind('/'))), read};
  const auto fill = [&]() -> Status {
    GANTRY_TRY(const auto* chosen, named(root, "contexts", "context", name));
    GANTRY_TRY(const auto* cluster, named(root, "clusters", "cluster", scalar(chosen, "cluster")));
    GANTRY_TRY(const auto* user, named(root, "users", "user", scalar(chosen, "user")));
    if (const auto space = scalar(chosen, "namespace"); !space.empty()) access.name_space = space;
    access.user = scalar(chosen, "user");
    GANTRY_CHECK(read_cluster(*cluster, reader, access));
    return read_user(*user, reader, access);
  };
  GANTRY_CHECK(fill().in(path));
  access.from = path;
  return access;
}

Result<ClientConfig> load_kubeconfig(const std::string& path, std::string_view context) {
  // Makes the path absolute, relative to the working directory; read_file starts at the root.
  std::error_code failed;
  const auto place = std::filesystem::absolute(path, failed).lexically_normal().string();
  auto text = read_file(place);
  if (!text.ok()) {
    return Error(
        text.error().code(),
        fmt::format("the kubeconfig: {}; give another file with --kubeconfig FILE or in KUBECONFIG",
                    text.error().text()));
  }
  return parse_kubeconfig(*text, place, context, read_file);
}

}  // namespace gantry::kube
