// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/verify.hpp"

#include "base/core/text.hpp"
#include "gpu/loader/ld_cache.hpp"
#include "gpu/procfs/gpus.hpp"
#include "gpu/procfs/version.hpp"
#include "install/driver_setup/device_nodes.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/driver_setup/place_files.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver_setup {
namespace {

constexpr std::chrono::seconds kSmiDeadline{120};  // eight GPUs without persistence take a minute
constexpr std::size_t kCacheLimit = std::size_t{16} << 20;
constexpr std::size_t kSpecLimit = std::size_t{4} << 20;

class Verifier {
 public:
  Verifier(const sys::Host& host, const InstallRecord& record, InstallEffects* effects)
      : host_(host), record_(record), effects_(effects), layout_(record.directory) {}

  VerifyReport run(VerifyDepth depth) {
    if (record_.has_files()) check_files();
    check_loaded();
    check_nodes();
    if (depth == VerifyDepth::Loaded) return std::move(report_);
    if (record_.has_files()) check_loader_cache();
    if (effects_ != nullptr && loaded_) {
      check_smi();
      check_licence();
    }
    if (depth == VerifyDepth::Machine) check_specification();
    return std::move(report_);
  }

 private:
  void add(std::string code, VerifyState state, std::string sentence, std::string remedy = "") {
    report_.items.push_back({std::move(code), state, std::move(sentence), std::move(remedy)});
  }
  void good(std::string code, std::string sentence) {
    add(std::move(code), VerifyState::Good, std::move(sentence));
  }

  void check_files() {
    const auto directory = layout_.version(record_.name);
    const auto damage = find_damage(host_, directory, layout_.file_list(record_.name));
    const auto wanted = fmt::format(".versions/{}", record_.name);
    if (!damage.ok())
      return add("files", VerifyState::Bad, damage.error().cause(), install_again());
    if (!damage->empty())
      return add("files", VerifyState::Bad,
                 fmt::format("{} is missing or damaged", host_.outside(*damage)), install_again());
    if (host_.link(layout_.current()).value_or("") != wanted)
      return add("files", VerifyState::Bad,
                 fmt::format("{} does not lead to the driver {}", host_.outside(layout_.current()),
                             describe(record_)),
                 "sudo gantry driver load");
    good("files",
         fmt::format("the files of {} are complete in {}", describe(record_), record_.directory));
  }

  void check_loaded() {
    const auto found = procfs::read_version(host_);
    if (!found.ok() || found->version.empty())
      return add("modules", VerifyState::Bad, "no NVIDIA driver is loaded",
                 "sudo gantry driver load");
    loaded_ = true;
    if (found->version != record_.version)
      return add("modules", VerifyState::Bad,
                 fmt::format("the kernel has the driver {}, installed is {}", found->version,
                             describe(record_)),
                 install_again() + ", or: sudo reboot");
    if (record_.flavour && is_other_flavour(found->flavour))
      return add("modules", VerifyState::Bad,
                 fmt::format("the kernel has the other modules of {}: the {} ones are installed",
                             record_.version, preflight::to_string(*record_.flavour)),
                 "sudo reboot");
    if (!host_.exists("/sys/module/nvidia_uvm"))
      return add("modules", VerifyState::Bad, "the module nvidia_uvm is not loaded, so CUDA fails",
                 "sudo gantry driver load");
    good("modules", fmt::format("the driver {} is loaded", describe(record_)));
  }

  bool is_other_flavour(model::ModuleFlavour flavour) const {
    if (flavour == model::ModuleFlavour::Unknown) return false;
    const bool open = flavour == model::ModuleFlavour::Open;
    return open != (*record_.flavour == preflight::Flavour::Open);
  }

  void check_nodes() {
    if (!loaded_) return;
    const auto missing = nodes_to_make(host_);
    if (missing.empty()) return good("nodes", "every device node exists");
    add("nodes", VerifyState::Bad,
        fmt::format("the device node {} is missing or has other numbers", missing.front().path),
        "sudo gantry driver load");
  }

  void check_loader_cache() {
    const auto bytes = host_.read("/etc/ld.so.cache", kCacheLimit);
    const auto cache =
        bytes.ok() ? loader::parse_ld_cache(*bytes) : Result<loader::LdCache>(bytes.error());
    if (!cache.ok())
      return add("loader-cache", VerifyState::Note,
                 "this machine has no loader cache: programs outside of containers need "
                 "LD_LIBRARY_PATH");
    const bool found = std::any_of(
        cache->entries.begin(), cache->entries.end(), [&](const loader::LdCacheEntry& entry) {
          return entry.name == "libcuda.so.1" && entry.path.starts_with(layout_.lib64() + "/");
        });
    if (found) return good("loader-cache", "the loader finds libcuda.so.1");
    add("loader-cache", VerifyState::Note,
        fmt::format("the loader does not find libcuda.so.1 in {}: programs outside of containers "
                    "need LD_LIBRARY_PATH",
                    layout_.lib64()));
  }

  ProgramCall smi(std::initializer_list<const char*> options) const {
    ProgramCall call{.deadline = kSmiDeadline};
    if (record_.has_files()) {
      call.words = {{.text = "env"},
                    {.text = "LD_LIBRARY_PATH=", .path = layout_.lib64()},
                    {.path = layout_.bin() + "/nvidia-smi"}};
    } else if (record_.source == preflight::Source::NvidiaContainer) {
      call.words = {{.text = "chroot"}, {.path = "/run/nvidia/driver"}, {.text = "nvidia-smi"}};
    } else {
      call.words = {{.text = "nvidia-smi"}};
    }
    for (const auto* option : options) call.words.push_back({.text = option});
    return call;
  }

  void check_smi() {
    const auto output = effects_->run(smi({}));
    if (!output.ok())
      return add("nvidia-smi", VerifyState::Bad,
                 fmt::format("nvidia-smi fails: {}", output.error().cause()),
                 "see what the kernel says: sudo dmesg | grep NVRM");
    report_.smi_output = *output;
    if (contains(*output, "No devices were found"))
      return add("nvidia-smi", VerifyState::Bad, "nvidia-smi finds no GPU",
                 "see what the kernel says: sudo dmesg | grep NVRM");
    if (!contains(*output, record_.version))
      return add("nvidia-smi", VerifyState::Bad,
                 fmt::format("nvidia-smi is not of the driver {}", record_.version),
                 install_again());
    good("nvidia-smi", "nvidia-smi answers");
  }

  // Gantry installed it. Of another driver only nvidia-smi tells whether it needs a licence.
  bool is_ours() const { return record_.has_files() || !record_.removal.empty(); }

  // Guest drivers work without a licence for a while, then slow down.
  void check_licence() {
    const bool guest = record_.source == preflight::Source::Grid;
    if (!guest && is_ours()) return;
    const auto output = effects_->run(smi({"-q"}));
    const auto state = output.ok() ? parse_licence_status(*output) : "";
    if (!guest && (state.empty() || state == "N/A")) return;
    if (state.starts_with("Licensed")) return good("licence", fmt::format("licence: {}", state));
    add("licence", VerifyState::Note,
        fmt::format("the driver has no licence{}", state.empty() ? "" : fmt::format(": {}", state)),
        guest ? "give --client-token FILE, and check that nvidia-gridd reaches the licence server"
              : "place a token in /etc/nvidia/ClientConfigToken, then: sudo systemctl restart "
                "nvidia-gridd.service");
  }

  void check_specification() {
    const auto text = host_.read(kSpecificationPath, kSpecLimit);
    if (!text.ok())
      return add("cdi", VerifyState::Note, "there is no CDI specification",
                 "sudo gantry cdi refresh");
    if (contains(*text, record_.version))
      return good("cdi", "the CDI specification is of this driver");
    add("cdi", VerifyState::Note,
        fmt::format("the CDI specification does not name the driver {}", record_.version),
        "sudo gantry cdi refresh");
  }

  // What Gantry did not install, it cannot install again.
  std::string install_again() const {
    if (!is_ours()) return "install it again as it was";
    return "install it again: " + install_command(record_);
  }

  const sys::Host& host_;
  const InstallRecord& record_;
  InstallEffects* effects_;
  Layout layout_;
  VerifyReport report_;
  bool loaded_ = false;
};

}  // namespace

std::string_view to_string(VerifyState state) {
  switch (state) {
    case VerifyState::Good: return "ok";
    case VerifyState::Note: return "note";
    case VerifyState::Bad: return "bad";
  }
  return "";
}

bool VerifyReport::good() const {
  return std::none_of(items.begin(), items.end(),
                      [](const VerifyItem& item) { return item.state == VerifyState::Bad; });
}

VerifyReport verify(const sys::Host& host, const InstallRecord& record, VerifyDepth depth,
                    InstallEffects* effects) {
  return Verifier(host, record, effects).run(depth);
}

Status first_failure(const VerifyReport& report) {
  for (const auto& item : report.items) {
    if (item.state == VerifyState::Bad)
      return Error(Errc::Internal, item.sentence).advise(item.remedy);
  }
  return {};
}

std::string parse_licence_status(std::string_view smi_query) {
  for (const auto line : lines(smi_query)) {
    const auto colon = line.find(':');
    if (colon != std::string_view::npos && trim(line.substr(0, colon)) == "License Status")
      return std::string(trim(line.substr(colon + 1)));
  }
  return "";
}

}  // namespace gantry::driver_setup
