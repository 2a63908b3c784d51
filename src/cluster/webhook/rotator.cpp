// SPDX-License-Identifier: Apache-2.0
#include "cluster/webhook/rotator.hpp"

#include "base/core/base64.hpp"
#include "base/core/text.hpp"
#include "base/core/unix_time.hpp"
#include "base/json/writer.hpp"
#include "base/sys/background_task.hpp"
#include "base/sys/stop_signal.hpp"
#include "cluster/webhook/rotation_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::webhook {
namespace {

using namespace std::chrono_literals;

constexpr int kAttempts = 8;
constexpr std::chrono::milliseconds kSooner = 5s;

std::vector<std::string> configurations(const RotationOptions& options) {
  const std::string group = "/apis/admissionregistration.k8s.io/v1/";
  std::vector<std::string> paths;
  for (const auto& name : options.mutating)
    paths.push_back(group + "mutatingwebhookconfigurations/" + kube::percent_encode(name));
  for (const auto& name : options.validating)
    paths.push_back(group + "validatingwebhookconfigurations/" + kube::percent_encode(name));
  return paths;
}

struct Configuration {
  std::string path;
  json::Document object;
};

// Skips configurations that do not exist yet.
Result<std::vector<Configuration>> read_configurations(kube::Api& api,
                                                       const RotationOptions& options) {
  std::vector<Configuration> all;
  for (auto& path : configurations(options)) {
    auto object = api.get(path);
    if (object.ok()) {
      all.push_back({std::move(path), *std::move(object)});
    } else if (object.error().code() != Errc::NotFound) {
      return std::move(object).error();
    }
  }
  return all;
}

bool trusts(const Configuration& configuration, const std::string& certificate) {
  for (const auto webhook : configuration.object["webhooks"]) {
    const auto bundle = webhook["clientConfig"]["caBundle"].string().value_or("");
    if (!contains(from_base64(bundle).value_or(""), certificate)) return false;
  }
  return true;
}

Status tell(kube::Api& api, const Configuration& configuration, const std::string& bundle) {
  const auto encoded = to_base64(bundle);
  bool changes = false;
  json::Writer out;
  out.object([&] {
    out.array("webhooks", [&] {
      for (const auto webhook : configuration.object["webhooks"]) {
        const auto client = webhook["clientConfig"];
        if (!client["service"] || client["caBundle"].string() == encoded) continue;
        changes = true;
        out.object([&] {
          out.raw_member("name", webhook["name"].raw());
          out.object("clientConfig", [&] { out.member("caBundle", encoded); });
        });
      }
    });
  });
  if (!changes) return {};
  GANTRY_CHECK(api.patch(configuration.path, kube::Patch::Strategic, out.text()));
  return {};
}

NextTrusted is_trusted(const Result<std::vector<Configuration>>& all,
                       const SecretContents& contents) {
  if (!all.ok() || contents.next.certificate.empty()) return NextTrusted::No;
  for (const auto& configuration : *all)
    if (!trusts(configuration, contents.next.certificate)) return NextTrusted::No;
  return NextTrusted::Yes;
}

Status configure(kube::Api& api, const Result<std::vector<Configuration>>& all,
                 const std::string& bundle) {
  if (!all.ok()) return all.error();
  Status bad;
  for (const auto& configuration : *all) {
    auto told = tell(api, configuration, bundle);
    if (!told.ok() && bad.ok()) bad = std::move(told);
  }
  return bad;
}

// Writes the Secret if it must change. Exists: another replica was faster.
Result<SecretContents> keep(kube::Api& api, const RotationOptions& options, std::int64_t now,
                            const Result<std::vector<Configuration>>& configured) {
  const auto all =
      fmt::format("/api/v1/namespaces/{}/secrets", kube::percent_encode(options.name_space));
  const auto one = fmt::format("{}/{}", all, kube::percent_encode(options.secret));
  auto secret = api.get(one);
  if (!secret.ok() && secret.error().code() != Errc::NotFound) return std::move(secret).error();
  if (!secret.ok()) {
    GANTRY_TRY(auto contents, next_contents(std::nullopt, options, now, NextTrusted::No));
    GANTRY_CHECK(api.create(all, new_secret(options, contents)));
    return contents;
  }
  const auto before = parse_secret(*secret);
  GANTRY_TRY(auto contents, next_contents(before, options, now, is_trusted(configured, before)));
  if (contents == before) return contents;
  GANTRY_TRY(const auto text, updated_secret(*secret, contents));
  GANTRY_TRY(const auto written, api.replace(one, text));
  return contents;
}

}  // namespace

std::vector<std::string> service_names(const std::string& service, const std::string& name_space,
                                       const std::string& domain) {
  return {fmt::format("{}.{}.svc", service, name_space),
          fmt::format("{}.{}.svc.{}", service, name_space, domain),
          fmt::format("{}.{}", service, name_space), service};
}

Result<ServingBundle> rotate_once(kube::Api& api, const RotationOptions& options,
                                  std::int64_t now_unix_s) {
  const auto configured = read_configurations(api, options);
  for (int attempt = 1;; ++attempt) {
    auto contents = keep(api, options, now_unix_s, configured);
    if (contents.ok())
      return ServingBundle{.serving = contents->serving,
                           .bundle = contents->bundle,
                           .configured = configure(api, configured, contents->bundle)};
    const bool faster = contents.error().code() == Errc::Exists;
    if (!faster || attempt == kAttempts)
      return std::move(contents).error().in("reading the webhook's certificate");
  }
}

class CertificateRotator::Work {
 public:
  Work(kube::ClientConfig access, RotationOptions options, OnChange changed, OnError trouble,
       std::chrono::milliseconds period)
      : options_(std::move(options)),
        changed_(std::move(changed)),
        trouble_(std::move(trouble)),
        api_(std::move(access), 10s, stop_.fd()),
        task_({.name = "certificates",
               .period = period,
               .retry = {.first = std::min(period, kSooner), .max = std::min(period, kSooner)},
               .cancel = &stop_,
               .on_error =
                   [this](const Error& error, auto) {
                     if (trouble_) trouble_(error);
                   }},
              [this](const std::stop_token&) { return look(); }) {
    task_.start();
  }

 private:
  Status look() {
    GANTRY_TRY(auto served, rotate_once(api_, options_, unix_now()));
    if (stop_.raised()) return {};
    if (served.serving != serving_ || served.bundle != bundle_) {
      serving_ = served.serving;
      bundle_ = served.bundle;
      changed_(served);
    }
    return std::move(served.configured);
  }

  const RotationOptions options_;
  const OnChange changed_;
  const OnError trouble_;
  sys::StopSignal stop_;
  kube::Api api_;
  KeyPair serving_;
  std::string bundle_;
  sys::BackgroundTask task_;
};

CertificateRotator::CertificateRotator(kube::ClientConfig access, RotationOptions options,
                                       OnChange changed, OnError trouble,
                                       std::chrono::milliseconds period)
    : work_(std::make_unique<Work>(std::move(access), std::move(options), std::move(changed),
                                   std::move(trouble), period)) {}
CertificateRotator::~CertificateRotator() = default;

}  // namespace gantry::webhook
