// SPDX-License-Identifier: Apache-2.0
#include "base/core/base64.hpp"
#include "base/json/patch.hpp"
#include "base/json/writer.hpp"
#include "cluster/webhook/rotation_internal.hpp"

#include <utility>
#include <vector>

namespace gantry::webhook {
namespace {

// The key names that kubectl and cert-manager use; the bundle begins with the authority that signs.
std::vector<std::pair<std::string, const std::string*>> members(const SecretContents& contents) {
  return {{"tls.crt", &contents.serving.certificate},
          {"tls.key", &contents.serving.key},
          {"ca.crt", &contents.bundle},
          {"ca.key", &contents.authority.key},
          {"signing.crt", &contents.authority.certificate},
          {"next.crt", &contents.next.certificate},
          {"next.key", &contents.next.key}};
}

}  // namespace

SecretContents parse_secret(const json::Document& secret) {
  const auto member = [&](std::string_view name) {
    const auto text = secret["data"][name].string();
    return text ? from_base64(*text).value_or("") : std::string();
  };
  SecretContents contents{.authority = {member("signing.crt"), member("ca.key")},
                          .next = {member("next.crt"), member("next.key")},
                          .serving = {member("tls.crt"), member("tls.key")},
                          .bundle = member("ca.crt")};
  if (contents.authority.certificate.empty()) {
    const auto all = certificates_in(contents.bundle);
    if (!all.empty()) contents.authority.certificate = all.front();
  }
  return contents;
}

std::string new_secret(const RotationOptions& options, const SecretContents& contents) {
  json::Writer out;
  out.object([&] {
    out.member("apiVersion", "v1");
    out.member("kind", "Secret");
    out.member("type", "kubernetes.io/tls");
    out.object("metadata", [&] {
      out.member("name", options.secret);
      out.member("namespace", options.name_space);
      out.object("labels", [&] { out.member("app.kubernetes.io/part-of", "gantry"); });
    });
    out.object("data", [&] {
      for (const auto& [name, value] : members(contents))
        if (!value->empty()) out.member(name, to_base64(*value));
    });
  });
  return std::move(out).text();
}

Result<std::string> updated_secret(const json::Document& secret, const SecretContents& contents) {
  json::Patch patch;
  for (const auto& [name, value] : members(contents)) {
    if (value->empty()) {
      patch.remove({"data", name});
    } else {
      patch.set({"data", name}, json::quote(to_base64(*value)));
    }
  }
  return patch.apply(secret);
}

}  // namespace gantry::webhook
