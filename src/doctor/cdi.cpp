// SPDX-License-Identifier: Apache-2.0
// CDI specifications for NVIDIA devices, whoever wrote them.
#include "base/text.hpp"
#include "doctor/areas_internal.hpp"
#include "doctor/document.hpp"

#include <fmt/format.h>

#include <map>

namespace gantry::doctor {
namespace {

struct Spec {
  std::string path;
  std::string directory;
  Document document;
  std::string error;
};

// A file that cannot be parsed may be ours or not: its name decides.
std::vector<Spec> nvidia_specs(const Facts& f) {
  std::vector<Spec> specs;
  for (const std::string directory : {"/etc/cdi", "/var/run/cdi"}) {
    const auto names = f.host().list(directory);
    if (!names.ok()) continue;
    for (const auto& name : *names) {
      if (!name.ends_with(".yaml") && !name.ends_with(".json")) continue;
      Spec spec{directory + "/" + name, directory, {}, ""};
      const auto text = f.host().read(spec.path, kDocumentBytes);
      auto parsed = text.ok() ? parse_yaml(*text) : Result<Document>(text.error());
      if (parsed.ok()) {
        spec.document = *std::move(parsed);
      } else {
        spec.error = parsed.error().text();
      }
      const bool ours = spec.error.empty()
                            ? spec.document.at("kind").text().starts_with("nvidia.com/")
                            : contains(name, "nvidia");
      if (ours) specs.push_back(std::move(spec));
    }
  }
  return specs;
}

constexpr std::string_view kNoSpec = "there is no CDI specification for NVIDIA devices";

Finding judge_readable(const Facts& f) {
  const auto specs = nvidia_specs(f);
  if (specs.empty()) return skip(std::string(kNoSpec));
  std::vector<Evidence> read;
  for (const auto& spec : specs) {
    if (!spec.error.empty()) {
      return fail(fmt::format("{} cannot be read", spec.path), {{spec.path, spec.error}});
    }
    for (std::string_view key : {"cdiVersion", "devices"}) {
      if (!spec.document.at(key).empty()) continue;
      return fail(fmt::format("{} has no {}", spec.path, key), {{spec.path, "incomplete"}});
    }
    read.push_back({spec.path, spec.document.at("kind").text()});
  }
  return ok(fmt::format("{} CDI specification(s) are readable", specs.size()), read);
}

template <class Visit>
void each_edit(const Document& document, Visit visit) {
  visit(document.at("containerEdits"));
  for (const auto& device : document.at("devices").items()) visit(device.at("containerEdits"));
}

// Why one edit no longer fits the machine; "" when it does.
std::string stale_reason(const Facts& f, const Document& edits) {
  for (const auto& mount : edits.at("mounts").items()) {
    const auto& path = mount.at("hostPath").text();
    if (path.starts_with('/') && !f.host().exists(path)) return path + " is not there";
  }
  for (const auto& node : edits.at("deviceNodes").items()) {
    const auto& host_path = node.at("hostPath").text();
    const auto& path = host_path.empty() ? node.at("path").text() : host_path;
    const auto is = f.host().device(path);
    if (!is.ok()) return path + " is not there";
    const auto major = parse_u64(node.at("major").text());
    const auto minor = parse_u64(node.at("minor").text());
    if ((major && *major != is->major) || (minor && *minor != is->minor)) {
      return fmt::format("{} is {}:{} now, not {}:{}", path, is->major, is->minor,
                         node.at("major").text(), node.at("minor").text());
    }
  }
  return "";
}

const Spec* first_stale(const Facts& f, const std::vector<Spec>& specs, std::string& reason) {
  for (const auto& spec : specs) {
    if (!spec.error.empty()) continue;
    each_edit(spec.document, [&](const Document& edits) {
      if (reason.empty()) reason = stale_reason(f, edits);
    });
    if (!reason.empty()) return &spec;
  }
  return nullptr;
}

Finding judge_stale(const Facts& f) {
  const auto specs = nvidia_specs(f);
  if (specs.empty()) return skip(std::string(kNoSpec));
  std::string reason;
  const auto* spec = first_stale(f, specs, reason);
  if (spec == nullptr)
    return ok("CDI specifications fit the machine", {{specs.front().path, "fits"}});
  return fail(fmt::format("{} is out of date: {}", spec->path, reason), {{spec->path, reason}})
      .advise(fmt::format("sudo nvidia-ctk cdi generate --output={}", spec->path));
}

std::vector<Action> fix_stale(const Facts& f) {
  if (!f.installed("nvidia-ctk")) return {};
  const auto specs = nvidia_specs(f);
  std::string reason;
  const auto* spec = first_stale(f, specs, reason);
  if (spec == nullptr) return {};
  return {RunProgram{{"nvidia-ctk", "cdi", "generate", "--output=" + spec->path}}};
}

Finding judge_duplicate(const Facts& f) {
  const auto specs = nvidia_specs(f);
  if (specs.empty()) return skip(std::string(kNoSpec));
  std::map<std::string, const Spec*> seen;  // "nvidia.com/gpu=0" -> first file with it
  for (const auto& spec : specs) {
    for (const auto& device : spec.document.at("devices").items()) {
      const auto name = spec.document.at("kind").text() + "=" + device.at("name").text();
      const auto [at, added] = seen.emplace(name, &spec);
      if (added || at->second == &spec) continue;
      const std::vector<Evidence> read{{at->second->path, name}, {spec.path, name}};
      // Of two directories the later wins; within one both are dropped.
      if (at->second->directory == spec.directory) {
        return fail(fmt::format("{} is defined twice: engines refuse it", name), read)
            .advise(fmt::format("sudo rm {}", spec.path));
      }
      return warn(fmt::format("{} hides {}", spec.path, at->second->path), read)
          .advise(fmt::format("sudo rm {}", at->second->path));
    }
  }
  return ok("every CDI device is defined once",
            {{specs.front().path, fmt::format("{} device(s)", seen.size())}});
}

constexpr Check kChecks[] = {
    {.id = "cdi.readable",
     .reference = "C8",
     .area = Area::Runtime,
     .title = "CDI specifications are readable",
     .reads = "/etc/cdi, /var/run/cdi",
     .cause = "A file was cut short or edited: engines say \"unresolvable CDI devices\".",
     .remedy = "sudo nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",
     .judge = judge_readable},
    {.id = "cdi.stale",
     .reference = "C8",
     .area = Area::Runtime,
     .fix_class = FixClass::Automatic,
     .title = "CDI specifications fit the machine",
     .reads = "/etc/cdi, /var/run/cdi, every path and device number in them",
     .cause =
         "The specification was made for another driver version or before a reboot: containers "
         "fail with \"failed to stat ...so.VERSION\", or open the wrong device.",
     .remedy = "sudo nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",
     .judge = judge_stale,
     .fix = fix_stale},
    {.id = "cdi.duplicate",
     .reference = "C8",
     .area = Area::Runtime,
     .title = "every CDI device is defined once",
     .reads = "/etc/cdi, /var/run/cdi",
     .cause = "Two files define the same device (an operator's and a hand-made one). In one "
              "directory they cancel each other, in two the later hides the earlier.",
     .remedy = "sudo rm ONE_OF_THEM",
     .judge = judge_duplicate},
};

}  // namespace

std::span<const Check> cdi_checks() {
  return kChecks;
}

}  // namespace gantry::doctor
