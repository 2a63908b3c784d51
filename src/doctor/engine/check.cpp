// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/check.hpp"

#include <fmt/format.h>

#include <utility>

namespace gantry::doctor {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Ok: return "ok";
    case Verdict::Info: return "info";
    case Verdict::Warn: return "warn";
    case Verdict::Fail: return "fail";
    case Verdict::Skip: return "skip";
  }
  return "?";
}

std::string_view letter(FixClass fix_class) {
  switch (fix_class) {
    case FixClass::Automatic: return "A";
    case FixClass::OnRequest: return "R";
    case FixClass::Never: return "N";
  }
  return "?";
}

std::string_view to_string(Area area) {
  switch (area) {
    case Area::Guest: return "guest";
    case Area::Hardware: return "hardware";
    case Area::Gpu: return "gpu";
    case Area::Modules: return "modules";
    case Area::Nodes: return "nodes";
    case Area::Userland: return "userland";
    case Area::Runtime: return "runtime";
    case Area::Kubelet: return "kubelet";
    case Area::Fabric: return "fabric";
  }
  return "?";
}

Finding Finding::because(std::string text) && {
  cause = std::move(text);
  return std::move(*this);
}

Finding Finding::unless_explained_by(std::string_view ids) && {
  explained_by = ids;
  return std::move(*this);
}

Finding Finding::advise(std::string command) && {
  remedy = std::move(command);
  return std::move(*this);
}

namespace {
Finding make(Verdict verdict, std::string summary, std::vector<Evidence> evidence) {
  return {verdict, std::move(summary), std::move(evidence), "", "", false};
}
}  // namespace

Finding ok(std::string summary, std::vector<Evidence> evidence) {
  return make(Verdict::Ok, std::move(summary), std::move(evidence));
}
Finding info(std::string summary, std::vector<Evidence> evidence) {
  return make(Verdict::Info, std::move(summary), std::move(evidence));
}
Finding warn(std::string summary, std::vector<Evidence> evidence) {
  return make(Verdict::Warn, std::move(summary), std::move(evidence));
}
Finding fail(std::string summary, std::vector<Evidence> evidence) {
  return make(Verdict::Fail, std::move(summary), std::move(evidence));
}
Finding skip(std::string reason, std::vector<Evidence> evidence) {
  return make(Verdict::Skip, std::move(reason), std::move(evidence));
}

Finding skip_needs_root(std::string_view path) {
  auto finding = skip(fmt::format("only root may read {}", path));
  finding.needs_root = true;
  return finding;
}

}  // namespace gantry::doctor
