// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_change/state.hpp"

#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"

#include <fmt/format.h>

#include <utility>

namespace gantry::mig_change {
namespace {

constexpr std::uint64_t kStateVersion = 1;
constexpr std::size_t kStateLimit = std::size_t{256} << 10;
constexpr std::size_t kMaxLayoutInstances = 64;
constexpr std::size_t kMaxNameBytes = 96;
constexpr std::size_t kMaxCommandBytes = 4096;
constexpr std::uint64_t kMaxSlice = 255;
constexpr std::string_view kSuffix = ".json";

Error bad_state(std::string_view what) {
  return {Errc::Corrupt, fmt::format("it is not a valid state of MIG: {}", what)};
}

Result<std::string> read_name(json::Value object, std::string_view key,
                              std::size_t limit = kMaxNameBytes) {
  auto text = object[key].string();
  if (!text || text->size() > limit) return bad_state(fmt::format("`{}` is not a text", key));
  return *std::move(text);
}

Result<mig::Placement> read_place(json::Value object) {
  const auto start = object["start"].u64();
  const auto size = object["size"].u64();
  if (!start || !size || *start > kMaxSlice || *size > kMaxSlice)
    return bad_state("a place has no start and size");
  return mig::Placement{.start = static_cast<unsigned>(*start),
                        .size = static_cast<unsigned>(*size)};
}

Result<LayoutInstance> read_instance(json::Value object) {
  LayoutInstance instance;
  GANTRY_TRY(instance.profile, read_name(object, "profile"));
  GANTRY_TRY(instance.place, read_place(object));
  const auto list = object["compute"];
  if (!list.is(json::Kind::Array) || list.size() > kMaxLayoutInstances)
    return bad_state("`compute` is not a short list");
  for (const auto one : list) {
    LayoutCompute compute;
    GANTRY_TRY(compute.profile, read_name(one, "profile"));
    GANTRY_TRY(compute.place, read_place(one));
    instance.compute.push_back(std::move(compute));
  }
  return instance;
}

Result<Layout> read_layout(json::Value object) {
  Layout layout;
  const auto enabled = object["enabled"].boolean();
  const auto list = object["instances"];
  if (!enabled || !list.is(json::Kind::Array) || list.size() > kMaxLayoutInstances)
    return bad_state("a layout is incomplete");
  layout.enabled = *enabled;
  for (const auto one : list) {
    GANTRY_TRY(auto instance, read_instance(one));
    layout.instances.push_back(std::move(instance));
  }
  return layout;
}

void write_place(json::Writer& out, const mig::Placement& place) {
  out.member("start", place.start);
  out.member("size", place.size);
}

void write_layout(json::Writer& out, std::string_view name, const Layout& layout) {
  out.object(name, [&] {
    out.member("enabled", layout.enabled);
    out.array("instances", layout.instances, [&](const LayoutInstance& instance) {
      out.object([&] {
        out.member("profile", instance.profile);
        write_place(out, instance.place);
        out.array("compute", instance.compute, [&](const LayoutCompute& compute) {
          out.object([&] {
            out.member("profile", compute.profile);
            write_place(out, compute.place);
          });
        });
      });
    });
  });
}

Error damaged(const sys::Host& host, const std::string& path, const Error& why) {
  const auto shown = host.outside(path);
  if (why.code() == Errc::Unsupported)
    return Error(Errc::Unsupported, fmt::format("{}: {}", shown, why.cause()))
        .advise("use that gantry or a later one; this one does not touch the file");
  return Error(Errc::Corrupt, fmt::format("{}: {}", shown, why.cause()))
      .advise(fmt::format("look at it, then remove it: sudo rm {}", sys::shell_word(shown)));
}

}  // namespace

std::string state_path(const model::PciAddress& gpu) {
  return fmt::format("{}/{}{}", kStateDirectory, gpu.sysfs(), kSuffix);
}

std::string to_json(const GpuState& state) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("version", kStateVersion);
    out.member("gpu", state.gpu.sysfs());
    out.member("uuid", state.uuid.text);
    if (state.stored) write_layout(out, "stored", *state.stored);
    if (!state.change) return;
    out.object("change", [&] {
      out.member("what", state.change->what);
      write_layout(out, "former", state.change->former);
      write_layout(out, "wanted", state.change->wanted);
    });
  });
  return std::move(out).text() + "\n";
}

Result<GpuState> parse_state(std::string_view text) {
  auto document = json::Document::parse(std::string(text));
  if (!document.ok()) return bad_state(document.error().text());
  const auto object = document->root();
  const auto version = object["version"].u64();
  if (!version) return bad_state("it has no version");
  if (*version > kStateVersion)
    return Error(Errc::Unsupported, "a newer version of Gantry wrote it");
  GpuState state;
  GANTRY_TRY(const auto address, read_name(object, "gpu"));
  const auto gpu = model::PciAddress::parse(address);
  if (!gpu) return bad_state("`gpu` is not a PCI address");
  state.gpu = *gpu;
  GANTRY_TRY(state.uuid.text, read_name(object, "uuid"));
  if (object["stored"]) {
    GANTRY_TRY(state.stored, read_layout(object["stored"]));
  }
  if (const auto change = object["change"]) {
    StoredChange stored;
    GANTRY_TRY(stored.what, read_name(change, "what", kMaxCommandBytes));
    GANTRY_TRY(stored.former, read_layout(change["former"]));
    GANTRY_TRY(stored.wanted, read_layout(change["wanted"]));
    state.change = std::move(stored);
  }
  return state;
}

Result<GpuState> read_state(const sys::Host& host, const model::PciAddress& gpu) {
  const auto path = state_path(gpu);
  const auto text = host.read(path, kStateLimit);
  if (!text.ok() && text.error().code() == Errc::NotFound) return GpuState{.gpu = gpu};
  if (!text.ok()) return Error(text.error()).in("reading the state of MIG");
  auto state = parse_state(*text);
  if (!state.ok()) return damaged(host, path, state.error());
  if (state->gpu != gpu) return damaged(host, path, bad_state("it is of another GPU"));
  return state;
}

StoredStates read_states(const sys::Host& host) {
  StoredStates found;
  const auto names = host.list(kStateDirectory);
  if (!names.ok() && names.error().code() != Errc::NotFound)
    found.problems.push_back(names.error());
  for (const auto& name : names.ok() ? *names : std::vector<std::string>{}) {
    if (!name.ends_with(kSuffix)) continue;
    const auto gpu =
        model::PciAddress::parse(std::string_view(name).substr(0, name.size() - kSuffix.size()));
    if (!gpu) continue;
    auto state = read_state(host, *gpu);
    if (state.ok())
      found.states.push_back(*std::move(state));
    else
      found.problems.push_back(state.error());
  }
  return found;
}

}  // namespace gantry::mig_change
