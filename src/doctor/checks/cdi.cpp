// SPDX-License-Identifier: Apache-2.0
// CDI specifications for NVIDIA devices, from any tool.
#include "base/core/text.hpp"
#include "container/cdi/read.hpp"
#include "container/cdi/write_spec.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/document.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>

namespace gantry::doctor {
namespace {

struct Spec {
  std::string path;
  std::string directory;
  Document document;
  std::string error;    // why it cannot be parsed
  std::string refusal;  // why engines refuse it although it can be parsed
  bool ours = false;    // gantry wrote it
};

Spec read_spec(const Facts& f, const std::string& directory, const std::string& name) {
  Spec spec{fmt::format("{}/{}", directory, name), directory, {}, "", "", false};
  const auto text = f.host().read(spec.path, kMaxDocumentBytes);
  auto parsed = text.ok() ? parse_yaml(*text) : Result<Document>(text.error());
  if (parsed.ok()) {
    spec.document = *std::move(parsed);
    const auto loaded = cdi::load_spec(*text, spec.path);
    if (!loaded.ok()) spec.refusal = loaded.error().text();
  } else {
    spec.error = parsed.error().text();
  }
  spec.ours = text.ok() && cdi::is_written_by_gantry(*text);
  return spec;
}

// If a file cannot be parsed, its name decides whether it is ours.
bool is_nvidias(const Spec& spec, std::string_view name) {
  return spec.error.empty() ? spec.document.at("kind").text().starts_with("nvidia.com/")
                            : contains(name, "nvidia");
}

std::vector<Spec> nvidia_specs(const Facts& f) {
  std::vector<Spec> specs;
  for (const std::string directory : {"/etc/cdi", "/var/run/cdi"}) {
    const auto names = f.host().list(directory);
    if (!names.ok()) continue;
    for (const auto& name : *names) {
      if (!name.ends_with(".yaml") && !name.ends_with(".json")) continue;
      auto spec = read_spec(f, directory, name);
      if (is_nvidias(spec, name)) specs.push_back(std::move(spec));
    }
  }
  return specs;
}

// The command that writes this file again. The file of `cdi refresh` uses that command, so that it
// keeps its usual flags.
std::vector<std::string> rewrite_command(const Spec& spec) {
  std::vector<std::string> words{"gantry", "cdi"};
  if (spec.path == "/var/run/cdi/nvidia.yaml") {
    words.emplace_back("refresh");
  } else {
    words.insert(words.end(), {"generate", "--output=" + spec.path});
  }
  if (!spec.ours) words.emplace_back("--take-over");
  return words;
}

std::string advice(const std::vector<const Spec*>& specs) {
  std::vector<std::string> commands;
  commands.reserve(specs.size());
  for (const auto* spec : specs)
    commands.push_back(fmt::format("sudo {}", fmt::join(rewrite_command(*spec), " ")));
  return fmt::format("{}", fmt::join(commands, " && "));
}

Steps steps_for(const Facts& f, const std::vector<const Spec*>& specs) {
  Steps steps;
  if (!f.installed("gantry")) return steps;
  for (const auto* spec : specs) steps.emplace_back(RunProgram{rewrite_command(*spec)});
  return steps;
}

constexpr std::string_view kNoSpec = "there is no CDI specification for NVIDIA devices";

// Why a specification cannot be used at all; "" if it can.
std::string damage(const Spec& spec) {
  return spec.error.empty() ? spec.refusal : spec.error;
}

Finding judge_readable(const Facts& f) {
  const auto specs = nvidia_specs(f);
  if (specs.empty()) return skip(std::string(kNoSpec));
  Tally tally;
  std::vector<const Spec*> bad;
  for (const auto& spec : specs) {
    const auto why = damage(spec);
    if (why.empty()) {
      tally.good({spec.path, spec.document.at("kind").text()});
    } else {
      bad.push_back(&spec);
      tally.found(spec.path, {spec.path, why});
    }
  }
  if (!tally.any_bad()) {
    return ok(
        fmt::format("{} readable CDI specification{}", specs.size(), specs.size() == 1 ? "" : "s"),
        tally.well);
  }
  return fail(fmt::format("cannot be used: {}", tally.who()), tally.bad).advise(advice(bad));
}

Steps fix_readable(const Facts& f) {
  const auto specs = nvidia_specs(f);
  std::vector<const Spec*> bad;
  for (const auto& spec : specs) {
    if (!damage(spec).empty()) bad.push_back(&spec);
  }
  return steps_for(f, bad);
}

template <class Visit>
void each_edit(const Document& document, Visit visit) {
  visit(document.at("containerEdits"));
  for (const auto& device : document.at("devices").items()) visit(device.at("containerEdits"));
}

// An engine mounts a simulated tree from its real path, so such paths are valid here, too.
std::string on_machine(const Facts& f, const std::string& path) {
  const auto& root = f.host().root();
  const bool below = root != "/" && path.starts_with(root) && path.size() > root.size() &&
                     path[root.size()] == '/';
  return below ? path.substr(root.size()) : path;
}

// Why one edit no longer matches the machine; "" if it does.
std::string stale_reason(const Facts& f, const Document& edits) {
  for (const auto& mount : edits.at("mounts").items()) {
    const auto path = on_machine(f, mount.at("hostPath").text());
    if (path.starts_with('/') && !f.host().exists(path)) return path + " does not exist";
  }
  for (const auto& node : edits.at("deviceNodes").items()) {
    const auto& host_path = node.at("hostPath").text();
    const auto path = on_machine(f, host_path.empty() ? node.at("path").text() : host_path);
    const auto is = f.host().device(path);
    if (!is.ok()) return path + " does not exist";
    const auto major = parse_u64(node.at("major").text());
    const auto minor = parse_u64(node.at("minor").text());
    if ((major && *major != is->major) || (minor && *minor != is->minor)) {
      return fmt::format("{} is {}:{} now, not {}:{}", path, is->major, is->minor,
                         node.at("major").text(), node.at("minor").text());
    }
  }
  return "";
}

// Why a specification no longer matches the machine; "" if it does.
std::string stale_reason_of(const Facts& f, const Spec& spec) {
  std::string reason;
  if (!spec.error.empty()) return reason;
  each_edit(spec.document, [&](const Document& edits) {
    if (reason.empty()) reason = stale_reason(f, edits);
  });
  return reason;
}

Finding judge_stale_specs(const Facts& f) {
  const auto specs = nvidia_specs(f);
  if (specs.empty()) return skip(std::string(kNoSpec));
  Tally tally;
  std::vector<const Spec*> bad;
  for (const auto& spec : specs) {
    const auto reason = stale_reason_of(f, spec);
    if (reason.empty()) {
      tally.good({spec.path, "fits"});
    } else {
      bad.push_back(&spec);
      tally.found(fmt::format("{} ({})", spec.path, reason), {spec.path, reason}, spec.path);
    }
  }
  if (!tally.any_bad()) return ok("CDI specifications match the machine", tally.well);
  return fail(fmt::format("out of date: {}", tally.who()), tally.bad).advise(advice(bad));
}

Steps fix_stale_specs(const Facts& f) {
  const auto specs = nvidia_specs(f);
  std::vector<const Spec*> bad;
  for (const auto& spec : specs) {
    if (!stale_reason_of(f, spec).empty()) bad.push_back(&spec);
  }
  return steps_for(f, bad);
}

Finding judge_duplicate(const Facts& f) {
  const auto specs = nvidia_specs(f);
  if (specs.empty()) return skip(std::string(kNoSpec));
  std::map<std::string, const Spec*> seen;  // "nvidia.com/gpu=0" -> first file with it
  std::optional<Finding> hidden;  // reported only if no device is defined twice, which is worse
  for (const auto& spec : specs) {
    for (const auto& device : spec.document.at("devices").items()) {
      const auto name = spec.document.at("kind").text() + "=" + device.at("name").text();
      const auto [at, added] = seen.emplace(name, &spec);
      if (added || at->second == &spec) continue;
      const std::vector<Evidence> read{{at->second->path, name}, {spec.path, name}};
      // A later directory overrides an earlier one; within one directory both are dropped.
      if (at->second->directory == spec.directory) {
        return fail(fmt::format("{} is defined twice: engines refuse it", name), read)
            .advise(fmt::format("sudo rm {}", spec.path));
      }
      if (!hidden) {
        hidden = warn(fmt::format("{} hides {}", spec.path, at->second->path), read)
                     .advise(fmt::format("sudo rm {}", at->second->path));
      }
      at->second = &spec;
    }
  }
  if (hidden) return *hidden;
  return ok("every CDI device is defined once",
            {{specs.front().path, fmt::format("{} device(s)", seen.size())}});
}

constexpr Check kCdiChecks[] = {
    {.id = "cdi.readable",
     .reference = "C8",
     .area = Area::Runtime,
     .fix_class = FixClass::Automatic,
     .title = "CDI specifications are readable",
     .reads = "/etc/cdi, /var/run/cdi",
     .cause = "A file was cut short or edited: engines say \"unresolvable CDI devices\".",
     .remedy = "sudo gantry cdi refresh",
     .judge = judge_readable,
     .fix = fix_readable,
     .by_hand = "gantry is not installed there, so it cannot write the file again"},
    {.id = "cdi.stale",
     .reference = "C8",
     .area = Area::Runtime,
     .fix_class = FixClass::Automatic,
     .title = "CDI specifications match the machine",
     .reads = "/etc/cdi, /var/run/cdi, every path and device number in them",
     .cause =
         "The specification was written for another driver version or before a reboot: containers "
         "fail with \"failed to stat ...so.VERSION\", or open the wrong device.",
     .remedy = "sudo gantry cdi refresh",
     .judge = judge_stale_specs,
     .fix = fix_stale_specs,
     .by_hand = "gantry is not installed there, so it cannot write the file again"},
    {.id = "cdi.duplicate",
     .reference = "C8",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "every CDI device is defined once",
     .reads = "/etc/cdi, /var/run/cdi",
     .cause = "Two files define the same device (one by an operator, one by hand). In one "
              "directory, engines drop both; in two directories, the later one hides the earlier.",
     .remedy = "sudo rm ONE_OF_THEM",
     .judge = judge_duplicate,
     .by_hand = "the owner of the files must decide which of the two to keep"},
};

}  // namespace

std::span<const Check> cdi_checks() {
  return kCdiChecks;
}

}  // namespace gantry::doctor
